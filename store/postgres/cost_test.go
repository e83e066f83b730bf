package postgres_test

// This file counts what the store costs on the wire: round trips, and transactions that wrote.

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/leases"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/webhook"
)

// meter counts what a store on one connection does.
type meter struct {
	t       *testing.T
	r       *recorder
	st      *postgres.Store
	outside *sql.DB // another pool, to look from
}

// metered runs a test over a connection as a host opens it, and over one with a tracer, which sends
// its batches in another way, at the same cost.
func metered(t *testing.T, f func(t *testing.T, m *meter)) {
	t.Run("plain", func(t *testing.T) { f(t, newMeter(t, false)) })
	t.Run("traced", func(t *testing.T) { f(t, newMeter(t, true)) })
}

func newMeter(t *testing.T, traced bool) *meter {
	t.Helper()
	m := &meter{t: t, r: &recorder{}}
	db := database(t, 2, func(c *pgx.ConnConfig) {
		m.outside = sqlOpen(t, c.Copy())

		c.DialFunc = m.r.dial(c.DialFunc)
		if traced {
			c.Tracer = m.r
		}
	})
	m.st = open(t, db, "shop")
	db.SetMaxOpenConns(1)

	return m
}

// writers is how many transactions have written so far: each takes one id.
func (m *meter) writers() (n int64) {
	m.t.Helper()

	if err := m.outside.QueryRowContext(m.t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").
		Scan(&n); err != nil {
		m.t.Fatal(err)
	}

	return n
}

// measure runs f, which must succeed, a few times so that statements are prepared, and then once
// more to count.
func (m *meter) measure(what string, most, commits int, f func() error) {
	m.t.Helper()

	for range 2 {
		if err := f(); err != nil {
			m.t.Fatalf("%s: %v", what, err)
		}
	}

	before := m.writers()
	m.r.reset()

	if err := f(); err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}

	trips, wrote := m.r.trips(), m.writers()-before
	m.t.Logf("%s: %d round trips, %d commits", what, trips, wrote)

	if trips > most || wrote != int64(commits) {
		m.t.Errorf(
			"%s takes %d round trips and %d commits, want at most %d and %d; it asked:\n%v",
			what, trips, wrote, most, commits, m.r.statements(),
		)
	}
}

func (m *meter) update(f func(ctx context.Context, tx store.Tx) error) func() error {
	return func() error { return m.st.Update(m.t.Context(), f) }
}

func TestRoundTrips(t *testing.T) { metered(t, testRoundTrips) }

func testRoundTrips(t *testing.T, m *meter) {
	var n int

	id := func() string { n++; return time.Unix(int64(n), 0).Format("150405") }
	fill := func(ctx context.Context, tx store.Tx) error {
		inv := invoice.Invoice{ID: id(), Options: []invoice.Option{{Network: "a"}, {Network: "b"}}}
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		if _, err := tx.InvoiceByID(ctx, inv.ID); err != nil { // of its own writes
			return err
		}

		return tx.PutPayments(
			ctx, &invoice.Payment{ID: inv.ID, TxHash: inv.ID},
			&invoice.Payment{ID: inv.ID + "x", TxHash: inv.ID, TxIndex: 1},
		)
	}
	m.measure("a creation", 1, 1, m.update(fill))
	m.measure("a creation after reads", 1, 1, m.update(func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.EndpointsOf(ctx, event.Owner{AccountID: "a"}); err != nil {
			return err
		}

		if err := fill(ctx, tx); err != nil {
			return err
		}

		_, err := tx.EndpointsOf(ctx, event.Owner{AccountID: "a"})

		return err
	}))
	m.measure(
		"a creation under an idempotency key",
		1,
		1,
		m.update(func(ctx context.Context, tx store.Tx) error {
			r := idempotency.Record{Key: idempotency.Key{Key: id()}}
			if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
				return err
			}

			if err := fill(ctx, tx); err != nil {
				return err
			}

			r.Status = 200

			return tx.PutIdempotencyAnswer(ctx, r)
		}),
	)
	m.measure("a change", 3, 1, m.update(func(ctx context.Context, tx store.Tx) error {
		inv, err := tx.InvoiceByID(ctx, time.Unix(1, 0).Format("150405"))
		if err != nil {
			return err
		}

		inv.Description += "."

		return tx.PutInvoice(ctx, &inv)
	}))
	m.measure("a lease read by its holder", 1, 0, m.update(func(ctx context.Context, tx store.Tx) error {
		_, _, err := leases.Take(ctx, tx, "l", "p", time.Unix(1e9, 0))
		return err
	}))
	m.measure("a reservation of numbers", 3, 1, m.update(func(ctx context.Context, tx store.Tx) error {
		_, err := tx.ReserveNumbers(ctx, "n", 64, 1)
		return err
	}))
	m.measure("an update that only reads", 1, 0, m.update(func(ctx context.Context, tx store.Tx) error {
		_, err := tx.InvoicesByID(ctx, []string{"a"})
		return err
	}))
	m.measure(
		"an update that does nothing", 0, 0,
		m.update(func(context.Context, store.Tx) error { return nil }),
	)
}

