package follow_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// On a network that has a new block at each step, old blocks are read beside them.
func TestOldBlocksAreReadWhereEachStepHasANewOne(t *testing.T) {
	c, d := sim.New(sim.Config{Clock: now}), newDB()
	c.Mine(20)

	f := newFollower(t, c, d, "a")
	drainAll(t, f)

	d.ranges["r"] = scan.Range{ID: "r", Network: c.Network().Slug, Next: 1, To: 12}

	for range 10 {
		c.Mine(1)

		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if left := d.ranges["r"]; len(d.ranges) > 0 {
		t.Errorf("after ten blocks the old ones are still to be read from %d on", left.Next)
	}
}

// What is behind the tip is not at rest: the next batch is read at once, however seldom new blocks are looked for.
func TestWhoIsBehindIsNotAtRest(t *testing.T) {
	c, d := sim.New(sim.Config{Clock: now}), newDB()
	f := newFollower(t, c, d, "a")
	drainAll(t, f)

	tip := c.Mine(100)
	steps := 0

	for d.cursors["simnet"].At.Height < tip.Height {
		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}

		steps++

		if at := d.cursors["simnet"].At.Height; f.AtRest() != (at == tip.Height) {
			t.Errorf("at %d of %d it is at rest: %t", at, tip.Height, f.AtRest())
		}
	}

	if steps < 2 {
		t.Errorf("%d blocks were one batch", tip.Height)
	}
}

// pooled counts how often the pool is read.
type pooled struct {
	*sim.Chain
	pools *int
}

func (p pooled) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	*p.pools++
	return p.Chain.Pool(ctx)
}

// Blocks are looked for four times in the time between two, and not more often than once a second. The pool is read at
// each look, but where it finds several blocks and the next one empties the pool: blocks that were made at once, and
// then stand still, hide no pool.
func TestLooksFollowTheMeasuredPace(t *testing.T) {
	for _, c := range []struct {
		pace, every time.Duration
		fast        bool
	}{
		{200 * time.Millisecond, time.Second, true},
		{450 * time.Millisecond, time.Second, true},
		{2 * time.Second, time.Second, false},
		{12 * time.Second, 3 * time.Second, false},
		{10 * time.Minute, 15 * time.Second, false},
	} {
		t.Run(c.pace.String(), func(t *testing.T) {
			at, pools := now(), 0
			node := sim.New(sim.Config{Clock: func() time.Time { return at }})
			f := newFollower(t, node, newDB(), "a")
			f.Driver = pooled{node, &pools}

			if got := f.LookEvery(); got != 500*time.Millisecond || f.IsFast() {
				t.Errorf("before anything was read: every %s, fast %t", got, f.IsFast())
			}

			for range 400 {
				at = at.Add(c.pace)

				node.Mine(1)
			}

			drainAll(t, f)

			if got := f.LookEvery(); got != c.every || f.IsFast() != c.fast {
				t.Errorf("every %s, fast %t; want %s, %t", got, f.IsFast(), c.every, c.fast)
			}

			pools = 0
			at = at.Add(2 * c.pace)

			node.Mine(2)

			if _, err := f.Step(t.Context()); err != nil || (pools == 0) != c.fast {
				t.Errorf("with two new blocks the pool was read %d times: %v", pools, err)
			}

			pools = 0

			if _, err := f.Step(t.Context()); err != nil || pools != 1 {
				t.Errorf("without new blocks the pool was read %d times: %v", pools, err)
			}
		})
	}
}
