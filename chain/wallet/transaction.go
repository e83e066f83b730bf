package wallet

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// The moves of a Transaction are pure and idempotent. They are legal from the states that their comments
// name; from any other state they return fault.State with code transaction_state and change nothing. There
// is no way back to Queued: bytes that were signed stay signed.

// Kind is the purpose of a transaction.
type Kind string

// The kinds. A cancel is a payment of a wallet to itself that displaces stuck bytes. A bump spends a
// waiting payment and pays the fee for both (child pays for parent, internal/txmgr/bump.go). An undelegation takes
// back the stake of a delegation, which is its object, when the release is over. A recovery moves a chain.Stray to the
// master wallet.
const (
	Payout     Kind = "payout"
	TopUp      Kind = "topup"
	Delegate   Kind = "delegate"
	Undelegate Kind = "undelegate"
	Fee        Kind = "fee"
	Sweep      Kind = "sweep"
	Bump       Kind = "bump"
	Cancel     Kind = "cancel"
	Recovery   Kind = "recovery"
)

// State is where a transaction of ours stands.
type State string

// The states; the methods of Transaction are the moves between them.
const (
	Queued    State = "queued"    // waits for its wallet; nothing is signed
	Signed    State = "signed"    // bytes are stored; the network may or may not have them
	Broadcast State = "broadcast" // the network took the bytes at least once
	Included  State = "included"  // in a block that is not final
	Confirmed State = "confirmed" // in a block that is final by the network's rule
	Failed    State = "failed"    // proven never to happen, or included and reverted at finality
)

// The failure codes (specification 2.3). FailSignerRefused is followed by the signer's reason.
const (
	FailCanceled          = "canceled" // spec 2.3.3
	FailStale             = "stale"
	FailConflict          = "conflict"
	FailExpired           = "expired"
	FailReverted          = "reverted"
	FailInsufficientFunds = "chain:insufficient_funds"
	FailNotPayable        = "destination_not_payable"
	FailSignerRefused     = "signer_refused:"
)

// Attempt is one set of signed bytes. Every attempt is kept and looked up: an earlier one may still be
// included.
type Attempt struct {
	Signed       chain.Signed `json:"signed"`
	SignedAt     time.Time    `json:"signed_at"`
	FirstTakenAt time.Time    `json:"first_taken_at,omitzero"` // when the network first took it
	LastSentAt   time.Time    `json:"last_sent_at,omitzero"`   // when it was last handed over
	// its error then, empty on success; for operators
	LastSendError string `json:"last_send_error,omitzero"`
	// SignedHeight is that of the newest block that was read when it was signed.
	SignedHeight uint64 `json:"signed_height,omitzero"`
}

// Conflict is the transaction in a final block because of which another one can never be included.
type Conflict struct {
	// TxHash is the transaction; empty where the network's driver gave no more than the fact.
	TxHash string `json:"tx_hash"`
	// Own is set when the transaction is one of ours.
	Own bool `json:"own"`
}

// Transaction is a transaction of ours, from the order to its final block.
type Transaction struct {
	ID      string
	Owner   event.Owner
	Network string
	Kind    Kind
	// ObjectID is the payout, refund or release that wants it, the payment that a bump is for, or the account that a
	// recovery empties.
	ObjectID string
	// Order is what it must do. Nonce and coins are filled in when it is signed.
	Order chain.Order
	State State
	// Attempts are the signed bytes, oldest first; the last is the one to send. A batch member has none.
	Attempts []Attempt
	// BatchMembers are the transaction ids of the other payouts that the signed bytes pay, in the order
	// of Order.Outputs after its first, which is this one's own; see batch.go.
	BatchMembers []string
	// BatchedBy is the id of the transaction whose bytes pay this payout and whose moves it follows;
	// empty outside a batch.
	BatchedBy string
	// Nonce is the account sequence number that all attempts share; valid once there is an attempt,
	// its own or its carrier's.
	Nonce uint64
	// TxHash is the attempt that is in a block, else the last one; empty while queued.
	TxHash string
	// Block is where it is included; zero otherwise.
	Block chain.Ref
	// Fee is the network fee in base units of the native coin, while it is included, or that of the cancel at its
	// nonce once it failed: the whole fee, or for a batch member its share; see OwnFee.
	Fee chain.Amount
	// Transfers are what its inclusion moved; a batch member's are with its carrier.
	Transfers []chain.Transfer
	// Failure is the failure code; set exactly when State is Failed.
	Failure string
	// Conflict is set when Failure is FailConflict and blocks were read that prove it.
	Conflict Conflict
	// GiveUpAt is when an unsigned transaction is given up as stale.
	GiveUpAt time.Time
	// DueAt is when the worker looks at it next; zero for never, as for a batch member. A confirmed or reverted
	// transaction is looked at for 24 more hours: its block may still leave the chain.
	DueAt     time.Time
	CreatedAt time.Time
	// Version is compared and raised by the store; see store.Tx.
	Version int64
}

// EventObject returns how an event names the transaction: by the object that it is sent for.
func (t Transaction) EventObject() event.Object {
	return event.Object{Owner: t.Owner, ID: t.ObjectID}
}

// Live reports whether the transaction may still change.
func (t Transaction) Live() bool { return t.State != Failed && t.State != Confirmed }

// failedReverted reports whether it was executed in vain, as far as its last block says.
func (t Transaction) failedReverted() bool { return t.State == Failed && t.Failure == FailReverted }

