package follow_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
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
		{name: "an address of just now", made: at(240), earliest: 189, latest: 189},
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

// A network may be stopped before anything of it was read: its node is of another network. Resumed, it is read from
// before its first address as if it had never been stopped.
func TestFirstReadingAfterAStop(t *testing.T) {
	for _, method := range []sim.Method{sim.MethodHead, sim.MethodRefAt, sim.MethodBlocks} {
		t.Run(string(method), func(t *testing.T) {
			c, d := minutes(100), newDB()
			f := newFollower(t, c, d, "a")
			f.FirstAddress = func(context.Context) (time.Time, error) { return now().Add(50 * time.Minute), nil }

			c.FailNext(method, fault.New(fault.Stopped, "chain_id_mismatch", "another network"), 1)

			if _, err := f.Step(
				t.Context(),
			); !errors.Is(err, fault.Stopped) ||
				d.cursors["simnet"].Stopped == "" {
				t.Fatalf("a node of another network: %v, cursor %+v", err, d.cursors["simnet"])
			}

			if _, err := follow.Resume(t.Context(), d, c, now()); err != nil {
				t.Fatal(err)
			}

			drainAll(t, f)

			if first := firstSeen(d); d.at("simnet") != 100 || first == 0 || first > 50 {
				t.Errorf("the cursor is at %d, and read from %d on", d.at("simnet"), first)
			}
		})
	}
}

// A fork may take away the block that was found, while it is looked for and before those above it are read: then there
// is another one.
func TestFirstReadingAmidAFork(t *testing.T) {
	for call := 1; call <= 11; call++ { // the last of them reads blocks
		c, d := minutes(200), newDB()
		f := newFollower(t, c, d, "a")
		f.FirstAddress = func(context.Context) (time.Time, error) { return now().Add(190 * time.Minute), nil }

		calls := 0

		c.SetIntercept(func(_ context.Context, method sim.Method) error {
			if method == sim.MethodRefAt || method == sim.MethodBlocks {
				if calls++; calls == call {
					c.Fork(sim.Fork{Depth: 60, Length: 61, Fate: sim.Reinclude})
				}
			}

			return nil
		})

		for d.at("simnet") < 201 {
			if _, err := f.Step(t.Context()); err != nil {
				t.Fatalf("a fork at call %d: %v", call, err)
			}
		}

		c.SetIntercept(nil)

		want, first := truth(t, c), firstSeen(d)
		maps.DeleteFunc(want, func(_, block string) bool { return height(block) < first })

		if diff := cmp.Diff(want, d.seen); diff != "" || first == 0 || first > 190 {
			t.Errorf("a fork at call %d: read from %d on: %s", call, first, diff)
		}
	}
}
