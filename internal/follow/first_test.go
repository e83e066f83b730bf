package follow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sim"
)

// minutes is a network with a block a minute since now, as many as given, each with a payment.
func minutes(blocks int) *sim.Chain {
	var ahead time.Duration

	c := sim.New(sim.Config{NoFinality: true, Clock: func() time.Time { return now().Add(ahead) }})

	for range blocks {
		ahead += time.Minute

		c.Pay(c.NewAddress(), "SIM", chain.Units(5))
		c.Mine(1)
	}

	return c
}

// firstSeen returns the height of the lowest block of which a transfer was stored; 0 when none was.
func firstSeen(d *db) (first uint64) {
	for _, block := range d.seen {
		if h := height(block); first == 0 || h < first {
			first = h
		}
	}

	return first
}

// An address may be handed out, and paid, before its network was ever followed: the node was down, or the process
// that follows starts later. What was paid since is read.
func TestFirstReadingBeginsBeforeTheFirstAddress(t *testing.T) {
	at := func(minute int) time.Time { return now().Add(time.Duration(minute) * time.Minute) }

	for _, test := range []struct {
		name string
		made time.Time
		// pruned is the lowest height that the node has.
		pruned uint64
		// earliest and latest bound the first block that is read; 0 when none is to be.
		earliest, latest uint64
	}{
		{name: "no address", made: time.Time{}},
		{name: "an address of just now", made: at(240)},
		{name: "an address of two hours ago", made: at(80), earliest: 50, latest: 80},
		{name: "an address of just before", made: at(199), earliest: 150, latest: 199},
		{name: "an address from before the first block", made: at(-3000), earliest: 1, latest: 1},
		{name: "an address that the node remembers", made: at(80), pruned: 40, earliest: 50, latest: 80},
		{name: "an address from before what the node has", made: at(80), pruned: 100, earliest: 100, latest: 101},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, d := minutes(200), newDB()
			c.Prune(test.pruned)

			f := newFollower(t, c, d, "a")
			f.FirstAddress = func(context.Context) (time.Time, error) { return test.made, nil }
			drainAll(t, f)

			if first := firstSeen(d); first < test.earliest || first > test.latest {
				t.Errorf(
					"the first block that was read is %d, want %d to %d",
					first,
					test.earliest,
					test.latest,
				)
			}

			if at := d.at("simnet"); at != 200 {
				t.Errorf("the cursor is at %d, the tip at 200", at)
			}
		})
	}
}

// Nothing is followed before it is known where from: a store or a node that does not answer is asked again.
func TestFirstReadingWaitsForItsBlock(t *testing.T) {
	c, d := minutes(100), newDB()
	f := newFollower(t, c, d, "a")

	down := errors.New("the store is down")
	answer := down
	f.FirstAddress = func(context.Context) (time.Time, error) { return now().Add(50 * time.Minute), answer }

	if _, err := f.Step(t.Context()); !errors.Is(err, down) {
		t.Fatalf("without the store: %v", err)
	}

	answer = nil

	c.FailNext(sim.MethodRefAt, fault.New(fault.Unavailable, "node_unavailable", "the node is down"), 1)

	if _, err := f.Step(t.Context()); !errors.Is(err, fault.Unavailable) {
		t.Fatalf("without the node: %v", err)
	}

	if _, known := d.cursors["simnet"]; known {
		t.Fatal("a cursor was stored")
	}

	drainAll(t, f)

	if first := firstSeen(d); first == 0 || first > 50 {
		t.Errorf("the first block that was read is %d, the address was made at 50", first)
	}
}
