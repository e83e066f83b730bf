// Package engine is where the domains meet: it hands each its view of the store, runs the workers (run.go),
// stores what the followers read (blocks.go), carries what one domain appends to the others that react to it
// (reactions.go), renders events (update.go), and compares the records with the networks (audit.go).
//
// The rules themselves live in invoice, settlement, payout and webhook. Hosts use it through
// package payments.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/deliver"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/seal"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Tx is one transaction over all records.
type Tx = store.Tx

// Config makes an Engine; payments.Config, which has the same fields, documents them.
type Config struct {
	Store         store.Store
	Drivers       []chain.Driver
	Signer        chain.Signer
	Rates         rate.Source
	BaseURL       string
	SecretKey     []byte
	OldSecretKeys [][]byte
	FeeAddresses  map[string]string
	WatchOnly     map[string]map[uint32]string
	OnEvent       func(ctx context.Context, tx store.Tx, ev event.Event) error
	KeyPrefix     string
	QuoteFor      time.Duration
	WebhookAllow  []netip.Prefix
	KeepEvents    time.Duration
	Process       string
	Waker         store.Waker
	Log           *slog.Logger
	Now           func() time.Time
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
	// Ingester takes in what arrives at our addresses.
	Ingester *ingest.Ingester
	// Settlements manages the way of payments to master wallets.
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
	ids       *id.Source
	sealer    *seal.Box
	followers []*follow.Follower
	sweeps    []*balanceSweepLoop // of the followers
	bumps     []*bumpLoop         // of the followers
	streams   streams
	watched   walletWatch

	running sync.Mutex
	wakes   wakes
}

// New checks the configuration and returns an Engine. It starts nothing and asks no network.
func New(c Config) (*Engine, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}

	e := &Engine{config: c}

	var err error
	if e.Networks, err = chain.NewRegistry(c.Drivers...); err != nil {
		return nil, err
	}

	if e.sealer, err = seal.New(append([][]byte{c.SecretKey}, c.OldSecretKeys...)...); err != nil {
		return nil, err
	}

	fees, err := feeAddresses(c.FeeAddresses, e.Networks)
	if err != nil {
		return nil, err
	}

	watchOnly, err := watchOnlyAddresses(c.WatchOnly, e.Networks)
	if err != nil {
		return nil, err
	}

	e.ids = id.New(c.Now, nil)
	e.Rates = rate.NewCache(c.Rates, c.Now)

	e.streams.engine = e
	if err := e.assemble(fees, watchOnly); err != nil {
		return nil, err
	}

	for _, d := range e.Networks.Drivers() {
		f, err := follow.New(follow.Config{
			Driver:    d,
			Sink:      blockHandler{e},
			DB:        view[scan.Tx]{e.config.Store, e, func(tx Tx) scan.Tx { return tx }},
			Owner:     c.Process,
			Now:       c.Now,
			Log:       c.Log,
			Addresses: e.Ingester.AddressesOf(d.Network().Slug),
		})
		if err != nil {
			return nil, err
		}

		e.followers, e.sweeps = append(e.followers, f), append(e.sweeps, newBalanceSweepLoop(e, f))
		e.bumps = append(e.bumps, &bumpLoop{engine: e, follower: f})
	}

	return e, nil
}

// assemble makes the domains' services, each over its own view of the store.
func (e *Engine) assemble(
	fees map[string]chain.Address,
	watchOnly map[string]map[uint32]chain.Address,
) (err error) {
	c := e.config
	if e.Accounts, err = account.New(account.Config{
		DB:        view[account.Tx]{c.Store, e, func(tx Tx) account.Tx { return tx }},
		Registry:  e.Networks,
		IDs:       e.ids,
		Now:       c.Now,
		Entropy:   rand.Reader,
		KeyPrefix: c.KeyPrefix,
	}); err != nil {
		return err
	}

	e.Ingester = ingest.New(ingest.Config{
		DB:       view[ingest.Tx]{c.Store, e, func(tx Tx) ingest.Tx { return tx }},
		Registry: e.Networks,
		Rates:    e.Rates,
		IDs:      e.ids,
		Now:      c.Now,
		Log:      c.Log,
		Kept:     leftoversAt,
	})
	e.Invoices = invoice.New(invoice.Config{
		DB:       view[invoice.Tx]{c.Store, e, func(tx Tx) invoice.Tx { return tx }},
		Registry: e.Networks,
		Rates:    e.Rates,
		Keys:     c.Signer,
		IDs:      e.ids,
		Intake:   e.Ingester,
		Now:      c.Now,
		QuoteFor: c.QuoteFor,
	})
	e.Transactions = txmgr.New(txmgr.Config{
		DB:        view[wallet.Tx]{c.Store, e, func(tx Tx) wallet.Tx { return tx }},
		Registry:  e.Networks,
		Signer:    c.Signer,
		IDs:       e.ids,
		Now:       c.Now,
		Log:       c.Log,
		Process:   c.Process,
		WatchOnly: watchOnly,
	})
	e.Settlements = settlement.New(
		settlement.Config{
			DB:  view[settlement.Tx]{c.Store, e, func(tx Tx) settlement.Tx { return tx }},
			Now: c.Now,
		},
	)
	e.Sweeper = sweep.New(sweep.Config{
		DB:           view[settlement.Tx]{c.Store, e, func(tx Tx) settlement.Tx { return tx }},
		Registry:     e.Networks,
		Outbox:       e.Transactions,
		FeeAddresses: fees,
		Outputs:      e.outputs,
		IDs:          e.ids,
		Now:          c.Now,
		Log:          c.Log,
		Process:      c.Process,
	})
	e.Payouts = payout.New(payout.Config{
		DB:       view[payout.Tx]{c.Store, e, func(tx Tx) payout.Tx { return tx }},
		Registry: e.Networks,
		Sender:   e.Transactions,
		Received: received,
		IDs:      e.ids,
		Now:      c.Now,
		Log:      c.Log,
	})
	e.Deliverer = deliver.New(deliver.Config{
		DB:        view[webhook.Tx]{c.Store, e, func(tx Tx) webhook.Tx { return tx }},
		IDs:       e.ids,
		Seal:      e.sealer,
		HTTP:      deliver.HTTP{Allow: c.WebhookAllow},
		Process:   c.Process,
		Retention: c.KeepEvents,
		Now:       c.Now,
		Log:       c.Log,
	})
	e.Webhooks, err = webhook.New(webhook.Config{
		DB:    view[webhook.Tx]{c.Store, e, func(tx Tx) webhook.Tx { return tx }},
		IDs:   e.ids,
		Seal:  e.sealer,
		Allow: c.WebhookAllow,
		Now:   c.Now,
	})

	return err
}

