package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// mnemonic is the well-known public one of the BIP-39 test vectors: everybody has its keys.
const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

func config(t testing.TB, c *sim.Chain) payments.Config {
	t.Helper()

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"},
		time.Minute, nil,
	)
	if err != nil {
		t.Fatal(err)
	}

	return payments.Config{
		Store:        memory.New(),
		Drivers:      []payments.ChainDriver{c},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{c.Network().Slug: string(c.NewAddress())},
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
	}
}

// newErrors spoils a configuration in every way that New refuses, and has what the error names.
var newErrors = []struct {
	want  string
	spoil func(*payments.Config)
}{
	{"Config.Store is missing", func(c *payments.Config) { c.Store = nil }},
	{"Config.Store is a nil pointer", func(c *payments.Config) { c.Store = (*records)(nil) }},
	{"Config.Drivers is empty", func(c *payments.Config) { c.Drivers = nil }},
	{"Config.Drivers[1] is missing", func(c *payments.Config) { c.Drivers = append(c.Drivers, nil) }},
	{"Config.Drivers[0] is a nil pointer", func(c *payments.Config) { c.Drivers[0] = (*sim.Chain)(nil) }},
	{"Config.Drivers: two drivers", func(c *payments.Config) { c.Drivers = append(c.Drivers, c.Drivers[0]) }},
	{"Config.Signer is missing", func(c *payments.Config) { c.Signer = nil }},
	{"Config.Signer is a nil pointer", func(c *payments.Config) { c.Signer = (*hdkey.Signer)(nil) }},
	{"Config.Rates is missing", func(c *payments.Config) { c.Rates = nil }},
	{"Config.Rates is a nil pointer", func(c *payments.Config) { c.Rates = (*rate.Feed)(nil) }},
	{"Config.Waker is a nil pointer", func(c *payments.Config) { c.Waker = (*wakeups)(nil) }},
	{"Config.Entropy is a nil pointer", func(c *payments.Config) { c.Entropy = (*bytes.Reader)(nil) }},
	{"Config.SecretKey must be 32", func(c *payments.Config) { c.SecretKey = []byte("too short") }},
	{"Config.SecretKey, or Old", func(c *payments.Config) { c.SecretKey = make([]byte, 32) }},
	{"Config.SecretKey, or Old", func(c *payments.Config) { c.OldSecretKeys = [][]byte{nil} }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "pay.example.com" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "ftp://pay.example.com" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://:8080" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://user@pay.example.com" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com?shop=1" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com/?" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com/#top" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com/#" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com/my shop" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = " https://pay.example.com" }},
	{"Config.BaseURL must", func(c *payments.Config) { c.BaseURL = "https://pay.example.com " }},
	{"Config.QuoteFor must", func(c *payments.Config) { c.QuoteFor = time.Minute - 1 }},
	{"Config.QuoteFor must", func(c *payments.Config) { c.QuoteFor = -time.Hour }},
	{"Config.KeepEvents must", func(c *payments.Config) { c.KeepEvents = 24*time.Hour - 1 }},
	{"Config.KeepEvents must", func(c *payments.Config) { c.KeepEvents = -24 * time.Hour }},
	{"Config.ReplaceAfter is negative", func(c *payments.Config) { c.ReplaceAfter = -1 }},
	{"Config.WebhookAllow has a prefix", func(c *payments.Config) { c.WebhookAllow = []netip.Prefix{{}} }},
	{"Config.KeyPrefix \"No_Good\" cannot", func(c *payments.Config) { c.KeyPrefix = "No_Good" }},
	{"Config.FeeAddresses", func(c *payments.Config) {
		c.FeeAddresses = map[string]string{"simnet": "not an address"}
	}},
}

// records is a store, and wakeups a waker, of which only a nil pointer is used.
type (
	records struct{ store.Store }
	wakeups struct{ store.Waker }
)

func TestNewNamesTheFieldThatCannotWork(t *testing.T) {
	c := sim.New(sim.Config{})
	for i, refused := range newErrors {
		cfg := config(t, c)
		refused.spoil(&cfg)

		_, err := payments.New(cfg)
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), refused.want) {
			t.Errorf("case %d: error %v, want one with %q", i, err, refused.want)
		}
	}
}