// Sign adds signed bytes. From Queued they are the first; from Signed and Broadcast they replace
// earlier ones, which stay on record and must share the nonce.
func (t *Transaction) Sign(a Attempt) error {
	if a.Signed.TxHash == "" {
		return t.refuse("take bytes without a hash")
	}

	if t.BatchedBy != "" {
		return t.refuseAlone()
	}

	if t.AttemptIndex(a.Signed.TxHash) >= 0 {
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

// Abandon drops signed bytes, as others fulfilled the order: bytes of lost records, at another nonce. What is dropped
// has to be canceled. Only what is Signed or Broadcast has bytes to drop.
func (t *Transaction) Abandon() error {
	if t.State != Signed && t.State != Broadcast {
		return t.refuse("drop its bytes")
	}

	t.State, t.Attempts, t.TxHash, t.Nonce = Queued, nil, "", 0

	return nil
}

// RecordBroadcast records when an attempt was last broadcast and the node's error, empty on success. The state stays.
func (t *Transaction) RecordBroadcast(hash string, at time.Time, problem string) error {
	i := t.AttemptIndex(hash)
	if i < 0 {
		return t.refuse("have sent bytes that are not its own")
	}

	t.Attempts = slices.Clone(t.Attempts)
	t.Attempts[i].LastSentAt, t.Attempts[i].LastSendError = at, problem

	return nil
}

// RecordAccepted records that the network has an attempt: Signed becomes Broadcast. From Broadcast, Included and
// Confirmed it only sets the time.
func (t *Transaction) RecordAccepted(hash string, at time.Time) error {
	i := t.AttemptIndex(hash)
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

// Include records the block that holds an attempt, from Signed, Broadcast or Included (also another
// block). A Confirmed transaction accepts only the block that it has; see Retract. One that Failed as reverted
// stays Failed, and accepts only a block in which it was reverted.
func (t *Transaction) Include(hash string, status chain.TxStatus) error { // spec D5.3
	if t.AttemptIndex(hash) < 0 || status.Block.IsZero() {
		return t.refuse("be included without its own bytes and a block")
	}

	switch t.State {
	case Signed, Broadcast, Included:
		t.State = Included
	case Failed:
		if !t.failedReverted() || !status.Reverted {
			return t.refuse("be included")
		}
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

// Confirm records that the block of an Included transaction is final.
func (t *Transaction) Confirm() error { // spec D5.5
	if t.BatchedBy != "" {
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

// Retract records that the block of an Included or Confirmed transaction left the chain: it becomes
// Broadcast, without block, fee and transfers. One that Failed as reverted loses them too, and stays Failed.
func (t *Transaction) Retract() error { // spec D5.4
	if t.BatchedBy != "" {
		return t.refuseAlone()
	}

	switch t.State {
	case Included, Confirmed:
		t.State, t.TxHash = Broadcast, t.LastAttempt().Signed.TxHash
		t.Block, t.Fee, t.Transfers = chain.Ref{}, chain.Amount{}, nil
	case Broadcast:
	case Failed:
		if !t.failedReverted() {
			return t.refuse("be taken out of a block")
		}

		t.Block, t.Fee, t.Transfers = chain.Ref{}, chain.Amount{}, nil
	default:
		return t.refuse("be taken out of a block")
	}

	return nil
}

// Fail ends the transaction with a failure code. A Queued one fails as canceled, stale, refused by the
// signer, not payable or not funded; a Signed or Broadcast one as conflict or expired, which need a proof
// at a final block, and so does one that Failed as reverted in a block that left the chain; an Included one as
// reverted.
func (t *Transaction) Fail(code string) error {
	if t.State == Failed && t.Failure == code {
		return nil
	}

	if t.BatchedBy != "" {
		return t.refuseAlone()
	}

	var legal bool

	switch code {
	case FailCanceled, FailStale, FailInsufficientFunds, FailNotPayable:
		legal = t.State == Queued
	case FailConflict, FailExpired:
		legal = t.State == Signed || t.State == Broadcast || t.failedReverted() && t.Block.IsZero()
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

// FailAgainst is Fail with FailConflict; c is the transaction that proves it.
func (t *Transaction) FailAgainst(c Conflict) error {
	if t.State == Failed && !t.failedReverted() {
		return t.Fail(FailConflict)
	}

	if err := t.Fail(FailConflict); err != nil {
		return err
	}

	t.Conflict = c

	return nil
}

// FailDisplaced is FailAgainst with what the conflict cost, in base units of the native coin: the fee of the
// transaction's own cancel, 0 for any other.
func (t *Transaction) FailDisplaced(c Conflict, cost chain.Amount) error {
	if t.State == Failed && !t.failedReverted() {
		return t.Fail(FailConflict)
	}

	if err := t.FailAgainst(c); err != nil {
		return err
	}

	t.Fee = cost

	return nil
}

// refuse returns the fault.State error of a move that the state does not allow.
func (t *Transaction) refuse(what string) error {
	return fault.New(
		fault.State, "transaction_state", "transaction %s is %s and cannot %s",
		t.ID, t.State, what,
	)
}

// refuseAlone returns the error of a move of a batch member: it moves with its carrier only.
func (t *Transaction) refuseAlone() error {
	return t.refuse("move by itself: transaction " + t.BatchedBy + " carries it")
}

// Stale reports whether GiveUpAt has passed.
func (t *Transaction) Stale(now time.Time) bool {
	return !t.GiveUpAt.IsZero() && !now.Before(t.GiveUpAt)
}

// AttemptIndex returns the index of the attempt with a hash, or -1.
func (t *Transaction) AttemptIndex(hash string) int {
	return slices.IndexFunc(t.Attempts, func(a Attempt) bool { return a.Signed.TxHash == hash })
}

// LastAttempt returns the newest attempt; there must be one.
func (t *Transaction) LastAttempt() Attempt { return t.Attempts[len(t.Attempts)-1] }