// complete fills in defaults and says what is missing.
func (c *Config) complete() error {
	missing := func(field, why string) error {
		return fault.New(fault.Invalid, "config_invalid", "payments.Config.%s %s", field, why)
	}

	switch {
	case c.Store == nil:
		return missing("Store", "is missing")
	case len(c.Drivers) == 0:
		return missing("Drivers", "is empty: give at least one network")
	case c.Signer == nil:
		return missing("Signer", "is missing")
	case c.Rates == nil:
		return missing("Rates", "is missing")
	case len(c.SecretKey) != 32:
		return missing(
			"SecretKey",
			"must be 32 random bytes (openssl rand -hex 32), kept outside the database",
		)
	case len(c.Process) > maxProcess:
		return missing("Process", "is longer than 200 bytes")
	}

	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return missing("BaseURL", `must be an absolute URL such as "https://pay.example.com"`)
	}

	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.KeyPrefix == "" {
		c.KeyPrefix = "pay"
	}

	if c.KeepEvents == 0 {
		c.KeepEvents = 30 * 24 * time.Hour
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.Process == "" {
		var b [8]byte
		rand.Read(b[:])
		c.Process = hex.EncodeToString(b[:])
	}

	if c.Waker == nil {
		c.Waker, _ = c.Store.(store.Waker)
	}

	return nil
}

func feeAddresses(configured map[string]string, networks *chain.Registry) (map[string]chain.Address, error) {
	out := make(map[string]chain.Address, len(configured))
	for slug, s := range configured {
		d, err := networks.Driver(slug)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid",
				"payments.Config.FeeAddresses names network %q",
				slug,
			)
		}

		if out[slug], err = d.ParseAddress(s); err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid", "payments.Config.FeeAddresses[%q]", slug,
			)
		}
	}

	return out, nil
}

func watchOnlyAddresses(
	configured map[string]map[uint32]string,
	networks *chain.Registry,
) (map[string]map[uint32]chain.Address, error) {
	out := make(map[string]map[uint32]chain.Address, len(configured))
	for slug, wallets := range configured {
		d, err := networks.Driver(slug)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid", "payments.Config.WatchOnly names network %q",
				slug,
			)
		}

		out[slug] = make(map[uint32]chain.Address, len(wallets))
		for index, s := range wallets {
			if out[slug][index], err = d.ParseAddress(s); err != nil {
				return nil, fault.Wrap(
					err, fault.Invalid, "config_invalid", "payments.Config.WatchOnly[%q][%d]", slug,
					index,
				)
			}
		}
	}

	return out, nil
}

// Store returns the store, for reading.
func (e *Engine) Store() store.Reader { return e.config.Store }

// Sealer seals and opens what is stored encrypted.
func (e *Engine) Sealer() *seal.Box { return e.sealer }

// Log returns the logger.
func (e *Engine) Log() *slog.Logger { return e.config.Log }

// Now returns the time.
func (e *Engine) Now() time.Time { return e.config.Now() }

// BaseURL returns where payers reach the handlers, without a trailing slash.
func (e *Engine) BaseURL() string { return e.config.BaseURL }

// CheckoutBase returns what an invoice's id is appended to for its checkout_url.
func (e *Engine) CheckoutBase() string { return e.config.BaseURL + "/checkout/" }

// NewID returns a new object id.
func (e *Engine) NewID() string { return e.ids.Next() }
