package ingest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

const (
	network = "simnet"
	week    = 7 * 24 * time.Hour
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func dollars(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

func coin(n uint64) chain.Amount { return chain.Pow10(18).Mul(n) }

// twoTokens is the default network with a second token USDY.
func twoTokens() chain.Network {
	n := sim.DefaultNetwork()
	second := n.Assets[1]
	second.Symbol, second.Name = "USDY", "Second simulated dollar"
	second.Contract = sim.New(sim.Config{Seed: 99}).NewAddress()
	n.Assets = append(n.Assets, second)

	return n
}

// harness is a network, a store and whole engines over them, one at a time, in fake time.
type harness struct {
	t       testing.TB
	chain   *sim.Chain
	store   store.Store
	process crashtest.Process
	engine  *payments.Engine
	owner   event.Owner
	network chain.Network

	mu       sync.Mutex
	now      time.Time
	noPool   bool // the pool cannot be read
	noPrices bool
	noNative bool          // the native coin has no price
	badToken string        // symbol of the token whose contract answers no balance; empty: none
	recent   bool          // balances can be read at the newest eight blocks only
	failing  bool          // no balance can be read, and steps may fail
	readable chain.Address // even then
	stuck    bool          // no release can be planned
	behind   uint64        // blocks that only a lying node has: it says more of balances there
	alone    chain.Amount  // what the only node that answers adds to the coin of all addresses; 0 while two answer
	disputed string        // hash of a transaction whose transfers cannot be read in blocks
}

// newHarness starts with an account whose settlements wait, so that money stays where it arrives.
func newHarness(t testing.TB, config sim.Config) *harness {
	t.Helper()

	w := &harness{t: t, store: memory.New(), now: start}

	if config.Network.Slug == "" {
		config.Network = twoTokens()
	}

	config.Clock = w.clock
	w.chain = sim.New(config)
	w.network = w.chain.Network()
	w.chain.SetIntercept(w.intercept)
	w.boot()

	a, err := w.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Corner Shop", ManualRelease: true},
	)
	w.must(err)
	w.owner = event.Owner{AccountID: a.ID}
	w.chain.Mine(10)
	w.work()

	return w
}

func (w *harness) intercept(_ context.Context, m sim.Method) error {
	w.mu.Lock()
	deaf := w.noPool && m == sim.MethodPool || w.stuck && m == sim.MethodPlanSweep
	w.mu.Unlock()

	if deaf {
		return sim.Unavailable()
	}

	return w.process.Call(string(m))
}

// boot starts a process over what is stored.
func (w *harness) boot() {
	w.t.Helper()
	w.process.Next()

	engine, err := payments.New(payments.Config{
		Store:     connection{w.store, &w.process},
		Drivers:   []payments.ChainDriver{chainWithBadToken{w.chain, w}},
		Signer:    sim.NewSigner(7, nil),
		Rates:     prices{w},
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Process:   "one", // a process that replaces another takes its leases over
		Log:       slog.New(slog.NewTextHandler(w.logs(), nil)),
		Now:       w.clock,
	})
	w.must(err)
	w.engine = engine
}

func (w *harness) logs() io.Writer {
	if t, ok := w.t.(*testing.T); ok && testing.Verbose() {
		return t.Output()
	}

	return io.Discard
}

func (w *harness) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.now
}

func (w *harness) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.now = w.now.Add(d)
}

func (w *harness) set(flag *bool, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	*flag = on
}

func (w *harness) must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

// work has the engine do what is due now.
func (w *harness) work() {
	w.t.Helper()

	for range 200 {
		did, err := w.engine.Step(w.t.Context())
		if !w.failing {
			w.must(err)
		}

		if !did {
			return
		}
	}

	w.t.Fatal("the engine does not come to rest")
}

// mine adds blocks, and has each read before the next.
func (w *harness) mine(n int) {
	w.t.Helper()

	for range n {
		w.pass(2 * time.Second)
		w.chain.Mine(1)
		w.work()
	}
}

// fork replaces blocks; the first of the new branch holds their transactions.
func (w *harness) fork(depth uint64) {
	w.t.Helper()
	w.pass(2 * time.Second)
	w.chain.Fork(sim.Fork{Depth: depth, Fate: sim.Reinclude})
	w.work()
}

// sell makes an invoice over an amount of an asset.
func (w *harness) sell(symbol string, amount chain.Amount) invoice.Invoice {
	w.t.Helper()
	inv, err := w.engine.Invoices.Create(w.t.Context(), invoice.CreateParams{
		Owner:   w.owner,
		Options: []invoice.OptionParams{{Asset: symbol, Network: network, Amount: amount}},
	})
	w.must(err)

	return inv
}

