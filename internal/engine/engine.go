// Package engine connects the domains. It gives each its view of the store (services.go), runs the workers
// (run.go), stores the followers' batches (blocks.go), runs the reactions to events (reactions.go), and
// stores and renders events (update.go).
//
// The rules themselves are in invoice, settlement, payout and webhook. Hosts use it through package payments.
//
// It is one package because only here a transaction of one domain reaches the others, by one list of
// reactions.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/addresspool"
	"github.com/seed-8ee7f392/payments/internal/auditor"
	"github.com/seed-8ee7f392/payments/internal/deliver"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/gate"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/pricecache"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/internal/seal"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/uncovered"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Tx is one transaction of an Engine: the transaction of its store, with the reads of other domains that
// domains need. It is the public payments.Tx.
type Tx = interface {
	store.Tx
	payout.Tx
}

// Of returns the engine inside a *payments.Engine, for the packages of this module that serve it. Package
// payments sets it.
var Of func(e any) *Engine

// Engine is the running service's state: its domains, ready to be called. It is safe for concurrent use.
type Engine struct {
	// Accounts manages merchants, their settings and API keys.
	Accounts *account.Service
	// Invoices manages invoices, payments and deposit addresses.
	Invoices *invoice.Service
	// Ingester matches, credits and confirms transfers to our addresses.
	Ingester *ingest.Ingester
	// Settlements manages how payments reach master wallets.
	Settlements *settlement.Service
	// Payouts manages payouts and refunds.
	Payouts *payout.Service
	// Sweeper releases settlements.
	Sweeper *sweep.Sweeper
	// Transactions builds, sends and tracks our own transactions.
	Transactions *txmgr.Manager
	// Deliverer sends webhooks.
	Deliverer *deliver.Deliverer
	// Webhooks manages endpoints, events and deliveries.
	Webhooks *webhook.Service
	// Networks are the networks and assets that are served.
	Networks *chain.Registry
	// Rates prices assets, cached.
	Rates rate.Source

	config    Config
	checkouts string // the prefix of checkout URLs
	ids       *id.Source
	sealer    *seal.Sealer
	heartbeat *heartbeat.Heartbeat
	followers []*follow.Follower
	bumps     []*bumpLoop // by index of followers
	fees      map[string]chain.Address
	streams   streams
	watched   walletWatch
	gate      *gate.Gate
	addresses *addresspool.Pool
	uncovered *uncovered.Canceler
	settings  verifiedSettings

	requests requestkey.Running

	epoch    epoch
	unserved unserved

	attention attention
	seeds     seeds

	running sync.Mutex
	steps   []worker // of Step
	work    workLog
	nodes   nodeWatch
	clock   clock
	wakes   wakes
}