func TestNewTakesTheLeastThatWorks(t *testing.T) {
	cfg := config(t, sim.New(sim.Config{}))
	cfg.QuoteFor, cfg.KeepEvents = time.Minute, 24*time.Hour

	for _, base := range []string{
		"https://pay.example.com",
		"https://pay.example.com/",
		"HTTP://127.0.0.1:8080",
		"https://[::1]:8080",
		"https://example.com/shops/pay%20here/",
	} {
		cfg.BaseURL = base
		if _, err := payments.New(cfg); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestRunStartsAndStopsAThousandTimes(t *testing.T) {
	defer goleak.VerifyNone(t)

	engine, err := payments.New(config(t, sim.New(sim.Config{})))
	if err != nil {
		t.Fatal(err)
	}

	for i := range 1000 {
		ctx, cancel := context.WithCancel(t.Context())

		done := make(chan error, 1)
		go func() { done <- engine.Run(ctx) }()

		if i%3 == 0 {
			engine.Wake()
		}

		cancel()

		if err := <-done; err != nil && !errors.Is(err, fault.State) {
			t.Fatalf("start %d: %v", i, err)
		}
	}
}

func TestOnlyOneRunAtATime(t *testing.T) {
	defer goleak.VerifyNone(t)

	c := sim.New(sim.Config{})
	running := make(chan struct{}, 1)

	c.SetIntercept(func(context.Context, sim.Method) error {
		select {
		case running <- struct{}{}:
		default:
		}

		return nil
	})

	engine, err := payments.New(config(t, c))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())

	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()

	<-running

	if err := engine.Run(ctx); !errors.Is(err, fault.State) {
		t.Errorf("a second Run: %v", err)
	}

	cancel()

	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What a host's hook writes commits with the event or not at all: a hook that refuses takes the
// invoice with it.
func TestOnEventIsPartOfTheTransaction(t *testing.T) {
	c := sim.New(sim.Config{})
	cfg := config(t, c)
	refuse := errors.New("the host refuses")

	var types []event.Type

	cfg.OnEvent = func(_ context.Context, _ payments.Tx, ev event.Event) error {
		types = append(types, ev.Type)
		if len(types) == 1 {
			return refuse
		}

		return nil
	}

	engine, err := payments.New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	a, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	params := invoice.CreateParams{
		Owner: event.Owner{AccountID: a.ID},
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount("1000000000000000")},
		},
	}
	if _, err := engine.Invoices.Create(t.Context(), params); !errors.Is(err, refuse) {
		t.Fatalf("the hook refused, Create answered %v", err)
	}

	list, _, err := engine.Invoices.List(t.Context(), invoice.Filter{Owner: params.Owner, Limit: 10})
	if err != nil || len(list) != 0 {
		t.Fatalf("%d invoices are stored although the hook refused (%v)", len(list), err)
	}

	inv, err := engine.Invoices.Create(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}

	if len(types) != 2 || types[1] != event.InvoiceCreated {
		t.Fatalf("the hook saw %v", types)
	}

	events, _, err := engine.Webhooks.ListEvents(t.Context(), event.Filter{Owner: params.Owner, Limit: 10})
	if err != nil || len(events) != 1 || events[0].ObjectID != inv.ID || events[0].Sequence != 1 {
		t.Fatalf("stored events: %+v, %v", events, err)
	}
}

// The main job on the simulated network: paid, confirmed, released, and each change seen by Watch.
func TestInvoiceIsPaidAndReleased(t *testing.T) {
	defer goleak.VerifyNone(t)

	c := sim.New(sim.Config{})

	engine, err := payments.New(config(t, c))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	done := make(chan error, 1)

	runCtx, stop := context.WithCancel(ctx)
	go func() { done <- engine.Run(runCtx) }()

	defer func() {
		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	a, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: a.ID}

	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: owner,
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount("1000000000000000000")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	var seen []invoice.Status

	paid := false

	for now, err := range engine.Watch(ctx, inv.ID) {
		if err != nil {
			t.Fatal(err)
		}

		if len(seen) == 0 || seen[len(seen)-1] != now.Status {
			seen = append(seen, now.Status)
		}

		switch {
		case now.Status == invoice.Open && !paid:
			paid = true

			c.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
		case now.Status == invoice.Pending:
			c.Mine(1)
			engine.Wake()
		}

		if now.Status == invoice.Paid {
			break
		}
	}

	if len(seen) != 3 || seen[1] != invoice.Pending {
		t.Fatalf("Watch saw %v", seen)
	}

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for {
		page, _, err := engine.Settlements.List(ctx, settlement.Filter{Owner: owner, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}

		if len(page) == 1 && page[0].Status == settlement.Released {
			s := page[0]
			if s.NetReleased == nil || s.Gross != s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees) {
				t.Fatalf("the books do not balance: %+v", s)
			}

			master, err := internal.Of(engine).Transactions.MasterWallet(ctx, "simnet", a.Index)
			if err != nil {
				t.Fatal(err)
			}

			if got := c.Balance(master.Address, "SIM"); got != *s.NetReleased {
				t.Fatalf("the master wallet holds %s, net_released is %s", got, s.NetReleased)
			}

			if left := c.Balance(inv.Options[0].Address, "SIM"); left != (chain.Amount{}) {
				t.Fatalf("%s is left at the deposit address", left)
			}

			return
		}

		select {
		case <-ctx.Done():
			t.Fatalf("not released in time: %+v", page)
		case <-tick.C:
			c.Mine(1)
			engine.Wake()
		}
	}
}
