package follow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// restored is a network whose node may lack old blocks, with the follower of a process that may start again.
type restored struct {
	*polled
	t *testing.T
	d *db
	// driver is how the network is read.
	driver   chain.Driver
	follower *follow.Follower
}

// readings are the ways of reading a network.
var readings = map[string]func(p *polled) chain.Driver{
	"by block":                func(p *polled) chain.Driver { return p.c },
	"by address":              func(p *polled) chain.Driver { return p },
	"by address, two at once": func(p *polled) chain.Driver { return twoAtATime{p} },
}

func newRestored(t *testing.T, driver func(p *polled) chain.Driver) *restored {
	t.Helper()

	p := newPolled(sim.New(sim.Config{NoFinality: true}))
	r := &restored{polled: p, t: t, d: newDB(), driver: driver(p)}
	r.c.Mine(5)
	r.restart()
	r.blocks(5)
	r.steps()

	return r
}

// restart starts another process in place of the one there was.
func (r *restored) restart() {
	r.t.Helper()

	clear(r.d.leases)
	r.follower = r.followAs(r.t, r.d, r.driver)
}

// blocks makes blocks with a payment each.
func (r *restored) blocks(count int) {
	for range count {
		r.pay()
		r.c.Mine(1)
	}
}

// forget leaves the node the blocks from a height on.
func (r *restored) forget(below uint64) {
	r.c.Prune(below)
	r.oldest = below
}

// steps reads what there is; what a round is due for comes within the minutes that pass.
func (r *restored) steps() {
	for range 20 {
		r.time = r.time.Add(time.Minute)

		for range 50 {
			if did, err := r.follower.Step(r.t.Context()); !did || err != nil {
				break
			}
		}
	}
}

// wantAll fails the test unless all is read that the chain shows.
func (r *restored) wantAll() {
	r.t.Helper()

	if stopped := r.d.cursors["simnet"].Stopped; stopped != "" {
		r.t.Fatalf("the network was stopped: %s", stopped)
	}

	at := r.oldest
	r.c.Prune(0)

	if diff := cmp.Diff(truth(r.t, r.c), r.d.seen); diff != "" {
		r.t.Error(diff)
	}

	r.c.Prune(at)
}

// Nothing is missing where the first block that the nodes have names the last one that was read as its parent: nothing
// stops, in the process that read it, in one that starts, and where a fork led back to that block.
func TestTheBlockAfterTheCursorProvesIt(t *testing.T) {
	for name, driver := range readings {
		t.Run(name, func(t *testing.T) {
			r := newRestored(t, driver)

			r.blocks(3)
			r.forget(r.d.at("simnet") + 1)
			r.steps()
			r.wantAll()

			r.blocks(2)
			r.forget(r.d.at("simnet") + 1)
			r.restart()
			r.steps()
			r.wantAll()

			r.c.Fork(sim.Fork{Depth: 2, Length: 4, Fate: sim.Reinclude})
			r.forget(r.d.at("simnet") - 1)
			r.steps()
			r.wantAll()
		})
	}
}

// resume is a person's decision.
func (r *restored) resume() *scan.Range {
	r.t.Helper()

	passed, err := follow.Resume(r.t.Context(), r.d, r.driver, r.time)
	if err != nil {
		r.t.Fatal(err)
	}

	return passed
}

// wantStopped fails the test unless the network waits for a person.
func (r *restored) wantStopped() {
	r.t.Helper()

	if r.d.cursors["simnet"].Stopped == "" {
		r.t.Fatal("the network was not stopped")
	}
}

