package wallet

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Kind is the purpose of a transaction.
type Kind string

// The kinds. A cancel is a payment of a wallet to itself that displaces stuck bytes. A bump spends a waiting
// payment and pays the fee for both (child pays for parent, internal/txmgr/bump.go). An undelegation takes
// back the stake of a delegation when the release is over; the delegation is its object. A recovery moves a
// chain.Stray to the master wallet.
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

// The states. Package internal/walletstate has the moves between them.
const (
	Queued    State = "queued"    // waits for its wallet; nothing is signed
	Signed    State = "signed"    // bytes are stored; the network may or may not have them
	Broadcast State = "broadcast" // the network accepted the bytes at least once
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
	FailTokenUnsafe       = "token_unsafe"
	FailSignerRefused     = "signer_refused:"
	FailWatchOnly         = FailSignerRefused + "watch_only"
)

// Attempt is one set of signed bytes. Every attempt is kept and looked up: an earlier one may still be
// included.
type Attempt struct {
	Signed       chain.Signed `json:"signed"`
	SignedAt     time.Time    `json:"signed_at"`
	FirstTakenAt time.Time    `json:"first_taken_at,omitzero"` // when the network first accepted it
	LastSentAt   time.Time    `json:"last_sent_at,omitzero"`   // when it was last handed over
	// LastSendError is the error of the last handover, for operators; empty on success.
	LastSendError string `json:"last_send_error,omitzero"`
	// SignedHeight is the height of the newest block that had been read when it was signed.
	SignedHeight uint64 `json:"signed_height,omitzero"`
}

// Conflict is a transaction in a final block that excludes another one for ever.
type Conflict struct {
	// TxHash is the hash of the transaction; empty where the driver only reports that there is one.
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
	// Order describes the payments to make. Nonce and coins are filled in when it is signed.
	Order chain.Order
	State State
	// Attempts are the signed bytes, oldest first; the last is the one to send. A batch member has none.
	Attempts []Attempt
	// BatchMembers are the transaction ids of the other payouts that the signed bytes pay. They are in the
	// order of Order.Outputs after its first, which is this transaction's own (internal/txmgr/batch.go).
	BatchMembers []string
	// BatchedBy is the id of the transaction whose bytes pay this payout and whose state it follows; empty
	// outside a batch.
	BatchedBy string
	// Nonce is the account sequence number that all attempts share; valid once there is an attempt,
	// its own or its carrier's.
	Nonce uint64
	// TxHash is the attempt that is in a block, else the last one; empty while queued.
	TxHash string
	// Block is where it is included; zero otherwise.
	Block chain.Ref
	// Fee is the network fee in base units of the native coin, while the transaction is included. Once it
	// failed, Fee is that of the cancel at its nonce. It is the whole fee, or the share of a batch member;
	// see walletstate.OwnFee.
	Fee chain.Amount
	// Transfers are those of the transaction in its block. A batch member has one: the amount that its own
	// destination received.
	Transfers []chain.Transfer
	// Failure is the failure code; set exactly when State is Failed.
	Failure string
	// Conflict is set when Failure is FailConflict and blocks were read that prove it.
	Conflict Conflict
	// Waits says why it is not signed, or in no block, although it has been due for more than a minute. It is
	// a code, a colon and a sentence. WaitingSince is the time at which that wait began. Both are empty
	// otherwise.
	Waits        string
	WaitingSince time.Time
	// ReadyAt is the time from which it may be signed: its creation, or the approval that a payout waited
	// for.
	ReadyAt time.Time
	// GiveUpAt is when an unsigned transaction is given up as stale.
	GiveUpAt time.Time
	// DueAt is when the worker looks at it next; zero for never, as for a batch member. A confirmed or reverted
	// transaction is looked at for 24 more hours: its block may still leave the chain.
	DueAt     time.Time
	CreatedAt time.Time
	// Version is compared and raised by the store; see store.Tx.
	Version int64
}

// OwnTransaction identifies the Transaction that has an attempt with a given hash.
type OwnTransaction struct {
	// ID is the Transaction's.
	ID   string
	Kind Kind
}

// EventObject returns the object of the transaction's events: the one that it is sent for.
func (t Transaction) EventObject() event.Object {
	return event.Object{Owner: t.Owner, ID: t.ObjectID}
}
