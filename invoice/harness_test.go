package invoice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// tester is what a test and a property have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// harness runs a service over the store in memory and follows simulated networks with the real follower.
type harness struct {
	t      tester
	mu     sync.Mutex
	now    time.Time
	store  store.Store
	rates  *rate.Fixed
	chains []*sim.Chain
	owner  event.Owner

	svc       *invoice.Service
	ingester  *ingest.Ingester
	followers []*follow.Follower
	process   int
	ids       *id.Source

	events []event.Event
	// refuse fails the transaction that appends an event it returns an error for, as a host's hook does.
	refuse func(event.Event) error
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newHarness starts with one network, or with those that are given.
func newHarness(t tester, settings account.Settings, networks ...sim.Config) *harness {
	t.Helper()
	w := &harness{
		t:     t,
		now:   start,
		store: memory.New(),
		owner: event.Owner{AccountID: "0123456789abcdef01234567"},
	}
	w.ids = id.New(w.clock, nil)

	if len(networks) == 0 {
		networks = []sim.Config{{}}
	}

	for _, c := range networks {
		c.Clock = w.clock
		w.chains = append(w.chains, sim.New(c))
	}

	var err error

	w.rates, err = rate.NewFixed(map[string]string{
		"ETH/USD":  "2000",
		"ETH/EUR":  "1800",
		"USDC/USD": "1",
		"USDC/EUR": "0.9",
	}, time.Minute, w.clock)
	w.must(err)
	w.must(w.store.Update(context.Background(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(
			ctx, &account.Account{ID: w.owner.AccountID, Settings: settings, CreatedAt: w.now},
		)
	}))
	w.restart()

	return w
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

func (w *harness) must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

// restart ends the process and begins another one over the same store.
func (w *harness) restart() {
	w.t.Helper()
	w.process++

	drivers := make([]chain.Driver, len(w.chains))
	for i, c := range w.chains {
		drivers[i] = c
	}

	registry, err := chain.NewRegistry(drivers...)
	w.must(err)

	w.ingester = ingest.New(ingest.Config{
		DB:       ingestDB{w.store, w},
		Registry: registry,
		Rates:    w.rates,
		IDs:      w.ids,
		Now:      w.clock,

		VerifyAddress: func(a invoice.Address) (invoice.VerifiedAddress, error) { return w.svc.VerifyAddress(a) },
	})

	w.svc = invoice.New(invoice.Config{
		DB:       db{w.store, w},
		Registry: registry,
		Rates:    w.rates,
		Keys:     sim.NewSigner(1, nil),
		IDs:      w.ids,
		Ingester: w.ingester,
		Now:      w.clock,
		Reserve:  4,
	})
	for _, f := range w.followers {
		w.must(f.Release(context.Background()))
	}

	w.followers = nil
	for _, c := range w.chains {
		f, err := follow.New(follow.Config{
			Driver:  c,
			Handler: blockHandler{w},
			DB:      watchDB{w.store},
			Owner:   fmt.Sprintf("process-%d", w.process),
			Now:     w.clock,
			Log:     slog.New(slog.DiscardHandler),
		})
		w.must(err)
		w.followers = append(w.followers, f)
	}
}

// follow reads every network up to its tip.
func (w *harness) follow() {
	w.t.Helper()

	for _, f := range w.followers {
		for i := 0; ; i++ {
			did, err := f.Step(context.Background())
			w.must(err)

			if !did {
				break
			}

			if i > 1000 {
				w.t.Fatalf("the follower of %s does not come to rest", f.Driver.Network().Slug)
			}
		}
	}
}

// step does the due work, until there is none or nothing more moves.
func (w *harness) doDueWork() {
	w.t.Helper()

	w.compareBalances()

	for range 5 {
		did, err := w.ingester.Step(context.Background())
		w.must(err)

		if !did {
			return
		}
	}
}

// compareBalances compares the balances that are due.
func (w *harness) compareBalances() {
	w.t.Helper()

	for _, c := range w.chains {
		_, err := w.ingester.CheckBalances(context.Background(), c.Network().Slug)
		if !errors.Is(err, fault.Unavailable) { // such as a block that a fork took, until it is followed
			w.must(err)
		}
	}
}

func (w *harness) mine(n int) {
	for range n {
		w.pass(2 * time.Second)
		w.chains[0].Mine(1)
	}
}

// confirm mines what waits until it is three blocks deep, and reads it.
func (w *harness) confirm() {
	w.t.Helper()
	w.mine(3)
	w.follow()
}

func (w *harness) get(id string) invoice.Invoice {
	w.t.Helper()
	inv, err := w.svc.Get(context.Background(), w.owner, id)
	w.must(err)

	return inv
}

func (w *harness) paymentsOf(id string) []invoice.Payment {
	w.t.Helper()
	list, err := w.store.PaymentsOfInvoices(context.Background(), []string{id})
	w.must(err)

	return list
}

func (w *harness) onlyPayment(id string) invoice.Payment {
	w.t.Helper()

	list := w.paymentsOf(id)
	if len(list) != 1 {
		w.t.Fatalf("the invoice has %d payments, want 1: %+v", len(list), list)
	}

	return list[0]
}

func (w *harness) create(p invoice.CreateParams) invoice.Invoice {
	w.t.Helper()
	p.Owner = w.owner
	inv, err := w.svc.Create(context.Background(), p)
	w.must(err)

	return inv
}

// sell makes an invoice of 90 EUR that is to be paid in SIM: 0.05 at 1,800.
func (w *harness) sell() invoice.Invoice {
	w.t.Helper()

	return w.create(invoice.CreateParams{
		Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
	})
}

func (w *harness) pay(inv invoice.Invoice, amount string) string {
	o := inv.Option(inv.SelectedOptionID)
	return w.chains[0].Pay(o.Address, o.Asset, chain.MustAmount(amount))
}

// published returns the types of the published events of an invoice and its payments.
func (w *harness) published(invoiceID string) string {
	var out []string

	for _, e := range w.events {
		if e.InvoiceID == invoiceID && !e.Type.Internal() {
			out = append(out, string(e.Type))
		}
	}

	return strings.Join(out, " ")
}

func (w *harness) countEvents(t event.Type) int {
	return len(slices.DeleteFunc(slices.Clone(w.events), func(e event.Event) bool { return e.Type != t }))
}

func (w *harness) want(inv invoice.Invoice, status invoice.Status, flags ...invoice.Flag) {
	w.t.Helper()

	if inv.Status != status || !slices.Equal(inv.Flags, flags) {
		w.t.Errorf("the invoice is %s %v, want %s %v", inv.Status, inv.Flags, status, flags)
	}
}

func wantCode(t tester, err error, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("error %v (code %q), want %v with code %q", err, fault.Code(err), word, code)
	}
}

// db narrows the store to what the service sees, and keeps the events that were committed.
type db struct {
	store.Reader
	w *harness
}

func (d db) Update(ctx context.Context, f func(ctx context.Context, tx invoice.Tx) error) error {
	return d.w.update(ctx, func(ctx context.Context, tx *tx) error { return f(ctx, tx) })
}

// ingestDB is the store as the ingester sees it.
type ingestDB struct {
	store.Reader
	w *harness
}

func (d ingestDB) Update(ctx context.Context, f func(ctx context.Context, tx ingest.Tx) error) error {
	return d.w.update(ctx, func(ctx context.Context, tx *tx) error { return f(ctx, tx) })
}

func (w *harness) update(ctx context.Context, f func(ctx context.Context, tx *tx) error) error {
	var events []event.Event

	err := w.store.Update(ctx, func(ctx context.Context, inner store.Tx) error {
		t := &tx{Tx: inner, refuse: w.refuse}
		err := f(ctx, t)
		events = t.events

		return err
	})
	if err == nil {
		w.mu.Lock()
		w.events = append(w.events, events...)
		w.mu.Unlock()
	}

	return err
}

type tx struct {
	store.Tx
	events []event.Event
	refuse func(event.Event) error
}

func (t *tx) AppendEvents(_ context.Context, events ...event.Event) error {
	for _, e := range events {
		if t.refuse != nil {
			if err := t.refuse(e); err != nil {
				return err
			}
		}
	}

	t.events = append(t.events, events...)

	return nil
}

type watchDB struct{ store.Store }

func (d watchDB) Update(ctx context.Context, f func(ctx context.Context, tx scan.Tx) error) error {
	return d.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return f(ctx, tx) })
}

