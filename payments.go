// Package payments takes and sends crypto payments inside a Go service: invoices with a hosted checkout
// page, deposit addresses, settlements to a master wallet, payouts, refunds and signed webhooks, on EVM
// networks, Bitcoin, Solana and Tron.
//
// A host gives New a store, chain drivers, a signer and a source of prices, calls Engine.Run, and mounts
// httpapi.Handler and checkout.Handler. Any number of such processes over one PostgreSQL or MariaDB make one
// service.
//
// What merchants do is in the domains, which are the Engine's fields: invoice, settlement, payout, webhook
// and account. Drivers implement package chain, stores package store; conformance has the suites for both.
package payments

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/netip"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

type (
	// Store keeps the records; see package store.
	Store = store.Store

	// Tx is one transaction of an Engine: the transaction of its Store, with the reads that refunds need.
	Tx = interface {
		store.Tx
		payout.Tx
	}

	// ChainDriver reads one network; package chain has its further abilities.
	ChainDriver = chain.Driver

	// ForeignPolicy is a value of Config.Foreign.
	ForeignPolicy = wallet.ForeignPolicy

	// EventHook handles an event in the host's code; see Config.OnEvent.
	EventHook = func(ctx context.Context, tx Tx, ev event.Event) error
)

// The policies for transactions of master wallets that are not on record.
const (
	// FreezeWallet freezes the wallet until Engine.Acknowledge.
	FreezeWallet = wallet.FreezeWallet
	// Tolerate freezes the wallet only for a transaction that equals a waiting payout.
	Tolerate = wallet.Tolerate

	// Foreign, passed to Engine.Acknowledge, means that a transaction fulfils nothing on record.
	Foreign = wallet.Foreign
)

// Config configures an Engine. Store, Drivers, Signer, Rates, BaseURL and SecretKey are required.
type Config struct {
	// Store keeps the records: sqlite.Open, postgres.New, memory.New, or your own.
	Store Store

	// Drivers read and write the networks, one driver for each.
	Drivers []ChainDriver

	// Signer holds the keys of deposit addresses and master wallets.
	Signer chain.Signer

	// Rates prices assets. The Engine caches it: each pair is read once per freshness time.
	Rates rate.Source

	// BaseURL is where payers reach the mounted handlers: "https://pay.example.com", followed by the path under
	// which they are mounted, if any. A checkout page is at BaseURL/checkout/<invoice id>.
	BaseURL string

	// SecretKey encrypts signing secrets and stored answers: 32 random bytes, kept outside the database.
	SecretKey []byte

	// OldSecretKeys decrypt data that was encrypted before SecretKey was rotated.
	OldSecretKeys [][]byte

	// FeeAddresses receive the platform fee, by network slug. On a network without one, fees are carried.
	FeeAddresses map[string]string

	// WatchOnly names master wallets whose keys this service does not have, by network slug and
	// account.Account.Index. They receive settlements; a payout from one fails as
	// signer_refused:watch_only.
	WatchOnly map[string]map[uint32]string

	// Foreign is the policy for transactions of master wallets that are not on record. Defaults to
	// FreezeWallet. Tolerate is for merchants who also spend by hand.
	Foreign ForeignPolicy

	// Epoch counts how often the records were replaced by older ones. Raise it by 1 after the store was
	// restored from a backup, or after a replica that lagged was promoted. Every wallet then waits for
	// Unfreeze, and numbers that were given out before are skipped. At most 1,024.
	Epoch uint64

	// ReplaceAfter is how long a transaction waits for a block before a transaction that pays more replaces
	// it. Where a network states its current fee, a transaction that pays it is not replaced. Defaults to 3
	// minutes.
	ReplaceAfter time.Duration

	// MaxFeeShare is a share of a payout's amount. A payout whose maximum network fee exceeds it needs a
	// person's approval, unless that fee is at most 5 USD or the request names it. Defaults to 0.5.
	MaxFeeShare decimal.Decimal

	// OnEvent runs for every event inside the event's transaction: its writes commit with the event or not at
	// all. It may run twice for one event when the transaction is retried. It must not call a network. It
	// must read and write through tx alone. A read through the Engine takes a second connection of the pool.
	// If hooks hold all connections while each waits for a second one, they wait for ever.
	OnEvent EventHook

	// KeyPrefix begins API keys, 1 to 16 of a-z and 0-9. Defaults to "pay".
	KeyPrefix string

	// QuoteFor is how long a quoted amount is valid, at least 1 minute. Defaults to 20 minutes.
	QuoteFor time.Duration

	// Limits are the budgets against overuse. Each has a default.
	Limits limits.Table

	// WebhookAllow are otherwise forbidden address ranges that webhooks may be delivered to: for
	// tests and intranets.
	WebhookAllow []netip.Prefix

	// KeepEvents is how long events and deliveries are kept, at least 24 hours. A pending delivery is kept
	// until it has ended, with its event. Defaults to 30 days.
	KeepEvents time.Duration

	// Webhooks sets how many webhooks this process sends at once, and how long it waits for answers.
	Webhooks webhook.Policy

	// Process names this process in leases and wake-ups; unique among all processes over one store,
	// at most 190 bytes. Defaults to a random name.
	Process string

	// Waker publishes wake-ups to the other processes, such as store/redis. Defaults to the Store, if it
	// implements store.Waker. Without one, processes find each other's work when they poll.
	Waker store.Waker

	// Log defaults to slog.Default().
	Log *slog.Logger

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time

	// Entropy is the source of ids, API keys, webhook secrets, sealing nonces and jitter, for tests only.
	// Whoever can predict it can forge keys: never replace the default in production. It must be safe for
	// concurrent use. Defaults to crypto/rand.
	Entropy io.Reader
}

