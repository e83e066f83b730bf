//go:build unix

// Package processes_test plays several processes of one service over one PostgreSQL: what they notify
// each other, and what remains true when they are killed.
package processes_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/redis"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}

	// The processes of TestIllProcessIsReportedAndReplaced mostly wait, so all of them wait at once.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}

	os.Exit(testenv.Main(m))
}

// patience is how long a condition may take on a machine with much else to do.
const patience = time.Minute

// twins are two engines with pools of their own over one database, the second of which runs.
func twins(t *testing.T, o postgres.Options, waker func() store.Waker) (a, b *payments.Engine) {
	t.Helper()
	dsn := testenv.Postgres(t)

	if o.ListenConn != nil {
		o.ListenConn = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }
	}

	network := sim.New(sim.Config{})
	engine := func() *payments.Engine {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}

		db := stdlib.OpenDB(*config)

		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(6)
		db.SetMaxIdleConns(6)

		if err := postgres.Migrate(t.Context(), db, o); err != nil {
			t.Fatal(err)
		}

		st, err := postgres.New(db, o)
		if err != nil {
			t.Fatal(err)
		}

		prices, err := rate.NewFixed(map[string]string{"SIM/USD": "1"}, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}

		e, err := payments.New(payments.Config{
			Store:     st,
			Drivers:   []payments.ChainDriver{network},
			Signer:    sim.NewSigner(1, nil),
			Rates:     prices,
			BaseURL:   "https://pay.example.com",
			SecretKey: bytes.Repeat([]byte{7}, 32),
			Waker:     waker(),
			Log:       slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}

		return e
	}
	a, b = engine(), engine()
	ctx, stop := context.WithCancel(context.Background())

	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return a, b
}

// TestWakeAcrossProcesses changes invoices in one process and sees how soon a stream of another one
// shows it. Neither is notified by anything but the database or Redis.
func TestWakeAcrossProcesses(t *testing.T) {
	const poll = time.Second // payments.Engine.Watch

	none := func() store.Waker { return nil }

	listen := func(context.Context) (*pgx.Conn, error) { return nil, nil } // twins knows where to
	for _, c := range []struct {
		name    string
		options postgres.Options
		waker   func(t *testing.T) func() store.Waker
		wakes   bool
	}{
		{"Polling", postgres.Options{}, func(*testing.T) func() store.Waker { return none }, false},
		{
			"ListenNotify",
			postgres.Options{Schema: "shop", ListenConn: listen},
			func(*testing.T) func() store.Waker { return none },
			true,
		},
		{
			"Redis",
			postgres.Options{},
			func(t *testing.T) func() store.Waker {
				addr := testenv.Redis(t)

				return func() store.Waker {
					s, err := redis.Open("redis://"+addr, redis.Options{})
					if err != nil {
						t.Fatal(err)
					}

					t.Cleanup(func() { _ = s.Close() })

					return s
				}
			},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t, goleak.IgnoreCurrent()) })
			a, b := twins(t, c.options, c.waker(t))

			var took []time.Duration
			for range map[bool]int{true: 15, false: 5}[c.wakes] {
				took = append(took, changeSeen(t, a, b))
			}

			slices.Sort(took)
			median := took[len(took)/2]
			t.Logf(
				"a change by one process is seen by another after %s in the median, %s at most; polling is every %s",
				median,
				took[len(took)-1],
				poll,
			)

			if c.wakes && median > poll/5 {
				t.Errorf("woken, the median is %s: no better than polling every %s", median, poll)
			}

			if !c.wakes && median < poll/20 {
				t.Errorf("without a wake-up the median is %s: what is measured is not the wake-up", median)
			}
		})
	}
}

// changeSeen has a cancel a new invoice and returns how long it takes until b streams that.
func changeSeen(t *testing.T, a, b *payments.Engine) time.Duration {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	owner := event.Owner{AccountID: merchant(t, a)}

	inv, err := a.Invoices.Create(ctx, invoice.CreateParams{
		Owner:   owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}

	var changed time.Time

	for now, err := range b.Watch(ctx, inv.ID) {
		if err != nil {
			t.Fatal(err)
		}

		if now.Status == invoice.Canceled {
			return time.Since(changed)
		}

		if changed.IsZero() {
			if _, err := a.Invoices.Cancel(ctx, owner, inv.ID); err != nil {
				t.Fatal(err)
			}

			changed = time.Now()
		}
	}

	t.Fatalf("the change was not seen: %v", ctx.Err())

	return 0
}

// merchant makes an account.
func merchant(t *testing.T, e *payments.Engine) string {
	t.Helper()

	a, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	return a.ID
}
