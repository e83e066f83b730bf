package walletstate

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// Live reports whether the transaction is neither failed nor confirmed.
func Live(t wallet.Transaction) bool { return t.State != wallet.Failed && t.State != wallet.Confirmed }

// SpentCoins reports whether the transaction spent coins; these bear their own network fees.
func SpentCoins(t wallet.Transaction) bool {
	return slices.ContainsFunc(t.Attempts, func(a wallet.Attempt) bool { return len(a.Signed.Inputs) > 0 })
}

// failedReverted reports whether the transaction failed because it was reverted in its last block.
func failedReverted(t wallet.Transaction) bool {
	return t.State == wallet.Failed && t.Failure == wallet.FailReverted
}

// Sign adds signed bytes. From Queued they are the first; from Signed and Broadcast they replace
// earlier ones, which stay on record and must share the nonce.
func Sign(t *wallet.Transaction, a wallet.Attempt) error {
	if a.Signed.TxHash == "" {
		return refuse(t, "take bytes without a hash")
	}

	if t.BatchedBy != "" {
		return refuseAlone(t)
	}

	if i := AttemptIndex(t, a.Signed.TxHash); i >= 0 {
		if len(t.Attempts[i].Signed.Raw) == 0 { // acknowledged without bytes, now signed alike
			t.Attempts = slices.Clone(t.Attempts)
			t.Attempts[i].Signed = a.Signed
		}

		return nil
	}

	switch t.State {
	case wallet.Queued:
		t.State, t.Nonce = wallet.Signed, a.Signed.Nonce
		endWait(t)
	case wallet.Signed, wallet.Broadcast:
		if a.Signed.Nonce != t.Nonce {
			return refuse(t, "take bytes with another nonce than its earlier ones")
		}
	default:
		return refuse(t, "be signed")
	}

	t.Attempts = append(slices.Clip(t.Attempts), a)
	t.TxHash = a.Signed.TxHash

	return nil
}

// Abandon drops signed bytes because other bytes fulfilled the order: bytes of lost records, at another
// nonce. The caller must have the dropped bytes canceled. Only a Signed or Broadcast transaction has bytes to
// drop.
func Abandon(t *wallet.Transaction) error {
	if t.State != wallet.Signed && t.State != wallet.Broadcast {
		return refuse(t, "drop its bytes")
	}

	t.State, t.Attempts, t.TxHash, t.Nonce = wallet.Queued, nil, "", 0
	endWait(t)

	return nil
}

// RecordBroadcast records the time of an attempt's last broadcast and the node's error, empty on success. The
// state does not change.
func RecordBroadcast(t *wallet.Transaction, hash string, at time.Time, problem string) error {
	i := AttemptIndex(t, hash)
	if i < 0 {
		return refuse(t, "have sent bytes that are not its own")
	}

	t.Attempts = slices.Clone(t.Attempts)
	t.Attempts[i].LastSentAt, t.Attempts[i].LastSendError = at, problem

	return nil
}

// RecordAccepted records that the network has an attempt: Signed becomes Broadcast. From Broadcast, Included
// and Confirmed it only sets the time.
func RecordAccepted(t *wallet.Transaction, hash string, at time.Time) error {
	i := AttemptIndex(t, hash)
	if i < 0 || t.State == wallet.Queued || t.State == wallet.Failed {
		return refuse(t, "be taken by the network")
	}

	if t.Attempts[i].FirstTakenAt.IsZero() {
		t.Attempts = slices.Clone(t.Attempts)
		t.Attempts[i].FirstTakenAt = at
	}

	if t.State == wallet.Signed {
		t.State = wallet.Broadcast
	}

	return nil
}

// Include records the block that holds an attempt, from Signed, Broadcast or Included (in another block,
// too). A Confirmed transaction accepts only the block that it has; see Retract. One that Failed as reverted
// stays Failed, and accepts only a block in which it was reverted.
func Include(t *wallet.Transaction, hash string, status chain.TxStatus) error { // spec D5.3
	if AttemptIndex(t, hash) < 0 || status.Block.IsZero() {
		return refuse(t, "be included without its own bytes and a block")
	}

	switch t.State {
	case wallet.Signed, wallet.Broadcast, wallet.Included:
		t.State = wallet.Included
	case wallet.Failed:
		if !failedReverted(*t) || !status.Reverted {
			return refuse(t, "be included")
		}
	case wallet.Confirmed:
		if t.TxHash == hash && t.Block.Hash == status.Block.Hash {
			return nil
		}

		return refuse(t, "be included again")
	default:
		return refuse(t, "be included")
	}

	t.TxHash, t.Block, t.Fee, t.Transfers = hash, status.Block, status.Fee, status.Transfers
	endWait(t)

	return nil
}

