//go:build unix

package moneyout_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/internal/testenv"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// Four processes with pools of their own over one PostgreSQL. A database answers in real time, so that time here is real as
// well, only faster: the engines and the network live through 20 seconds in each second. 150 payouts among the other
// tests, 1,000 under make soak.
func TestSoakPayoutsOverPostgreSQL(t *testing.T) {
	const processes, speed = 4, 20
	payouts := 150
	if os.Getenv("SOAKTIME") != "" {
		payouts = 1000
	}
	dsn := testenv.Postgres(t)
	stores := make([]*postgres.Store, processes)
	for i := range stores {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		db := stdlib.OpenDB(*config)
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(6)
		if i == 0 {
			if err := postgres.Migrate(t.Context(), db, postgres.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if stores[i], err = postgres.New(db, postgres.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	clock := func() time.Time { return began.Add(speed * time.Since(began)) }
	change := func(c *payments.Config) { c.Now = clock }
	w := newWorldOver(t, stores[0], account.Settings{}, sim.Config{Clock: clock}, change)
	w.fund(10_000, 0)
	engines := []*payments.Engine{w.engine}
	for i := 1; i < processes; i++ {
		w.change = func(c *payments.Config) {
			c.Now, c.Store, c.Process = clock, stores[i], fmt.Sprintf("process %d", i)
		}
		engines = append(engines, w.boot())
	}
	created := w.createMany(payouts, engines)
	accepted := time.Since(began)

	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			if err := e.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	blocks := time.NewTicker(100 * time.Millisecond)
	defer blocks.Stop()
	audits := 0
	for n := 0; !w.allPaid(len(created)); n++ {
		select {
		case <-ctx.Done():
			t.Fatal("the payouts were not paid in time")
		case <-blocks.C:
			w.chain.Mine(1)
		}
		if n%100 == 0 {
			w.auditMeanwhile(engines[audits%processes])
			audits++
		}
	}
	took := time.Since(began) - accepted
	stop()
	wg.Wait()
	w.eachOnce(created)
	w.settled(10_000, 0)
	t.Logf("%d payouts by %d processes over PostgreSQL, each once, nonces without a gap: accepted in %s, paid in %s; %d audits meanwhile, all without a difference",
		len(created), processes, accepted.Round(time.Millisecond), took.Round(time.Millisecond), audits)
}
