// Package txmgr sends our own transactions: it queues, signs, broadcasts, replaces and follows them.
//
// A transaction is queued in the store transaction of the object that needs it (payout, refund, release). The
// worker takes the lease of the wallet that pays, and reserves the nonce or the coins. It has the bytes
// signed, and stores them with their hash and nonce before the first broadcast. From then on, only proofs of
// the network move the record. The same bytes are sent until a block includes them. They are replaced by
// bytes that pay more, at the same nonce or sharing a coin. They fail when a final block proves that none of
// them can be included. A time-out at broadcast is not a failure.
//
// This package maintains nonces, coins and balance reservations of wallets; drivers keep no state. Owners of
// transactions are notified by the internal event event.TransactionMoved, in the same store transaction. The
// engine calls Step for each network; records and store roles are in chain/wallet.
//
// It is one package because queue, nonces, coins, balances and outcomes of a wallet change in one transaction.
package txmgr

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Config configures a Manager. DB, Registry, Signer and IDs are required.
type Config struct {
	DB       DB
	Registry *chain.Registry
	Signer   chain.Signer
	IDs      *id.Source
	// Now returns the time. Defaults to time.Now.
	Now func() time.Time
	// Log defaults to slog.Default().
	Log *slog.Logger
	// Process names this process in the default of Heartbeat.
	Process string
	// WatchOnly holds, by network slug and account index, master wallets whose keys this service does not
	// have. They only receive; a transaction that such a wallet should pay fails as
	// signer_refused:watch_only.
	WatchOnly map[string]map[uint32]chain.Address
	// Foreign selects the effect of a master wallet's transaction that is not on record.
	Foreign wallet.ForeignPolicy
	// Epoch returns the epoch of the records. Defaults to the epoch of records that were never replaced.
	Epoch func() Epoch
	// MaySign reports whether this process's clock is accurate enough to sign. Defaults to always true.
	MaySign func() bool
	// ReplaceAfter is the time that signed bytes may wait for a block before bytes that pay more replace
	// them, where the network has replacement. Defaults to 3 minutes.
	ReplaceAfter time.Duration
	// CancelAfter is the time that bytes which cannot be replaced within their maximum fee may block the
	// wallet before a cancel displaces them. Defaults to 6 hours.
	CancelAfter time.Duration
	// FundsGrace is the time, from when a payout may be signed, for which it waits for the money of its
	// wallet. Then it fails as chain:insufficient_funds. The wallet may only look empty, at a node that lags.
	// Defaults to 10 minutes.
	FundsGrace time.Duration
	// Heartbeat owns the leases. Defaults to a private one, which beats whenever it is asked for an owner.
	Heartbeat *heartbeat.Heartbeat
	// Batch is the maximum number of transactions in one Step. Defaults to 100.
	Batch int
}

// The bounds of one wallet and one transaction.
const (
	maxAttempts = 8 // sets of signed bytes per transaction
	// maxInFlight is the number of transactions of one wallet that are signed and in no block: the number
	// that nodes accept from one sender.
	maxInFlight = 16
)

// Manager sends the transactions of all networks. It is safe for concurrent use, by any number of
// processes over one store.
type Manager struct {
	config    Config
	db        DB
	registry  *chain.Registry
	addresses sync.Map // network and chain.KeyRef → chain.Address; they never change
	waits     sync.Map // transaction id → the logged reason why its outcome waits
	lost      sync.Map // transaction id → the time since which it is lost; see lostSince
	measures  sync.Map // hash of a sweep → the time of the first try to measure it
	// unreadNonces are the unreadNonce of wallets, by network and address.
	unreadNonces sync.Map
	// unusableNonces are the unusableNonce of wallets, by network and account.
	unusableNonces sync.Map
	firstTips      firstTips
	// disputes are the transactions whose last try by this process ended in a dispute; see Disputes.
	disputes Disputes
}

// New returns a Manager. It starts nothing; the engine calls Step.
func New(c Config) *Manager {
	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.Epoch == nil {
		c.Epoch = func() Epoch { return Epoch{} }
	}

	if c.MaySign == nil {
		c.MaySign = func() bool { return true }
	}

	or := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}

	or(&c.ReplaceAfter, 3*time.Minute)
	or(&c.CancelAfter, 6*time.Hour)
	or(&c.FundsGrace, 10*time.Minute)

	if c.Heartbeat == nil {
		c.Heartbeat = heartbeat.New(heartbeat.Config{
			DB:      heartbeat.Over(c.DB.Update),
			Process: c.Process,
			NewID:   c.IDs.Next,
			Now:     c.Now,
		})
	}

	if c.Batch <= 0 {
		c.Batch = 100
	}

	return &Manager{config: c, db: c.DB, registry: c.Registry}
}

// now returns the time in UTC, truncated to milliseconds.
func (o *Manager) now() time.Time { return o.config.Now().UTC().Truncate(time.Millisecond) }

func unknownNetwork(slug string) error {
	return fault.New(fault.NotFound, "network_unknown", "network %q is not enabled here", slug)
}