// Engine is a payment service inside the host's process. It is safe for concurrent use.
type Engine struct {
	// Accounts manages merchants, their settings and API keys.
	Accounts *account.Service

	// Invoices manages invoices, payments and deposit addresses.
	Invoices *invoice.Service

	// Settlements manages how payments reach master wallets.
	Settlements *settlement.Service

	// Payouts manages payouts and refunds.
	Payouts *payout.Service

	// Webhooks manages endpoints, events and deliveries.
	Webhooks *webhook.Service

	// Networks are the networks and assets that are served.
	Networks *chain.Registry

	// Rates prices assets, cached.
	Rates rate.Source

	core *engine.Engine
}

func init() {
	engine.Of = func(e any) *engine.Engine { return e.(*Engine).core }
}

// New checks the configuration and returns an Engine. It starts nothing and calls no network.
//
// Errors: fault.Invalid for a configuration that cannot work; it names the field.
func New(c Config) (*Engine, error) {
	core, err := engine.New(engine.Config(c))
	if err != nil {
		return nil, err
	}

	return &Engine{
		Accounts:    core.Accounts,
		Invoices:    core.Invoices,
		Settlements: core.Settlements,
		Payouts:     core.Payouts,
		Webhooks:    core.Webhooks,
		Networks:    core.Networks,
		Rates:       core.Rates,
		core:        core,
	}, nil
}

// Run follows the networks, expires invoices, releases settlements, sends transactions and delivers
// webhooks until ctx ends. When it returns, nothing of it runs any more and its leases are released.
// It returns nil when ctx ended.
//
// Errors: fault.State while another Run or Step of this engine is running; fault.Unavailable (signer_mismatch) when
// Config.Signer is not the one that made the addresses on record, which the error names.
func (e *Engine) Run(ctx context.Context) error {
	return e.core.Run(ctx)
}

// Step does one bounded batch of each kind of work, one after the other, and reports whether it found work.
// It is what Run repeats, for a host that schedules the work itself. If one kind fails, the others still run;
// their errors are joined. This process keeps the leases of the networks until it no longer calls Step.
//
// Errors: fault.State while another Run or Step of this engine is running; fault.Unavailable
// (signer_mismatch) when Config.Signer is not the one that made the addresses on record, which the error
// names.
func (e *Engine) Step(ctx context.Context) (did bool, err error) {
	return e.core.Step(ctx)
}

// Update runs f in one transaction. Before it commits, and inside it, the domains react to the events that f
// appended, the events are stored with their webhook deliveries, and Config.OnEvent is called.
//
// f may run more than once: it assigns and never appends to captured variables, and does no network call.
func (e *Engine) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	return e.core.Update(ctx, f)
}

// UpdateIn runs f as Update does, inside a transaction of the host that Join of a SQL store made.
// f runs once. The host commits, and then calls Wake. After an error it rolls back: the joined transaction, and the
// flush that Join returned with it, fail with fault.State (transaction_broken).
//
// Errors:
//   - fault.Conflict: a record was changed meanwhile
//   - fault.Unavailable (epoch_not_begun): a new Config.Epoch begins in a transaction of its own, which comes first
func (e *Engine) UpdateIn(
	ctx context.Context,
	joined store.Tx,
	f func(ctx context.Context, tx Tx) error,
) error {
	return e.core.UpdateIn(ctx, joined, f)
}

// Wake wakes the workers of this process and publishes a wake-up to other processes through Config.Waker. It
// does not wait for either. Engine.Update wakes the workers by itself. A host calls Wake after it has
// committed a transaction in which it used UpdateIn.
func (e *Engine) Wake() {
	e.core.Wake()
}

// Watch yields an invoice now and after every change of it, until ctx ends or the caller stops. A pending
// invoice is also yielded at every new block of its network, so that confirmations can be counted.
// One poller per process feeds all streams with one query.
func (e *Engine) Watch(ctx context.Context, invoiceID string) iter.Seq2[invoice.Invoice, error] {
	return e.core.Watch(ctx, invoiceID)
}

