// Package send makes transactions of ours happen: money out.
//
// Payouts, refunds, platform fees, top-ups and sweeps are all rows of one outbox. A row is queued in the
// transaction of the object that wants it; the worker takes the lease of the wallet that pays, reserves
// the nonce or the coins, has the transaction signed, and stores the signed bytes together with their
// hash and nonce before the first broadcast. From then on the row is only ever moved by what the
// network proves: the same bytes are sent again until a block has them, replaced by bytes at the same
// nonce (or sharing a coin) that pay more, or given up when a final block proves that none of them can
// be included any more. A time-out at broadcast is not a failure.
//
// Nonces, coins and the balance reservations of wallets live here; drivers keep no state. Owners of rows
// hear of progress through the fact event.FactTransaction, inside the transaction that stores it.
package send

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/watch"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// Kind says what a transaction is for.
type Kind string

// The kinds. A cancel displaces bytes that can never be broadcast again by a transaction to
// oneself; a lift has a waiting payment included that pays the miner too little (lift.go).
const (
	Payout Kind = "payout"
	TopUp  Kind = "topup"
	Fee    Kind = "fee"
	Sweep  Kind = "sweep"
	Lift   Kind = "lift"
	Cancel Kind = "cancel"
)

// State is where a transaction of ours stands.
type State string

// The states; transaction.go has the moves.
const (
	Queued    State = "queued"    // waits for its wallet; nothing is signed
	Signed    State = "signed"    // bytes are stored; the network may or may not have them
	Broadcast State = "broadcast" // the network took the bytes at least once
	Included  State = "included"  // in a block that is not final
	Confirmed State = "confirmed" // in a block that is final by the network's rule
	Failed    State = "failed"    // proven never to happen, or included and reverted at finality
)

// Failure codes, as specification 2.3 lists them. signer_refused:<reason> is made from the refusal.
const (
	FailCanceled          = "canceled"
	FailStale             = "stale"
	FailConflict          = "conflict"
	FailExpired           = "expired"
	FailReverted          = "reverted"
	FailInsufficientFunds = "chain:insufficient_funds"
	FailNotPayable        = "destination_not_payable"
	FailSignerRefused     = "signer_refused:"
)

// Attempt is one set of signed bytes. Every attempt is kept and looked up: an earlier one may still win.
type Attempt struct {
	Signed        chain.Signed `json:"signed"`
	SignedAt      time.Time    `json:"signed_at"`
	FirstTakenAt  time.Time    `json:"first_taken_at,omitzero"`  // when the network first took it
	LastSentAt    time.Time    `json:"last_sent_at,omitzero"`    // when it was last handed over
	LastSendError string       `json:"last_send_error,omitzero"` // what the node said then; for people
}

// Transaction is one row of the outbox.
type Transaction struct {
	ID      string
	Owner   event.Owner
	Network string
	Kind    Kind
	// ObjectID is the payout, refund or release that wants it, or the payment that a lift is for.
	ObjectID string
	// Order is what it must do. Nonce and coins are filled in when it is signed.
	Order chain.Order
	State State
	// Attempts are the signed bytes, oldest first. The last one is the one to send. One that is
	// carried has none of its own.
	Attempts []Attempt
	// Carries are the other payouts that the signed bytes pay, as ids of their transactions, in the
	// order of Order.Outputs, of which the first is this one's own; see batch.go.
	Carries []string
	// CarriedBy is the transaction whose bytes pay this one's payout, and whose moves are its own;
	// empty for most.
	CarriedBy string
	// Nonce is the account sequence number that all attempts share; valid once there is an attempt,
	// its own or its carrier's.
	Nonce uint64
	// TxHash is the attempt that is in a block, else the last one; empty while queued.
	TxHash string
	// Block is where it is included; zero otherwise.
	Block chain.Ref
	// Fee is what the network took, in base units of the native coin, while it is included: all of
	// it where the bytes are, its share of it in one that is carried; see OwnFee.
	Fee chain.Amount
	// Transfers are what its inclusion moved; those of one that is carried are with its carrier.
	Transfers []chain.Transfer
	// Failure is the failure code; set exactly when State is Failed.
	Failure string
	// GiveUpAt is when an unsigned transaction is given up as stale.
	GiveUpAt time.Time
	// DueAt is when the worker looks at it next; zero when nobody has to, as one that is carried
	// moves with its carrier. A confirmed transaction is looked at for another day, as its block
	// may leave the chain after all.
	DueAt     time.Time
	CreatedAt time.Time
	// Version is the store's; see store.Tx.
	Version int64
}

// Live reports whether the transaction may still change.
func (t Transaction) Live() bool { return t.State != Failed && t.State != Confirmed }

// Wallet is an address that pays, with the nonce counter of its network.
type Wallet struct {
	Network string
	Party   chain.Party
	// NextNonce is the nonce after the highest one that we signed; it only rises.
	NextNonce uint64
	Version   int64
}

