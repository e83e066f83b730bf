// Package payments takes and sends crypto payments inside a Go service: invoices with a hosted checkout
// page, deposit addresses, settlements to a master wallet, payouts, refunds and signed webhooks, on EVM
// networks, Bitcoin, Solana and Tron.
//
// A host gives New a store, chain drivers, a signer and a source of prices, calls Engine.Run, and mounts
// httpapi.Handler and checkout.Handler. Any number of such processes over one PostgreSQL make one service.
//
// This package is where the domains meet and nothing else: the Engine hands each its narrowed view of the
// store, runs their workers (run.go), and carries what one of them appends to the others that react to it
// (reactions.go). The rules themselves live in invoice, settlement, payout and webhook.
package payments

import (
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
	"github.com/seed-8ee7f392/payments/fault"
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

type (
	// Store keeps the records; see package store.
	Store = store.Store
	// Tx is one transaction over all records.
	Tx = store.Tx
	// ChainDriver reads one network; see package chain for what else it can do.
	ChainDriver = chain.Driver
)

// Config makes an Engine. Store, Drivers, Signer, Rates, BaseURL and SecretKey are required.
type Config struct {
	Store   Store
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
	// Log defaults to slog.Default(). Now defaults to time.Now.
	Log *slog.Logger
	Now func() time.Time
}

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
	// Outbox makes our own transactions happen.
	Outbox *txmgr.Outbox
	// Webhooks manages endpoints, events and deliveries.
	Webhooks *webhook.Service
	// Networks are the networks and assets that are served.
	Networks *chain.Registry
	// Rates prices assets, cached.
	Rates rate.Source

	config    Config
	ids       *id.Source
	box       *seal.Box
	followers []*follow.Follower
	rounds    []*depositRounds // of the followers
	lifts     []*lifts         // of the followers
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

	if e.box, err = seal.New(append([][]byte{c.SecretKey}, c.OldSecretKeys...)...); err != nil {
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
			Sink:      sink{e},
			DB:        narrow[scan.Tx]{e.config.Store, e},
			Owner:     c.Process,
			Now:       c.Now,
			Log:       c.Log,
			Addresses: e.Ingester.AddressesOf(d.Network().Slug),
		})
		if err != nil {
			return nil, err
		}

		e.followers, e.rounds = append(e.followers, f), append(e.rounds, newDepositRounds(e, f))
		e.lifts = append(e.lifts, &lifts{engine: e, follower: f})
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
		DB:        narrow[account.Tx]{c.Store, e},
		Registry:  e.Networks,
		IDs:       e.ids,
		Now:       c.Now,
		Entropy:   rand.Reader,
		KeyPrefix: c.KeyPrefix,
	}); err != nil {
		return err
	}

	e.Ingester = ingest.New(ingest.Config{
		DB:       narrow[invoice.Tx]{c.Store, e},
		Registry: e.Networks,
		Rates:    e.Rates,
		IDs:      e.ids,
		Now:      c.Now,
		Log:      c.Log,
		Kept:     kept,
	})
	e.Invoices = invoice.New(invoice.Config{
		DB:       narrow[invoice.Tx]{c.Store, e},
		Registry: e.Networks,
		Rates:    e.Rates,
		Keys:     c.Signer,
		IDs:      e.ids,
		Intake:   e.Ingester,
		Now:      c.Now,
		QuoteFor: c.QuoteFor,
	})
	e.Outbox = txmgr.New(txmgr.Config{
		DB:        narrow[wallet.Tx]{c.Store, e},
		Registry:  e.Networks,
		Signer:    c.Signer,
		IDs:       e.ids,
		Now:       c.Now,
		Log:       c.Log,
		Process:   c.Process,
		WatchOnly: watchOnly,
	})
	e.Settlements = settlement.New(settlement.Config{DB: narrow[settlement.Tx]{c.Store, e}, Now: c.Now})
	e.Sweeper = sweep.New(sweep.Config{
		DB:           narrow[settlement.Tx]{c.Store, e},
		Registry:     e.Networks,
		Outbox:       e.Outbox,
		FeeAddresses: fees,
		Outputs:      outputs,
		IDs:          e.ids,
		Now:          c.Now,
		Log:          c.Log,
		Process:      c.Process,
	})
	e.Payouts = payout.New(payout.Config{
		DB:       narrow[payout.Tx]{c.Store, e},
		Registry: e.Networks,
		Sender:   e.Outbox,
		Received: received,
		IDs:      e.ids,
		Now:      c.Now,
		Log:      c.Log,
	})
	e.Webhooks, err = webhook.New(webhook.Config{
		DB:        narrow[webhook.Tx]{c.Store, e},
		Seal:      e.box,
		HTTP:      webhook.HTTP{Allow: c.WebhookAllow},
		IDs:       e.ids,
		Now:       c.Now,
		Log:       c.Log,
		Process:   c.Process,
		Retention: c.KeepEvents,
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
func (e *Engine) Sealer() *seal.Box { return e.box }

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
