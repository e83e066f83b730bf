// Package payments takes and sends crypto payments inside a Go service: invoices with a hosted checkout
// page, deposit addresses, settlements to a master wallet, payouts, refunds and signed webhooks, on EVM
// networks, Bitcoin, Solana and Tron.
//
// A host gives New a store, chain drivers, a signer and a source of prices, calls Engine.Run, and mounts
// httpapi.Handler and checkout.Handler. Any number of such processes over one PostgreSQL make one service.
//
// What merchants do is in the domains, which are the Engine's fields: invoice, settlement, payout, webhook
// and account. Drivers implement package chain, stores package store; conformance has the suites for both.
package payments

import (
	"context"
	"iter"
	"log/slog"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

type (
	// Store keeps the records; see package store.
	Store = store.Store

	// Tx is one transaction over all records.
	Tx = store.Tx

	// ChainDriver reads one network; see package chain for what else it can do.
	ChainDriver = chain.Driver

	// EventHook is the host's own reaction to an event; see Config.OnEvent.
	EventHook = func(ctx context.Context, tx Tx, ev event.Event) error
)

// Config makes an Engine. Store, Drivers, Signer, Rates, BaseURL and SecretKey are required.
type Config struct {
	// Store keeps the records: sqlite.Open, postgres.New, memory.New, or your own.
	Store Store

	// Drivers read the networks, one each.
	Drivers []ChainDriver

	// Signer holds the keys of deposit addresses and master wallets.
	Signer chain.Signer

	// Rates prices assets. It is asked once per pair and freshness time: the Engine puts a cache over it.
	Rates rate.Source

	// BaseURL is where payers reach the mounted handlers, without a path: "https://pay.example.com".
	BaseURL string

	// SecretKey seals signing secrets and stored answers: 32 random bytes, kept outside the database.
	SecretKey []byte

	// OldSecretKeys still open what was sealed before a rotation.
	OldSecretKeys [][]byte

	// FeeAddresses receive the platform fee, by network slug. Where there is none, fees are carried.
	FeeAddresses map[string]string

	// WatchOnly names master wallets whose keys this service does not have, by network slug and
	// account.Account.Index. They receive settlements; a payout from one fails as
	// signer_refused:watch_only.
	WatchOnly map[string]map[uint32]string

	// OnEvent runs for every event inside the transaction that makes it true: what it writes
	// commits with it or not at all. It may run twice for one event when the transaction is run
	// again; it must not call a network.
	OnEvent EventHook

	// KeyPrefix begins API keys, 2 to 12 lower-case letters. Defaults to "pay".
	KeyPrefix string

	// QuoteFor is how long an amount due holds. Defaults to 20 minutes.
	QuoteFor time.Duration

	// WebhookAllow are otherwise forbidden address ranges that webhooks may be delivered to: for
	// tests and intranets.
	WebhookAllow []netip.Prefix

	// KeepEvents is how long events and deliveries are kept. Defaults to 30 days.
	KeepEvents time.Duration

	// Process names this process in leases and wake-ups; unique among all processes over one store,
	// at most 200 bytes. Defaults to a random name.
	Process string

	// Waker tells the other processes of work that this one made, such as store/redis. Defaults to
	// the Store, if it can. Without one, a process notices what others did when it polls.
	Waker store.Waker

	// Log defaults to slog.Default().
	Log *slog.Logger

	// Now tells the time. Defaults to time.Now.
	Now func() time.Time
}

// Engine is a payment service inside the host's process. It is safe for concurrent use.
type Engine struct {
	// Accounts manages merchants, their settings and API keys.
	Accounts *account.Service

	// Invoices manages invoices, payments and deposit addresses.
	Invoices *invoice.Service

	// Settlements shows and steers how payments reach master wallets.
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

// New checks the configuration and returns an Engine. It starts nothing and asks no network. A configuration
// that cannot work is fault.Invalid and names the field.
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
// webhooks until ctx ends; when it returns, nothing of it runs any more and its leases are given back.
// A second Run at the same time answers fault.State. The error of an orderly end is nil.
func (e *Engine) Run(ctx context.Context) error {
	return e.core.Run(ctx)
}

// Step does one bounded batch of each kind of work, one after the other, and reports whether any of
// them found something to do: what Run does over and over, for a host that decides itself when work
// is done. Work that fails does not keep the other kinds back; the errors come back joined. Beside
// Run or another Step it answers fault.State. The networks it followed stay this process's until
// their leases run out.
func (e *Engine) Step(ctx context.Context) (did bool, err error) {
	return e.core.Step(ctx)
}

// Update runs f in one transaction. Before it commits, the reactions of the domains to the events that f
// appended run, the events are rendered and stored, their webhook deliveries are made and Config.OnEvent
// is called, all in the same transaction. f may run more than once: it assigns and never appends to what it
// captured, and does no network call.
func (e *Engine) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	return e.core.Update(ctx, f)
}

// UpdateIn is Update inside a transaction of the host's own, as postgres.Join or sqlite.Join made
// it. It never runs f again: a conflict goes to the host as fault.Conflict. The host commits.
func (e *Engine) UpdateIn(
	ctx context.Context,
	joined store.Tx,
	f func(ctx context.Context, tx Tx) error,
) error {
	return e.core.UpdateIn(ctx, joined, f)
}

// Wake has every worker of this process look for work now, and tells the other processes if
// Config.Waker can. It does not wait for that. A host calls it after it has committed what it made
// with UpdateIn.
func (e *Engine) Wake() {
	e.core.Wake()
}

// Watch yields an invoice now and after every change of it, until ctx ends or the caller stops. While it is
// pending it is also yielded when its network shows a new block, so that confirmations can be counted.
// However many streams are open, one poller per process feeds them all with one query.
func (e *Engine) Watch(ctx context.Context, invoiceID string) iter.Seq2[invoice.Invoice, error] {
	return e.core.Watch(ctx, invoiceID)
}

// Health reads how every network is doing.
func (e *Engine) Health(ctx context.Context) (health.Report, error) {
	return e.core.Health(ctx)
}

// Resume lets a network that was stopped be read again, after a person looked into the reason that Health
// names. What the node says is then trusted anew, a fork below finality included.
func (e *Engine) Resume(ctx context.Context, network string) error {
	return e.core.Resume(ctx, network)
}

// Check asks every driver that can (evm.Driver and others) whether its node is the network it is
// configured to be.
func (e *Engine) Check(ctx context.Context) error {
	return e.core.Check(ctx)
}

// Audit recomputes from payments, settlements, payouts, refunds and transactions what every address
// of ours must hold, reads what it does hold at the newest block whose payments are stored, and
// reports each difference. It changes nothing and may run beside the workers. It reads every record
// and the balance of every address, so it belongs into a quiet hour, not into a request. A store or
// node without an answer is fault.Unavailable: no half of an audit is ever returned.
func (e *Engine) Audit(ctx context.Context) (audit.Report, error) {
	return e.core.Audit(ctx)
}

// Reseal encrypts every webhook signing secret anew with Config.SecretKey, so that the keys in
// OldSecretKeys that sealed them are needed no longer, and returns how many endpoints it did. Call
// it once, when all processes run with the new key. Stored answers to requests with an
// Idempotency-Key are not touched: they end after 24 hours. An endpoint that fails stops no other;
// the error names it, and its key has to stay until it is dealt with. To call it again does no
// harm.
func (e *Engine) Reseal(ctx context.Context) (done int, err error) {
	return e.core.Reseal(ctx)
}