// Balance is what a wallet holds of one asset and what of it is promised.
type Balance struct {
	Network string
	Address chain.Address
	AssetID string
	Owner   event.Owner
	// OnChain is the balance read at block At.
	OnChain chain.Amount
	At      chain.Ref
	// Reserved is the sum of Reservations.
	Reserved chain.Amount
	// Reservations are what queued and running transactions may take. One ends only in the write of a balance
	// that was read at a block which includes its transaction.
	Reservations []Reservation
	Version      int64
}

// Reservation is one promise against a balance.
type Reservation struct {
	ObjectID string       `json:"object_id"`
	Amount   chain.Amount `json:"amount"`
	// SpentAt is the height of the block that includes the transaction; 0 before.
	SpentAt uint64 `json:"spent_at,omitempty"`
	// Released is set when the object failed: the reservation ends with the next write.
	Released bool `json:"released,omitempty"`
}

// Available returns what may still be promised: the balance less what is reserved.
func (b Balance) Available() chain.Amount { return b.OnChain.SubFloor(b.Reserved) }

// Coin is an output of ours with who reserved and who spent it. Its height is 0 while it is in no
// block; then it is change of a transaction of ours that waits in the pool.
type Coin struct {
	chain.Coin
	Network string
	// ReservedBy is the transaction that may spend it (an id).
	ReservedBy string
	// SpentBy is the transaction that spends it in a block (a hash), and SpentAt the height of that block.
	SpentBy string
	SpentAt uint64
	// Depth is how many waiting transactions of ours it rests on; 0 in a block.
	Depth   int
	Version int64
}

// Reader is what the outbox reads.
type Reader interface {
	// Transaction returns a row of the outbox, or fault.NotFound.
	Transaction(ctx context.Context, id string) (Transaction, error)
	// TransactionsByID returns those that exist, by id.
	TransactionsByID(ctx context.Context, ids []string) ([]Transaction, error)
	// TransactionsOf returns the rows of one object, oldest first.
	TransactionsOf(ctx context.Context, objectID string) ([]Transaction, error)
	// Transactions returns a page of all rows of one network, newest first.
	Transactions(ctx context.Context, network, after string, limit int) ([]Transaction, error)
	// DueTransactions returns rows of one network that have a DueAt, at or before now, oldest id
	// first. They are live or confirmed not long ago; a failed one has no DueAt.
	DueTransactions(ctx context.Context, network string, now time.Time, limit int) ([]Transaction, error)
	// LiveTransactions returns all live rows that one wallet pays, oldest first.
	LiveTransactions(ctx context.Context, network string, from chain.Address) ([]Transaction, error)
	// OwnTransactions returns, of the hashes given, those of attempts of ours, with the row's kind.
	OwnTransactions(ctx context.Context, network string, hashes []string) (map[string]Kind, error)
	// Wallet returns a wallet; ok is false before its first transaction.
	Wallet(ctx context.Context, network string, address chain.Address) (w Wallet, ok bool, err error)
	// Balance returns a wallet's balance row; ok is false when there is none yet.
	Balance(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
	) (b Balance, ok bool, err error)
	// Balances returns every balance row of an owner, by network and asset.
	Balances(ctx context.Context, owner event.Owner) ([]Balance, error)
	// BalancesOf returns every balance row of a network, whoever owns it: what is read again when it moves.
	BalancesOf(ctx context.Context, network string) ([]Balance, error)
	// Coins returns the unspent coins of an address.
	Coins(ctx context.Context, network string, address chain.Address) ([]Coin, error)
	// CoinsOf returns the coins that transactions made, spent ones included, given the hashes.
	CoinsOf(ctx context.Context, network string, hashes []string) ([]Coin, error)
	// WaitingCoins returns the coins that are in no block.
	WaitingCoins(ctx context.Context, network string) ([]Coin, error)
	// CoinsAbove returns the coins that were made or spent in blocks above a height.
	CoinsAbove(ctx context.Context, network string, height uint64) ([]Coin, error)
	// Cursor returns how far a network was read; see watch.Reader.
	Cursor(ctx context.Context, network string) (c watch.Cursor, ok bool, err error)
}

// Tx is everything one outbox operation may touch. The …ForUpdate reads lock the row.
type Tx interface {
	Reader
	lease.Tx
	event.Appender
	PutTransaction(ctx context.Context, t *Transaction) error
	// PutAttemptHash makes (network, hash) ours, or answers fault.Duplicate when it already is: two equal
	// transactions never collapse into one.
	PutAttemptHash(ctx context.Context, network, hash, transactionID string, kind Kind) error
	PutWallet(ctx context.Context, w *Wallet) error
	// BalanceForUpdate is Balance with the row locked until the transaction ends.
	BalanceForUpdate(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
	) (b Balance, ok bool, err error)
	PutBalance(ctx context.Context, b *Balance) error
	PutCoin(ctx context.Context, c *Coin) error
	DeleteCoin(ctx context.Context, network string, outpoint chain.Outpoint) error
}

// DB is the outbox's view of a store.
type DB interface {
	Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}