// Where blocks are missing the network stops for a person. Resumed, it is read on at the first block that the nodes
// have. What was passed is on record, and read once a node has it, all at once or in parts.
func TestResumePassesBlocksThatNoNodeHas(t *testing.T) {
	for name, driver := range readings {
		t.Run(name, func(t *testing.T) {
			r := newRestored(t, driver)
			read := r.d.at("simnet")

			r.blocks(9)
			r.forget(read + 5)
			r.steps()
			r.wantStopped()

			passed := r.resume()
			if passed == nil || passed.Next != read+1 || passed.To != read+4 {
				t.Fatalf("what was passed after block %d is %+v", read, passed)
			}

			r.pay()
			r.steps()

			if at := r.d.cursors["simnet"]; at.Stopped != "" || at.At.Height != read+9 {
				t.Fatalf("read up to block %d: %s", at.At.Height, at.Stopped)
			}

			want := truth(t, prunedTo(r.c, 0))
			for key, block := range want {
				if height(block) > read && height(block) < read+5 {
					delete(want, key)
				}
			}

			prunedTo(r.c, r.oldest)

			if diff := cmp.Diff(want, r.d.seen); diff != "" {
				t.Errorf("above what was passed: %s", diff)
			}

			if left := r.d.ranges[passed.ID]; left.Next != read+1 || left.To != read+4 ||
				!scanstate.IsGap(left) {
				t.Errorf("on record as passed is %+v", left)
			}

			r.restart()
			r.forget(read + 3)
			r.steps()

			for _, left := range r.d.ranges {
				if left.Next != read+1 || left.To != read+2 || !scanstate.IsGap(left) {
					t.Errorf("with the blocks from %d on what is left is %+v", read+3, left)
				}
			}

			r.forget(0)
			r.steps()
			r.wantAll()

			if len(r.d.ranges) != 0 {
				t.Errorf("left are %+v", r.d.ranges)
			}
		})
	}
}

// prunedTo has the chain's node forget what is below a height.
func prunedTo(c *sim.Chain, below uint64) *sim.Chain {
	c.Prune(below)

	return c
}

// A network that was stopped for missing blocks which a node has again is read on where it was.
func TestResumePassesNothingThatANodeHas(t *testing.T) {
	for name, driver := range readings {
		t.Run(name, func(t *testing.T) {
			r := newRestored(t, driver)

			r.blocks(9)
			r.forget(r.d.at("simnet") + 5)
			r.steps()
			r.wantStopped()

			r.forget(0)

			if passed := r.resume(); passed != nil {
				t.Errorf("passed was %+v", passed)
			}

			r.steps()
			r.wantAll()
		})
	}
}

// While no node says what it has a network stays stopped where it is.
func TestResumeNeedsANodeThatAnswers(t *testing.T) {
	r := newRestored(t, readings["by block"])

	r.blocks(9)
	r.forget(r.d.at("simnet") + 5)
	r.steps()

	stopped := r.d.cursors["simnet"]

	r.c.SetNode(0, sim.NodeFaults{Syncing: true})

	if _, err := follow.Resume(t.Context(), r.d, r.c, r.time); !errors.Is(err, fault.Unavailable) {
		t.Errorf("without a node: %v", err)
	}

	if diff := cmp.Diff(stopped, r.d.cursors["simnet"]); diff != "" || len(r.d.ranges) != 0 {
		t.Errorf("it changed the records: %s", diff)
	}
}

// The block that was read last left the chain, and the node that shows it has none of before: a person decides, and the
// other branch is read on.
func TestResumeGoesOnAboveAForkThatNoNodeShows(t *testing.T) {
	for name, driver := range readings {
		t.Run(name, func(t *testing.T) {
			r := newRestored(t, driver)
			read := r.d.at("simnet")

			r.c.Fork(sim.Fork{Depth: 1, Length: 3})
			r.forget(read + 1)
			r.steps()
			r.wantStopped()

			if passed := r.resume(); passed != nil {
				t.Errorf("passed was %+v", passed)
			}

			r.steps()

			if at := r.d.cursors["simnet"]; at.Stopped != "" || at.At.Height != read+2 {
				t.Fatalf("read up to block %d: %s", at.At.Height, at.Stopped)
			}
		})
	}
}