// Confirm records that the block of an Included transaction is final.
func Confirm(t *wallet.Transaction) error { // spec D5.5
	if t.BatchedBy != "" {
		return refuseAlone(t)
	}

	switch t.State {
	case wallet.Included:
		t.State = wallet.Confirmed
	case wallet.Confirmed:
	default:
		return refuse(t, "be confirmed")
	}

	return nil
}

// Retract records that the block of an Included or Confirmed transaction left the chain. The transaction
// becomes Broadcast, without block, fee and transfers. One that Failed as reverted loses these too, and stays
// Failed.
func Retract(t *wallet.Transaction) error { // spec D5.4
	if t.BatchedBy != "" {
		return refuseAlone(t)
	}

	switch t.State {
	case wallet.Included, wallet.Confirmed:
		t.State, t.TxHash = wallet.Broadcast, LastAttempt(t).Signed.TxHash
		t.Block, t.Fee, t.Transfers = chain.Ref{}, chain.Amount{}, nil
	case wallet.Broadcast:
	case wallet.Failed:
		if !failedReverted(*t) {
			return refuse(t, "be taken out of a block")
		}

		t.Block, t.Fee, t.Transfers = chain.Ref{}, chain.Amount{}, nil
	default:
		return refuse(t, "be taken out of a block")
	}

	return nil
}

// Fail ends the transaction with a failure code.
//   - Queued: canceled, stale, refused by the signer, not payable, not funded, or a token that its issuer made
//     unusable.
//   - Signed or Broadcast: conflict or expired, which need a proof at a final block. A sweep that is proven to have
//     expired may fail as not funded, and a transaction of an unusable token as that.
//   - Failed as reverted, in a block that left the chain: conflict or expired, with the same proof.
//   - Included: reverted.
func Fail(t *wallet.Transaction, code string) error {
	if t.State == wallet.Failed && t.Failure == code {
		return nil
	}

	if t.BatchedBy != "" {
		return refuseAlone(t)
	}

	var legal bool

	switch code {
	case wallet.FailCanceled, wallet.FailStale, wallet.FailNotPayable:
		legal = t.State == wallet.Queued
	case wallet.FailTokenUnsafe:
		legal = t.State == wallet.Queued || t.State == wallet.Signed || t.State == wallet.Broadcast
	case wallet.FailInsufficientFunds:
		legal = t.State == wallet.Queued ||
			t.Kind == wallet.Sweep && (t.State == wallet.Signed || t.State == wallet.Broadcast)
	case wallet.FailConflict, wallet.FailExpired:
		legal = t.State == wallet.Signed || t.State == wallet.Broadcast ||
			failedReverted(*t) && t.Block.IsZero()
	case wallet.FailReverted:
		legal = t.State == wallet.Included
	default:
		legal = strings.HasPrefix(code, wallet.FailSignerRefused) && t.State == wallet.Queued
	}

	if !legal {
		return refuse(t, "fail as "+code)
	}

	t.State, t.Failure, t.DueAt = wallet.Failed, code, time.Time{}
	endWait(t)

	return nil
}

// FailAgainst is Fail with FailConflict; c is the transaction that proves it.
func FailAgainst(t *wallet.Transaction, c wallet.Conflict) error {
	if t.State == wallet.Failed && !failedReverted(*t) {
		return Fail(t, wallet.FailConflict)
	}

	if err := Fail(t, wallet.FailConflict); err != nil {
		return err
	}

	t.Conflict = c

	return nil
}

// FailDisplaced is FailAgainst with the cost of the conflict, in base units of the native coin. The cost is
// the fee of the transaction's own cancel, or 0 for any other conflict.
func FailDisplaced(t *wallet.Transaction, c wallet.Conflict, cost chain.Amount) error {
	if t.State == wallet.Failed && !failedReverted(*t) {
		return Fail(t, wallet.FailConflict)
	}

	if err := FailAgainst(t, c); err != nil {
		return err
	}

	t.Fee = cost

	return nil
}

// refuse returns the fault.State error of a move that the state does not allow.
func refuse(t *wallet.Transaction, what string) error {
	return fault.New(
		fault.State, "transaction_state", "transaction %s is %s and cannot %s",
		t.ID, t.State, what,
	)
}

// refuseAlone returns the error of a move of a batch member, which moves only with its carrier.
func refuseAlone(t *wallet.Transaction) error {
	return refuse(t, "move by itself: transaction "+t.BatchedBy+" carries it")
}

// Stale reports whether GiveUpAt has passed.
func Stale(t *wallet.Transaction, now time.Time) bool {
	return !t.GiveUpAt.IsZero() && !now.Before(t.GiveUpAt)
}

// AttemptIndex returns the index of the attempt with a hash, or -1.
func AttemptIndex(t *wallet.Transaction, hash string) int {
	return slices.IndexFunc(t.Attempts, func(a wallet.Attempt) bool { return a.Signed.TxHash == hash })
}

// LastAttempt returns the newest attempt; there must be one.
func LastAttempt(t *wallet.Transaction) wallet.Attempt { return t.Attempts[len(t.Attempts)-1] }