// TestWhatAnInvoiceCosts counts through the engine: everything that a creation asks is one round trip, also under an
// idempotency key. The settings of the account and the endpoints that receive its events were read before, and its
// commit validates them.
func TestWhatAnInvoiceCosts(t *testing.T) { metered(t, testWhatAnInvoiceCosts) }

func testWhatAnInvoiceCosts(t *testing.T, m *meter) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300"}, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	config := payments.Config{
		Store:     m.st,
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{})},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	}

	engine, err := payments.New(config)
	if err != nil {
		t.Fatal(err)
	}

	merchant, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: merchant.ID}
	if _, _, err := engine.Webhooks.CreateEndpoint(
		t.Context(),
		webhook.EndpointParams{Owner: owner, URL: "https://shop.example.com/hook", Events: []event.Type{"*"}},
	); err != nil {
		t.Fatal(err)
	}

	params := invoice.CreateParams{
		Owner:   owner,
		Price:   &invoice.Price{Currency: "EUR", Amount: "12.50"},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
	}

	var made invoice.Invoice

	m.measure("Invoices.Create", 1, 1, func() (err error) {
		made, err = engine.Invoices.Create(t.Context(), params)
		return err
	})

	if made.Options[0].Address == "" || made.Options[0].AmountDue == (chain.Amount{}) {
		t.Fatalf("the invoice is not complete: %+v", made)
	}

	n := 0

	create := func(engine *payments.Engine) error {
		prepared, err := engine.Invoices.PrepareCreate(t.Context(), params)
		if err != nil {
			return err
		}

		m.r.reset()

		n++
		r := idempotency.Record{
			Key:       idempotency.Key{Owner: owner, Key: string(rune('a' + n))},
			CreatedAt: time.Now(),
		}

		return engine.Update(t.Context(), func(ctx context.Context, tx payments.Tx) error {
			if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
				return err
			}

			inv, err := prepared(ctx, tx)
			if err != nil {
				return err
			}

			r.Status, r.SealedBody = 200, []byte(inv.ID)

			return tx.PutIdempotencyAnswer(ctx, r)
		})
	}

	m.measure(
		"its transaction under an idempotency key", 1, 1, func() error { return create(engine) },
	)

	config.OnEvent = func(context.Context, payments.Tx, event.Event) error { return nil }

	hooked, err := payments.New(config)
	if err != nil {
		t.Fatal(err)
	}

	for range 2 { // they read what a process keeps, and reserve numbers for the next one
		if _, err := hooked.Invoices.Create(t.Context(), params); err != nil {
			t.Fatal(err)
		}
	}

	m.measure(
		"the same where the host has a hook, before which the claim is sent", 2, 1,
		func() error { return create(hooked) },
	)
	m.measure(
		"Invoices.Get", 1, 0,
		func() error { _, err := engine.Invoices.Get(t.Context(), owner, made.ID); return err },
	)
	m.measure("Invoices.List", 1, 0, func() error {
		all, _, err := engine.Invoices.List(t.Context(), invoice.Filter{Owner: owner, Limit: 2})
		if len(all) != 2 {
			err = errors.Join(err, errors.New("not a whole page"))
		}

		return err
	})
}
