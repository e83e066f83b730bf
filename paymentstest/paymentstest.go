// Package paymentstest runs a whole payment service inside a test: a store in memory, a simulated network, fixed
// prices, and a clock that the test moves. Nothing in it waits, and nothing runs beside the test.
//
//	service := paymentstest.New(t)
//	inv := service.Invoice("25.00", "USD")
//	inv = service.Pay(inv)
//
// The service is a payments.Engine like any other: hand it to the code under test, mount httpapi.Handler over it,
// or set Config.OnEvent through New. Its network is service.Network, whose faults, forks and fees a test controls;
// see package sim.
package paymentstest

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// mnemonic is the public one of the BIP-39 test vectors: everybody has its keys.
const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

// maxSteps bounds the rounds of work of one call, so that endless work fails the test.
const maxSteps = 10_000

// Service is a payment service with one merchant's account, in test mode.
type Service struct {
	// Engine is the service's engine. Run is not called: Work and Advance do its work.
	Engine *payments.Engine

	// Network is the simulated network. It mines no block by itself.
	Network *sim.Chain

	// Account is the merchant's account.
	Account account.Account

	// Owner owns the merchant's objects: Account in test mode.
	Owner event.Owner

	// Key is an API key of the account with every scope, for requests over HTTP.
	Key string

	t     testing.TB
	clock *clock
}

// New returns a service. Each function may change the configuration before the service is made: the store,
// OnEvent, prices. The test fails if the service cannot be made.
func New(t testing.TB, configure ...func(*payments.Config)) *Service {
	t.Helper()

	return NewOn(t, sim.Config{}, configure...)
}

// NewOn is New on a network with a given configuration, whose Clock becomes the service's. To test a fork
// that reaches a paid invoice, set FinalDepth above the fork's depth: by default, payments are confirmed in
// blocks that no fork may remove.
func NewOn(t testing.TB, network sim.Config, configure ...func(*payments.Config)) *Service {
	t.Helper()

	s := &Service{t: t, clock: &clock{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}}
	network.Clock = s.clock.Now
	s.Network = sim.New(network)

	keys, err := hdkey.New(mnemonic, "")
	s.check(err)

	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "USDC/USD": "1"},
		time.Minute,
		s.clock.Now,
	)
	s.check(err)

	config := payments.Config{
		Store:        memory.New(),
		Drivers:      []payments.ChainDriver{s.Network.Driver()},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{1}, 32),
		FeeAddresses: map[string]string{s.Network.Network().Slug: string(s.Network.NewAddress())},
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Log:          slog.New(slog.DiscardHandler),
		Now:          s.clock.Now,
	}
	for _, change := range configure {
		change(&config)
	}

	s.Engine, err = payments.New(config)
	s.check(err)

	ctx := context.Background()

	s.Account, err = s.Engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Test shop"})
	s.check(err)

	s.Owner = event.Owner{AccountID: s.Account.ID}

	_, s.Key, err = s.Engine.Accounts.CreateKey(ctx, account.KeyParams{
		AccountID: s.Account.ID,
		Scopes:    account.AllScopes(),
	})
	s.check(err)

	s.Work()

	return s
}

// Now returns the service's time.
func (s *Service) Now() time.Time { return s.clock.Now() }

// Work does all work that is due now: it reads the network, settles, sends, and delivers webhooks.
func (s *Service) Work() {
	s.t.Helper()

	for range maxSteps {
		did, err := s.Engine.Step(context.Background())
		s.check(err)

		if !did {
			return
		}
	}

	s.t.Fatalf("paymentstest: work is left after %d rounds", maxSteps)
}

// Mine adds blocks to the network, one block time apart, and does the resulting work after each.
func (s *Service) Mine(blocks int) {
	s.t.Helper()

	for range blocks {
		s.clock.add(s.Network.Network().BlockTime)
		s.Network.Mine(1)
		s.Work()
	}
}

// Advance moves the time forward, at most a minute at a time, and does the work that falls due: invoices
// expire, failed deliveries are tried again. It mines no block. An invoice with a selected option expires
// only after a block that follows its end was read: Mine one then, and Advance by another minute.
func (s *Service) Advance(by time.Duration) {
	s.t.Helper()

	for by > 0 {
		step := min(by, time.Minute)
		by -= step

		s.clock.add(step)
		s.Work()
	}
}

// Invoice creates an invoice with a price, such as "25.00" and "USD", that is payable in every asset of the
// network.
func (s *Service) Invoice(amount, currency string) invoice.Invoice {
	s.t.Helper()

	inv, err := s.Engine.Invoices.Create(context.Background(), invoice.CreateParams{
		Owner: s.Owner,
		Price: &invoice.Price{Currency: currency, Amount: amount},
	})
	s.check(err)

	return inv
}

// Pay pays an invoice with its selected option, or else with the first one, and mines until the payment is
// confirmed. It returns the paid invoice.
func (s *Service) Pay(inv invoice.Invoice) invoice.Invoice {
	s.t.Helper()

	option := s.selected(inv)
	s.Network.Pay(option.Address, option.Asset, option.AmountDue)
	s.Mine(int(s.Network.Network().Confirmations) + 1)

	paid, err := s.Engine.Invoices.Get(context.Background(), s.Owner, inv.ID)
	s.check(err)

	if paid.Status != invoice.Paid {
		s.t.Fatalf("paymentstest: invoice %s is %s after its payment", inv.ID, paid.Status)
	}

	return paid
}

// selected returns the option of an invoice that Pay uses.
func (s *Service) selected(inv invoice.Invoice) invoice.Option {
	s.t.Helper()

	if inv.SelectedOptionID == "" {
		var err error

		inv, err = s.Engine.Invoices.Select(context.Background(), &s.Owner, inv.ID, inv.Options[0].ID)
		s.check(err)
	}

	return *inv.Option(inv.SelectedOptionID)
}

// Fund sends an amount of an asset, in base units, to the merchant's master wallet, and mines it.
func (s *Service) Fund(symbol string, amount chain.Amount) {
	s.t.Helper()

	balances, err := s.Engine.Payouts.Balances(context.Background(), s.Owner)
	s.check(err)

	if len(balances) == 0 {
		s.t.Fatal("paymentstest: the account has no master wallet")
	}

	s.Network.Fund(balances[0].Address, symbol, amount)
	s.Mine(1)
}

// Events returns the merchant's events, oldest first.
func (s *Service) Events() []event.Event {
	s.t.Helper()

	var all []event.Event

	filter := event.Filter{Owner: s.Owner, Limit: 100}
	for {
		page, more, err := s.Engine.Webhooks.ListEvents(context.Background(), filter)
		s.check(err)

		all = append(all, page...)

		if !more {
			break
		}

		filter.After = page[len(page)-1].ID
	}

	slices.Reverse(all)

	return all
}

func (s *Service) check(err error) {
	s.t.Helper()

	if err != nil {
		s.t.Fatal("paymentstest: ", err)
	}
}

// clock is a time that only moves when a test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *clock) add(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.now = c.now.Add(by)
}