func (w *harness) deposit() invoice.DepositAddress {
	w.t.Helper()
	d, err := w.engine.Invoices.CreateDeposit(
		w.t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
	)
	w.must(err)

	return d
}

func addressOf(inv invoice.Invoice) chain.Address { return inv.Options[0].Address }

func (w *harness) output(to chain.Address, symbol string, amount chain.Amount) chain.Output {
	w.t.Helper()

	asset, ok := w.network.Asset(symbol)
	if !ok {
		w.t.Fatalf("no asset %s", symbol)
	}

	return chain.Output{To: to, AssetID: asset.ID, Amount: amount}
}

func (w *harness) hint(inv invoice.Invoice, hash string) {
	w.t.Helper()
	result, err := w.engine.Invoices.Hint(w.t.Context(), inv.ID, hash)
	w.must(err)

	if result != invoice.HintFound {
		w.t.Fatalf("the hint is %q, want %q", result, invoice.HintFound)
	}
}

func (w *harness) get(inv invoice.Invoice) invoice.Invoice {
	w.t.Helper()
	inv, err := w.engine.Invoices.Get(w.t.Context(), w.owner, inv.ID)
	w.must(err)

	return inv
}

// want checks status, amount_paid and amount_detected of an invoice's only option.
func (w *harness) want(inv invoice.Invoice, status invoice.Status, paid, detected chain.Amount) {
	w.t.Helper()

	got := w.get(inv)
	if o := got.Options[0]; got.Status != status || o.AmountPaid != paid || o.AmountDetected != detected {
		w.t.Errorf(
			"the invoice is %s with %s paid and %s detected, want %s with %s and %s",
			got.Status, o.AmountPaid, o.AmountDetected, status, paid, detected,
		)
	}
}

// payments returns the payments to an invoice or a deposit address, oldest first.
func (w *harness) payments(of string) []invoice.Payment {
	w.t.Helper()

	var all []invoice.Payment

	for _, f := range []invoice.PaymentFilter{{InvoiceID: of}, {DepositAddressID: of}} {
		f.Owner, f.Limit = w.owner, 500
		page, err := w.store.Payments(w.t.Context(), f)
		w.must(err)

		all = append(all, page...)
	}

	slices.SortFunc(all, func(a, b invoice.Payment) int { return strings.Compare(a.ID, b.ID) })

	return all
}

// only returns the only payment to an invoice or a deposit address.
func (w *harness) only(of string) invoice.Payment {
	w.t.Helper()

	all := w.payments(of)
	if len(all) != 1 {
		w.t.Fatalf("%d payments, want 1: %+v", len(all), all)
	}

	return all[0]
}

// envelope is what is delivered of an event.
type envelope struct {
	Type event.Type `json:"type"`
	Data struct {
		Object   map[string]any `json:"object"`
		Previous map[string]any `json:"previous_attributes"`
	} `json:"data"`
}

// payment returns the payment that an event shows, alone or with its deposit address.
func (e envelope) payment() map[string]any {
	if p, beside := e.Data.Object["payment"].(map[string]any); beside {
		return p
	}

	return e.Data.Object
}

// events returns the stored events about an object, by sequence.
func (w *harness) events(object string) []envelope {
	w.t.Helper()

	var found []event.Event

	f := event.Filter{Owner: w.owner, ObjectID: object, Limit: 100}

	for more := true; more; {
		var (
			page []event.Event
			err  error
		)

		page, more, err = w.engine.Webhooks.ListEvents(w.t.Context(), f)
		w.must(err)

		found = append(found, page...)
		if more {
			f.After = page[len(page)-1].ID
		}
	}

	slices.SortFunc(found, func(a, b event.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })

	all := make([]envelope, len(found))
	for i, e := range found {
		w.must(json.Unmarshal(e.Envelope, &all[i]))
	}

	return all
}

// wantEvents checks the types of the stored events about an object, in order.
func (w *harness) wantEvents(want []event.Type, object string) {
	w.t.Helper()

	var got []event.Type
	for _, e := range w.events(object) {
		got = append(got, e.Type)
	}

	if !slices.Equal(got, want) {
		w.t.Errorf("events %q, want %q", got, want)
	}
}

// lastEvent returns the last event of a type about an object.
func (w *harness) lastEvent(t event.Type, object string) envelope {
	w.t.Helper()

	all := slices.DeleteFunc(w.events(object), func(e envelope) bool { return e.Type != t })
	if len(all) == 0 {
		w.t.Fatalf("no event %s about %s", t, object)
	}

	return all[len(all)-1]
}

// connection is a process's connection to the store, which counts its updates.
type connection struct {
	store.Store
	process *crashtest.Process
}

func (c connection) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	return c.process.Do("update", func() error { return c.Store.Update(ctx, f) })
}
