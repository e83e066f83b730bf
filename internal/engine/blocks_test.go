package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// strangers is how many payments to others the blocks of TestWatchedAddressesCostNothing hold.
const strangers = 150

// What a block costs follows the block, not the number of addresses that are watched: with 100,000
// of them a block that pays none takes one commit, and the same statements as with ten.
func TestWatchedAddressesCostNothing(t *testing.T) {
	const few, many = 10, 100_000

	t.Run("SQLite", func(t *testing.T) {
		cost := func(addresses int) (texts []string, commits int) {
			recorder := &sqltest.Recorder{}
			db := sqltest.Open(
				&sqlitedriver.Driver{},
				"file:"+filepath.Join(
					t.TempDir(), "payments.db",
				)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)",
				recorder,
			)
			t.Cleanup(func() { _ = db.Close() })

			if err := sqlite.Migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}

			watched := newWatched(t, sqlite.New(db), addresses)

			recorder.Take()
			watched.block(t.Context(), t)

			statements, _, commits := recorder.Take()
			for _, s := range statements {
				texts = append(texts, s.Text)
			}

			return texts, commits
		}
		want, _ := cost(few)

		got, commits := cost(many)
		if commits != 1 {
			t.Errorf("a block without a match took %d commits, want 1", commits)
		}

		if len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf(
				"with %d addresses a block took %d statements, with %d it took %d:\n%q\n%q",
				many, len(got), few, len(want), got, want,
			)
		}

		t.Logf(
			"a block of %d payments to others: %d statements and %d commit with %d addresses, %d statements with %d",
			strangers,
			len(got),
			commits,
			many,
			len(want),
			few,
		)
	})
	t.Run("memory", func(t *testing.T) {
		cost := func(addresses int) (calls, allocations uint64) {
			watched := newWatched(t, memory.New(), addresses)
			ctx := &counting{Context: t.Context()}

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			watched.block(ctx, t)
			runtime.ReadMemStats(&after)

			return ctx.asked.Load(), after.Mallocs - before.Mallocs
		}
		want, usual := cost(few)

		got, allocations := cost(many)
		if got == 0 || got != want {
			t.Errorf("with %d addresses a block took %d calls, with %d it took %d", many, got, few, want)
		}

		if allocations > 2*usual {
			t.Errorf(
				"with %d addresses a block allocated %d times, with %d %d times",
				many, allocations, few, usual,
			)
		}

		t.Logf(
			"a block of %d payments to others: %d calls and %d allocations with %d addresses, %d and %d with %d",
			strangers,
			got,
			allocations,
			many,
			want,
			usual,
			few,
		)
	})
}

// counting counts how often it is asked whether it has ended: the store in memory does so at each call.
type counting struct {
	context.Context
	asked atomic.Uint64
}

func (c *counting) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// watched is an engine that watches addresses on a simulated network.
type watched struct {
	engine *Engine
	chain  *sim.Chain
}

func newWatched(t *testing.T, st store.Store, addresses int) watched {
	t.Helper()

	c := sim.New(sim.Config{})

	began := time.Now()

	e := newEngine(t, map[string]string{"ETH/USD": "2500"}, Config{
		Store:   st,
		Drivers: []chain.Driver{c},
		Now:     func() time.Time { return began }, // no lease is renewed, however slow the machine
	})

	n := c.Network()

	var all []chain.Address
	for range addresses {
		all = append(all, c.NewAddress())
	}

	for part := range slices.Chunk(all, 5000) {
		if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for _, a := range part {
				if err := tx.PutAddress(ctx, invoice.Address{
					Space:            n.Space(),
					Address:          a,
					Kind:             invoice.ForDeposit,
					Network:          n.Slug,
					DepositAddressID: "000000000000000000000001",
					Key:              chain.KeyRef{Family: n.Family, Role: chain.RoleDeposit},
					CreatedAt:        time.Now(),
				}); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	w := watched{e, c}
	w.block(t.Context(), t) // the lease and the first cursor

	return w
}

// block mines a block of payments to others and has it stored.
func (w watched) block(ctx context.Context, t *testing.T) {
	t.Helper()

	for range strangers {
		w.chain.Pay(w.chain.NewAddress(), "SIM", chain.Units(5))
	}

	tip := w.chain.Mine(1)
	if did, err := w.engine.followers[0].Step(ctx); err != nil || !did {
		t.Fatalf("the block was not stored: %v, %v", did, err)
	}

	c, _, err := w.engine.config.Store.Cursor(context.WithoutCancel(ctx), w.chain.Network().Slug)
	if err != nil || c.At.Height != tip.Height {
		t.Fatal(fmt.Errorf("the cursor is at %d, the tip at %d: %w", c.At.Height, tip.Height, err))
	}
}