// EnqueueTx queues a transaction in the store transaction of the object that needs it: Queued, due now, with
// a new id unless it has one. fault.Invalid: the order lacks a payer, destination or maximum fee.
// fault.Unsupported: the driver cannot send.
func (o *Manager) EnqueueTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
) (wallet.Transaction, error) {
	driver, err := o.registry.Driver(t.Network)
	if err != nil {
		return wallet.Transaction{}, err
	}

	if _, ok := driver.(chain.Sender); !ok {
		return wallet.Transaction{}, fault.New(
			fault.Unsupported, "send_unsupported", "the driver of network %s cannot send",
			t.Network,
		)
	}

	if t.Order.From.Address == "" || len(t.Order.Outputs) == 0 || t.Order.MaxFee.IsZero() || t.Kind == "" {
		return wallet.Transaction{}, fault.New(
			fault.Invalid, "order_invalid",
			"the %s of %s on %s needs a kind, a payer, a destination and a maximum fee",
			t.Kind, t.ObjectID, t.Network,
		)
	}

	if t.ID == "" {
		t.ID = o.config.IDs.Next()
	}

	now := o.now()
	t.State, t.Attempts, t.TxHash, t.Failure, t.Version = wallet.Queued, nil, "", "", 0
	t.BatchMembers, t.BatchedBy, t.Conflict = nil, "", wallet.Conflict{}

	t.CreatedAt, t.ReadyAt, t.DueAt = now, now, now
	if err := tx.PutTransaction(ctx, &t); err != nil {
		return wallet.Transaction{}, err
	}

	return t, tx.AppendEvents(ctx, eventctx.About(t, event.TransactionMoved)...)
}

// CancelTx fails an unsigned transaction as canceled. Errors: fault.State with code transaction_signed for a
// signed transaction, whose bytes may still be included. fault.State with code transaction_awaiting_review
// for a payout that lost records may have sent.
func (o *Manager) CancelTx(
	ctx context.Context,
	tx wallet.Tx,
	transactionID string,
) (wallet.Transaction, error) {
	t, err := tx.Transaction(ctx, transactionID)
	if err != nil {
		return wallet.Transaction{}, err
	}

	if t.State == wallet.Failed && t.Failure == wallet.FailCanceled {
		return t, nil
	}

	if t.State != wallet.Queued {
		return wallet.Transaction{}, fault.New(
			fault.State, "transaction_signed",
			"transaction %s is %s: only one that is not signed can be canceled",
			t.ID, t.State,
		)
	}

	if err := o.refuseReviewTx(ctx, tx, t); err != nil {
		return wallet.Transaction{}, err
	}

	if err := failQueuedTx(ctx, tx, &t, wallet.FailCanceled); err != nil {
		return wallet.Transaction{}, err
	}

	return t, nil
}

// failQueuedTx fails a transaction that is not signed.
func failQueuedTx(ctx context.Context, tx wallet.Tx, t *wallet.Transaction, code string) error {
	if err := walletstate.Fail(t, code); err != nil {
		return err
	}

	if err := tx.PutTransaction(ctx, t); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, eventctx.About(*t, event.TransactionMoved)...)
}

const codeAwaitingReview = "transaction_awaiting_review"

// refuseReviewTx returns fault.State with codeAwaitingReview for a payout that awaitsReview, or whose wallet
// missedEpoch.
func (o *Manager) refuseReviewTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind != wallet.Payout {
		return nil
	}

	now := o.now()

	unrecorded, err := tx.UnrecordedOutgoing(
		ctx, t.Network, t.Order.From.Address, now.Add(-walletstate.ForeignFor),
	)
	if err != nil {
		return err
	}

	waits, err := awaitsReview(ctx, tx, t, unrecorded, now)
	if err == nil && !waits {
		waits, err = o.missedEpoch(ctx, tx, t.Network, t.Order.From)
	}

	if err != nil || !waits {
		return err
	}

	return fault.New(
		fault.State,
		codeAwaitingReview,
		"transaction %s may have been sent before the records were restored: a person has to compare its wallet "+
			"with the network",
		t.ID,
	)
}

// MasterWallet returns the master wallet of an account on a network; accountIndex is the account's index.
func (o *Manager) MasterWallet(
	ctx context.Context,
	network string,
	accountIndex uint32,
) (chain.Party, error) {
	n, ok := o.registry.Network(network)
	if !ok {
		return chain.Party{}, unknownNetwork(network)
	}

	key := chain.KeyRef{Family: n.Family, Livemode: n.Livemode, Role: chain.RoleMaster, Index: accountIndex}
	if address, ok := o.config.WatchOnly[network][accountIndex]; ok {
		return chain.Party{Key: key, Address: address}, nil
	}

	return o.Party(ctx, network, key)
}

// Party returns a key with its address on a network. fault.Unsupported: the driver derives no addresses.
func (o *Manager) Party(ctx context.Context, network string, key chain.KeyRef) (chain.Party, error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return chain.Party{}, err
	}

	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return chain.Party{}, fault.New(
			fault.Unsupported, "send_unsupported",
			"network %s cannot send: its driver makes no addresses",
			network,
		)
	}

	type known struct {
		network string
		key     chain.KeyRef
	}
	if a, ok := o.addresses.Load(known{network, key}); ok {
		return chain.Party{Key: key, Address: a.(chain.Address)}, nil
	}

	public, err := o.config.Signer.PublicKey(ctx, key)
	if err != nil {
		return chain.Party{}, err
	}

	address, err := deriver.DeriveAddress(public)
	if err != nil {
		return chain.Party{}, err
	}

	o.addresses.Store(known{network, key}, address)

	return chain.Party{Key: key, Address: address}, nil
}