// New checks the configuration and returns an Engine. It starts nothing and calls no network.
//
// Errors: fault.Invalid for a configuration that cannot work; it names the field.
func New(c Config) (*Engine, error) {
	injected := c.Now != nil
	if err := c.complete(); err != nil {
		return nil, err
	}

	e := &Engine{config: c, epoch: epoch{begins: make(chan struct{}, 1)}}
	e.checkouts = c.BaseURL + "/checkout/"
	began := time.Now()
	e.clock.injected, e.clock.now = injected, c.Now
	e.clock.elapsed = func() time.Duration { return time.Since(began) }

	var err error
	if e.Networks, err = chain.NewRegistry(c.Drivers...); err != nil {
		return nil, fmt.Errorf("payments.Config.Drivers: %w", err)
	}

	if e.sealer, err = seal.New(append([][]byte{c.SecretKey}, c.OldSecretKeys...)...); err != nil {
		return nil, fmt.Errorf("payments.Config.SecretKey, or OldSecretKeys from key 2 on: %w", err)
	}

	e.sealer.UseEntropy(c.Entropy)

	// Only the sealer keeps the keys. fmt follows the pointers of any struct that holds this engine in an
	// unexported field, and calls no method on the way.
	e.config.SecretKey, e.config.OldSecretKeys = nil, nil

	fees, err := feeAddresses(c.FeeAddresses, e.Networks)
	if err != nil {
		return nil, err
	}

	e.fees = fees

	watchOnly, err := watchOnlyAddresses(c.WatchOnly, e.Networks)
	if err != nil {
		return nil, err
	}

	e.ids = id.New(c.Now, c.Entropy)
	e.Rates = pricecache.New(newLimitedRates(c), c.Now)

	e.heartbeat = heartbeat.New(heartbeat.Config{
		DB:      view[lease.Tx]{e.records(), e, func(tx Tx) lease.Tx { return tx }},
		Process: c.Process,
		Failing: func() []string { return e.work.failures(c.Now()) },
		NewID:   e.ids.Next,
		Now:     c.Now,
	})

	e.streams.engine = e
	if err := e.assemble(fees, watchOnly); err != nil {
		return nil, err
	}

	e.wakes.delivering, e.wakes.showing = e.Deliverer.Wake, e.streams.wake

	for _, d := range e.Networks.Drivers() {
		f, err := follow.New(follow.Config{
			Driver:    d,
			Handler:   blockHandler{e},
			DB:        view[scan.Tx]{e.records(), e, func(tx Tx) scan.Tx { return tx }},
			Heartbeat: e.heartbeat,
			Now:       c.Now,
			Log:       c.Log,
			Addresses: e.Ingester.AddressesOf(d.Network().Slug),
			Own:       e.ownIn(d.Network().Slug),

			FirstAddress: e.firstAddress(d.Network()),
		})
		if err != nil {
			return nil, err
		}

		e.followers = append(e.followers, f)
		e.bumps = append(e.bumps, &bumpLoop{engine: e, follower: f})
	}

	return e, nil
}

// Store returns the store, for reading.
func (e *Engine) Store() store.Reader { return e.records() }

// Sealer returns the sealer of encrypted records.
func (e *Engine) Sealer() *seal.Sealer { return e.sealer }

// Requests returns the Idempotency-Keys whose requests run in this process, in all its handlers.
func (e *Engine) Requests() *requestkey.Running { return &e.requests }

// Log returns the logger.
func (e *Engine) Log() *slog.Logger { return e.config.Log }

// Now returns the time.
func (e *Engine) Now() time.Time { return e.config.Now() }

// Limits returns the budgets against overuse, complete.
func (e *Engine) Limits() limits.Table { return e.config.Limits }

// KeepEvents returns how long events and ended deliveries are kept.
func (e *Engine) KeepEvents() time.Duration {
	return cmp.Or(e.config.KeepEvents, deliver.DefaultRetention)
}

// Entropy returns the source of randomness.
func (e *Engine) Entropy() io.Reader { return e.config.Entropy }

// BaseURL returns the URL at which payers reach the handlers, without a trailing slash.
func (e *Engine) BaseURL() string { return e.config.BaseURL }

// CheckoutBase returns the prefix of checkout URLs; the invoice's id follows it.
func (e *Engine) CheckoutBase() string { return e.checkouts } // spec D10.1

// NewID returns a new object id.
func (e *Engine) NewID() string { return e.ids.Next() }

// Audit compares the records with the networks; see payments.Engine.Audit.
func (e *Engine) Audit(ctx context.Context) (audit.Report, error) {
	accounts, err := e.allAccounts(ctx)
	if err != nil {
		return audit.Report{}, err
	}

	return auditor.Audit(ctx, auditor.Config{
		Store:        e.config.Store,
		Networks:     e.Networks,
		Accounts:     accounts,
		MasterWallet: e.Transactions.MasterWallet,
		Now:          e.config.Now,
	})
}

// allAccounts returns every account.
func (e *Engine) allAccounts(ctx context.Context) (all []account.Account, err error) {
	after := ""
	for {
		page, err := e.config.Store.Accounts(ctx, after, accountsPage)
		if err != nil {
			return nil, err
		}

		all = append(all, page...)
		if len(page) < accountsPage {
			return all, nil
		}

		after = page[len(page)-1].ID
	}
}
