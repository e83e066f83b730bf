package follow_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Old blocks are read again as far as the node has them, whatever it lacks of another range. What it lacks is named,
// and read once a node has it, more at a time or all at once.
func TestOldBlocksAreReadAsFarAsTheNodeHasThem(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	for range 12 {
		c.Pay(c.NewAddress(), "SIM", chain.Units(5))
		c.Mine(1)
	}

	at := now()

	f, err := follow.New(follow.Config{
		Driver:      c,
		Handler:     ledger{d, c},
		DB:          d,
		Owner:       "a",
		Now:         func() time.Time { return at },
		Log:         quiet(),
		BatchBlocks: 4,
	})
	if err != nil {
		t.Fatal(err)
	}

	drainAll(t, f)

	want, slug := truth(t, c), c.Network().Slug
	d.ranges["a"] = scan.Range{ID: "a", Network: slug, Next: 1, To: 4}
	d.ranges["b"] = scan.Range{ID: "b", Network: slug, Next: 2, To: 12}

	read := func(below uint64, left ...scan.Range) {
		t.Helper()

		c.Prune(below)

		at = at.Add(5 * time.Minute) // what could not be read is tried again

		for range 3 { // a range that is left ends a step
			drainAll(t, f)
		}

		ranges := map[string]scan.Range{}

		for _, r := range left {
			r.Network = slug
			ranges[r.ID] = r
		}

		if diff := cmp.Diff(ranges, d.ranges); diff != "" {
			t.Errorf("with the blocks from %d on, left are: %s", below, diff)
		}

		health := f.Health()
		if named := len(health.Unread) > 0; named != (len(left) > 0) || health.LastError != "" {
			t.Errorf("with the blocks from %d on: %+v", below, health)
		}
	}

	read(8, scan.Range{ID: "a", Next: 1, To: 4}, scan.Range{ID: "b/8", Next: 2, To: 7})
	read(3, scan.Range{ID: "a/3", Next: 1, To: 2}, scan.Range{ID: "b/3", Next: 2, To: 2})
	read(0)

	if diff := cmp.Diff(want, d.seen); diff != "" {
		t.Errorf("in the end: %s", diff)
	}
}