// blockHandler stores batches as the engine does: prepared again while prices are missing, split when a
// transfer fails for its own sake.
type blockHandler struct{ w *harness }

func (s blockHandler) Apply(ctx context.Context, b follow.Batch) error {
	w := s.w

	var p ingest.PreparedBatch

	apply := func(p ingest.PreparedBatch, more func(ctx context.Context, tx invoice.Tx) error) error {
		return w.update(ctx, func(ctx context.Context, tx *tx) error {
			cursor, err := b.Advance(ctx, tx)
			if err != nil {
				return err
			}

			if err := w.ingester.ApplyTx(ctx, tx, p, cursor); err != nil {
				return err
			}

			return more(ctx, tx)
		})
	}
	nothing := func(context.Context, invoice.Tx) error { return nil }

	err := invoice.ErrUnprepared
	for try := 0; try < 3 && errors.Is(err, invoice.ErrUnprepared); try++ {
		if p, err = w.ingester.PrepareBatch(ctx, b); err != nil {
			return err
		}

		err = apply(p, nothing)
	}

	if err == nil || errors.Is(err, fault.Conflict) || errors.Is(err, fault.LeaseLost) ||
		errors.Is(err, invoice.ErrUnprepared) {
		return err
	}

	failed := map[invoice.TransferKey]error{}
	dry := errors.New("only tried")

	for _, key := range p.Keys() {
		err := apply(p.Only(key), func(context.Context, invoice.Tx) error { return dry })
		if !errors.Is(err, dry) {
			failed[key] = err
		}
	}

	rest := p
	for key := range failed {
		rest = rest.Without(key)
	}

	return apply(rest, func(ctx context.Context, tx invoice.Tx) error {
		for key, cause := range failed {
			if err := w.ingester.QueueRetryTx(ctx, tx, p, key, cause); err != nil {
				return err
			}
		}

		return nil
	})
}

// retry takes up what waits in retry rows, as the engine does.
func (w *harness) retry() {
	w.t.Helper()

	ctx := context.Background()
	for _, c := range w.chains {
		rows, err := w.store.Retries(ctx, c.Network().Slug, w.clock(), 100)
		w.must(err)

		for _, r := range rows {
			p, err := w.ingester.PrepareRetry(ctx, r)
			w.must(err)

			err = w.update(
				ctx,
				func(ctx context.Context, tx *tx) error { return w.ingester.RetryTx(ctx, tx, p) },
			)
			if err != nil {
				cause := err

				w.must(
					w.update(
						ctx,
						func(ctx context.Context, tx *tx) error {
							return w.ingester.PostponeRetryTx(ctx, tx, r, cause)
						},
					),
				)
			}
		}
	}
}

var _ tester = (*testing.T)(nil)
