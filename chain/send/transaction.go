package send

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The moves of a Transaction; batch.go has those of several in one. Each is pure, legal from the
// states its comment names, and does nothing when what it says is already so; anything else is
// fault.State with code transaction_state and leaves the record as it was. There is no way back to
// Queued: bytes that were signed stay signed.

// Sign adds signed bytes. From Queued they are the first; from Signed and Broadcast they replace
// earlier ones, which stay on record and must share the nonce.
func (t *Transaction) Sign(a Attempt) error {
	if a.Signed.TxHash == "" {
		return t.refuse("take bytes without a hash")
	}

	if t.CarriedBy != "" {
		return t.refuseAlone()
	}

	if t.attempt(a.Signed.TxHash) >= 0 {
		return nil
	}

	switch t.State {
	case Queued:
		t.State, t.Nonce = Signed, a.Signed.Nonce
	case Signed, Broadcast:
		if a.Signed.Nonce != t.Nonce {
			return t.refuse("take bytes with another nonce than its earlier ones")
		}
	default:
		return t.refuse("be signed")
	}

	t.Attempts = append(slices.Clip(t.Attempts), a)
	t.TxHash = a.Signed.TxHash

	return nil
}

// Sent records that an attempt was handed to the network at a time and what the node said then; problem is
// empty when it took the bytes. It is not a move: the state stays.
func (t *Transaction) Sent(hash string, at time.Time, problem string) error {
	i := t.attempt(hash)
	if i < 0 {
		return t.refuse("have sent bytes that are not its own")
	}

	t.Attempts = slices.Clone(t.Attempts)
	t.Attempts[i].LastSentAt, t.Attempts[i].LastSendError = at, problem

	return nil
}

// Taken says that the network has an attempt: Signed becomes Broadcast. From Broadcast, Included
// and Confirmed it only keeps the time.
func (t *Transaction) Taken(hash string, at time.Time) error {
	i := t.attempt(hash)
	if i < 0 || t.State == Queued || t.State == Failed {
		return t.refuse("be taken by the network")
	}

	if t.Attempts[i].FirstTakenAt.IsZero() {
		t.Attempts = slices.Clone(t.Attempts)
		t.Attempts[i].FirstTakenAt = at
	}

	if t.State == Signed {
		t.State = Broadcast
	}

	return nil
}

// Include says that an attempt is in a block that is not known to be final, from Signed, Broadcast
// or Included (where it may name another block). A Confirmed transaction accepts only the block it
// has; see Retract.
func (t *Transaction) Include(hash string, status chain.TxStatus) error {
	if t.attempt(hash) < 0 || status.Block.IsZero() {
		return t.refuse("be included without its own bytes and a block")
	}

	switch t.State {
	case Signed, Broadcast, Included:
		t.State = Included
	case Confirmed:
		if t.TxHash == hash && t.Block.Hash == status.Block.Hash {
			return nil
		}

		return t.refuse("be included again")
	default:
		return t.refuse("be included")
	}

	t.TxHash, t.Block, t.Fee, t.Transfers = hash, status.Block, status.Fee, status.Transfers

	return nil
}

// Confirm says that the block of an Included transaction is final.
func (t *Transaction) Confirm() error {
	if t.CarriedBy != "" {
		return t.refuseAlone()
	}

	switch t.State {
	case Included:
		t.State = Confirmed
	case Confirmed:
	default:
		return t.refuse("be confirmed")
	}

	return nil
}

// Retract says that the block of an Included or Confirmed transaction left the chain: it is
// Broadcast again, without block, fee and transfers.
func (t *Transaction) Retract() error {
	if t.CarriedBy != "" {
		return t.refuseAlone()
	}

	switch t.State {
	case Included, Confirmed:
		t.State, t.TxHash = Broadcast, t.last().Signed.TxHash
		t.Block, t.Fee, t.Transfers = chain.Ref{}, chain.Amount{}, nil
	case Broadcast:
	default:
		return t.refuse("be taken out of a block")
	}

	return nil
}

// Fail ends the transaction with a failure code. Only what was never signed may fail for a reason
// of ours (canceled, stale, refused by the signer, not payable, not funded); signed bytes fail by
// proof of death (conflict, expired); an included transaction only as reverted.
func (t *Transaction) Fail(code string) error {
	if t.State == Failed && t.Failure == code {
		return nil
	}

	if t.CarriedBy != "" {
		return t.refuseAlone()
	}

	var legal bool

	switch code {
	case FailCanceled, FailStale, FailInsufficientFunds, FailNotPayable:
		legal = t.State == Queued
	case FailConflict, FailExpired:
		legal = t.State == Signed || t.State == Broadcast
	case FailReverted:
		legal = t.State == Included
	default:
		legal = strings.HasPrefix(code, FailSignerRefused) && t.State == Queued
	}

	if !legal {
		return t.refuse("fail as " + code)
	}

	t.State, t.Failure, t.DueAt = Failed, code, time.Time{}

	return nil
}

func (t *Transaction) refuse(what string) error {
	return fault.New(
		fault.State, "transaction_state", "transaction %s is %s and cannot %s",
		t.ID, t.State, what,
	)
}

// refuseAlone refuses a move of what only moves with its carrier.
func (t *Transaction) refuseAlone() error {
	return t.refuse("move by itself: transaction " + t.CarriedBy + " carries it")
}

// tooLate reports whether the time to sign the transaction is over.
func (t *Transaction) tooLate(now time.Time) bool {
	return !t.GiveUpAt.IsZero() && !now.Before(t.GiveUpAt)
}

// attempt returns the index of the attempt with a hash, or -1.
func (t *Transaction) attempt(hash string) int {
	return slices.IndexFunc(t.Attempts, func(a Attempt) bool { return a.Signed.TxHash == hash })
}

// last returns the newest attempt; there must be one.
func (t *Transaction) last() Attempt { return t.Attempts[len(t.Attempts)-1] }

// moved reports whether anything differs that the owner of the transaction may care about: all but
// the schedule and the record of sendings.
func (t *Transaction) moved(since Transaction) bool {
	return t.State != since.State || t.TxHash != since.TxHash || t.Block.Hash != since.Block.Hash ||
		t.Failure != since.Failure
}

// spends returns what the transaction takes at most from an address for itself or for one that it
// carries, per asset id: the outputs, unless they come out of a coin that it lifts, and the network
// fee for whoever pays that.
func (t *Transaction) spends(
	transactionID string,
	from chain.Address,
	native string,
) map[string]chain.Amount {
	out := map[string]chain.Amount{}

	outputs, maxFee := t.Part(t.last(), transactionID)
	if from == t.Order.From.Address && t.Order.Lift == nil {
		for _, o := range outputs {
			out[o.AssetID] = out[o.AssetID].Add(o.Amount)
		}
	}

	payer := t.Order.From.Address
	if t.Order.FeePayer != nil {
		payer = t.Order.FeePayer.Address
	}

	if from == payer {
		out[native] = out[native].Add(maxFee)
	}

	return out
}