// Health returns the state of every network, of each kind of work, of the other processes and of due
// webhooks. It also returns the wallets that need a person. If something cannot be read, its check fails; the
// only error is that of ctx.
func (e *Engine) Health(ctx context.Context) (health.Report, error) {
	return e.core.Health(ctx)
}

// Resume restarts a stopped network after a person looked into the reason that Health names. The engine then
// trusts the node's answers anew, even for a fork below finality.
//
// If no node has the block after the last one that was read, reading goes on at the first block that a node has.
// Health, the audit and the log name the blocks between. Payments in them are found by balances, and the blocks
// are read once a node has them.
//
// Errors: fault.State (network_not_stopped); fault.NotFound for a network that is not configured;
// fault.Unavailable while no node answers, and the network stays stopped.
func (e *Engine) Resume(ctx context.Context, network string) error {
	return e.core.Resume(ctx, network)
}

// Acknowledge records what a final transaction of a wallet was, when that transaction is not on record. The
// parameter as holds the ids of the payouts, refunds or settlements that it fulfils, or Foreign. Those
// objects move on with their events, as if the transaction had been their own. Once every such transaction of
// a wallet is acknowledged, the wallet is no longer frozen. Acknowledge is idempotent.
//
// A payout that has failed stays failed: the transaction is then recorded as Foreign, with the payout's id. A
// payout that equals a Foreign transaction of the last 7 days waits until Acknowledge names it. Pass its id
// alone if the transaction paid it, or Foreign and its id if it is to be paid as well.
//
// Native coin that the transaction sent to an address of ours may have been a top-up, and is withheld. If it
// was a payment, pass Foreign and the id of the invoice or deposit address: then it is credited.
//
// A transaction of a deposit address that waits in the pool may be Foreign as well: the address signs again.
//
// Errors: fault.NotFound for a transaction that is in no block read so far, and not in the pool; fault.State
// with code transaction_not_final, transaction_mismatch or transaction_acknowledged; fault.Invalid for ids
// that name nothing.
func (e *Engine) Acknowledge(ctx context.Context, network, txHash string, as ...string) error {
	return e.core.Acknowledge(ctx, network, txHash, as...)
}

// Unfreeze ends the freeze that a new Config.Epoch began. Call it after a person has compared the master
// wallet of an account with the chain and the pool of a network. accountID "" stands for all accounts. It is
// idempotent.
//
// Errors: fault.State with code transaction_unacknowledged while a transaction that is not on record waits
// for Acknowledge: its wallet stays frozen.
func (e *Engine) Unfreeze(ctx context.Context, network, accountID string) error {
	return e.core.Unfreeze(ctx, network, accountID)
}

// Check verifies with every driver that is a chain.Checker that its node serves the configured network, and
// returns the joined errors.
func (e *Engine) Check(ctx context.Context) error {
	return e.core.Check(ctx)
}

// Audit compares the records with the network for every address of ours. It reports each difference between
// the recorded balance and the balance at the newest block whose payments are stored.
//
// It changes nothing and may run beside the workers. It reads every record and the balance of every address,
// so it belongs in a quiet hour, not in a request. It never returns a partial report.
//
// Errors: fault.Unavailable when the store or a node does not answer.
func (e *Engine) Audit(ctx context.Context) (audit.Report, error) {
	return e.core.Audit(ctx)
}

// Recover queues a transaction that moves stray money to the master wallet of the address' owner. Stray money
// is at an address of ours, in account, and in no balance: an entry of audit.Network.Strays. The transaction
// moves all of it and nothing else; audit.Network.Recoveries shows its progress. While a recovery of the
// account is on its way, Recover returns that one, so it may be called again after an error.
//
// Errors: fault.NotFound with code stray_unknown or address_unknown; fault.Invalid (not_recoverable) for
// money that cannot be moved as it stands, such as in a frozen account; fault.State (insufficient_balance)
// when the master wallet cannot pay the fee; fault.Unsupported (recovery_unsupported) on networks without
// strays; fault.Unavailable when the store or a node does not answer.
func (e *Engine) Recover(ctx context.Context, network, address, account string) (audit.Recovery, error) {
	return e.core.Recover(ctx, network, address, account)
}

// Reseal encrypts every webhook signing secret with Config.SecretKey, authenticates every account, API key
// and address with it, and returns how many rows it changed. These rows then no longer need OldSecretKeys.
// Call it once all processes run with the new key; it is idempotent.
//
// Reseal leaves stored answers to requests with an Idempotency-Key alone: they expire after 24 hours. It also
// leaves payouts alone: keep their old key until they have ended. A row that fails does not stop the others.
// The error names it; keep its old key until the row is repaired.
func (e *Engine) Reseal(ctx context.Context) (done int, err error) {
	return e.core.Reseal(ctx)
}
