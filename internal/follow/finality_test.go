package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// tipped is a driver whose tip can be read alone. It counts how often it is asked for finality too.
type tipped struct {
	*sim.Chain
	asked  *int
	failed *error
	behind *uint64 // blocks by which the tip that is read alone is below that of the head
}

func (d tipped) Tip(ctx context.Context) (chain.Ref, error) {
	head, err := d.Chain.Head(ctx)
	if err != nil {
		return chain.Ref{}, err
	}

	return d.RefAt(ctx, head.Tip.Height-*d.behind)
}

func (d tipped) Head(ctx context.Context) (chain.Head, error) {
	*d.asked++

	head, err := d.Chain.Head(ctx)

	return head, errors.Join(err, *d.failed)
}

func (d tipped) AgreedHead(ctx context.Context) (chain.Head, error) {
	*d.asked++

	return d.Chain.AgreedHead(ctx)
}

// tippedNetwork is a network of a pace that is read up to its tip, with a clock.
type tippedNetwork struct {
	t      *testing.T
	pace   time.Duration
	at     time.Time
	node   *sim.Chain
	db     *db
	f      *follow.Follower
	asked  int
	failed error
	behind uint64
}

func newTippedNetwork(t *testing.T, pace time.Duration, config sim.Config) *tippedNetwork {
	t.Helper()

	n := &tippedNetwork{t: t, pace: pace, at: now(), db: newDB()}
	config.Clock = func() time.Time { return n.at }
	n.node = sim.New(config)
	n.f = newFollower(t, n.node, n.db, "a")
	n.f.Driver, n.f.Now = tipped{n.node, &n.asked, &n.failed, &n.behind}, config.Clock

	for range 400 {
		n.at = n.at.Add(pace)
		n.node.Mine(1)
	}

	drainAll(t, n.f)

	if n.f.IsFast() != (pace < time.Second) {
		t.Fatalf("at a block in %s it is fast: %t", pace, n.f.IsFast())
	}

	return n
}

// pass lets a time pass, in which blocks are made.
func (n *tippedNetwork) pass(span time.Duration, blocks int) {
	n.at = n.at.Add(span)
	n.node.Mine(blocks)
}

// step makes a look, and returns how often finality was asked for.
func (n *tippedNetwork) step() int {
	n.t.Helper()

	before := n.asked
	if _, err := n.f.Step(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}

	return n.asked - before
}

// Finality is asked for with each new block, on a fast network and where none comes once in three seconds or in the
// time of a block: it does not cost more where there are more blocks.
func TestFinalityIsAskedForWhenItMayHaveMoved(t *testing.T) {
	for _, c := range []struct {
		pace, look time.Duration
		blocks     []int  // that are new at each look
		want       string // looks at which it is asked for
	}{
		{200 * time.Millisecond, time.Second, []int{5, 5, 5, 5, 5, 5, 5}, "..x..x."},
		{450 * time.Millisecond, time.Second, []int{2, 2, 3, 2, 2, 2, 3}, "..x..x."},
		{200 * time.Millisecond, time.Second, []int{0, 0, 0, 0, 0, 0, 0}, "..x..x."},
		{2 * time.Second, time.Second, []int{0, 1, 0, 1, 0, 1, 0}, ".x.x.x."},
		{2 * time.Second, time.Second, []int{0, 0, 0, 0, 0, 0, 0}, "..x..x."},
		{12 * time.Second, 3 * time.Second, []int{0, 0, 0, 1, 0, 0, 0}, "...x..."},
		{12 * time.Second, 3 * time.Second, []int{0, 0, 0, 0, 0, 0, 0}, "...x..."},
	} {
		t.Run(fmt.Sprintf("%s %v", c.pace, c.blocks), func(t *testing.T) {
			n := newTippedNetwork(t, c.pace, sim.Config{})

			n.at = n.at.Add(max(c.pace, 3*time.Second))
			if n.step() != 1 {
				t.Fatal("it was not asked for")
			}

			got := ""

			for _, blocks := range c.blocks {
				n.pass(c.look, blocks)

				got += map[int]string{0: ".", 1: "x"}[n.step()]
			}

			if got != c.want {
				t.Errorf("it was asked for at %s, want %s", got, c.want)
			}

			n.at = n.at.Add(time.Minute)
			n.step()

			head, err := n.node.Head(t.Context())
			if cursor := n.db.cursors["simnet"]; err != nil || cursor.Safe != head.Safe ||
				cursor.Final != head.Final {
				t.Errorf("on record are %+v and %+v, of %+v, %v", cursor.Safe, cursor.Final, head, err)
			}
		})
	}
}

// A fork may take what was called safe with it: finality is asked for with it, however lately it was.
func TestForkIsReadWithFinality(t *testing.T) {
	n := newTippedNetwork(t, 200*time.Millisecond, sim.Config{})

	n.at = n.at.Add(3 * time.Second)
	n.step()
	n.pass(time.Second, 1)

	if asked := n.step(); asked != 0 {
		t.Fatalf("it was asked for %d times", asked)
	}

	n.node.Fork(sim.Fork{Depth: 2})
	n.pass(time.Second, 3)

	if asked := n.step(); asked != 1 {
		t.Errorf("with a fork it was asked for %d times", asked)
	}
}

// A final block above the tip may be on another branch: what is on record stands until the tip is above it.
func TestFinalityAboveTheTipSaysNothing(t *testing.T) {
	n := newTippedNetwork(t, 200*time.Millisecond, sim.Config{SafeDepth: 1, FinalDepth: 1})
	before := n.db.cursors["simnet"]
	n.behind = 2
	n.pass(3*time.Second, 5)

	if asked := n.step(); asked != 1 {
		t.Fatalf("it was asked for %d times", asked)
	}

	after := n.db.cursors["simnet"]
	if after.At.Height != before.At.Height+3 || after.Safe != before.Safe || after.Final != before.Final {
		t.Errorf("below the final block the cursor went from %+v to %+v", before, after)
	}

	n.behind = 0
	n.pass(3*time.Second, 0)
	n.step()

	if after := n.db.cursors["simnet"]; after.Final.Height != after.At.Height-1 {
		t.Errorf("the cursor is %+v", after)
	}
}

// Finality that a node does not give is an error. Where no two nodes agree on it, what is on record stands.
func TestFinalityThatIsNotHad(t *testing.T) {
	n := newTippedNetwork(t, 200*time.Millisecond, sim.Config{})
	n.pass(time.Minute, 5)

	n.failed = errors.New("it no longer names its safe block")
	if _, err := n.f.Step(t.Context()); !errors.Is(err, n.failed) {
		t.Errorf("the step ended with %v", err)
	}

	n.failed = nil
	if asked := n.step(); asked == 0 {
		t.Error("it was not asked for again")
	}

	n = newTippedNetwork(t, 200*time.Millisecond, sim.Config{Nodes: 2})
	before := n.db.cursors["simnet"]

	n.node.SetNode(1, sim.NodeFaults{Syncing: true})
	n.pass(time.Minute, 3)

	if asked := n.step(); asked != 1 {
		t.Errorf("it was asked for %d times", asked)
	}

	after := n.db.cursors["simnet"]
	if after.At.Height != before.At.Height+3 || after.Safe != before.Safe || after.Final != before.Final {
		t.Errorf("without a second node the cursor went from %+v to %+v", before, after)
	}
}

// The first block above the last one shows whether that is still in the chain: nothing is asked about it, and a fork is
// read in the step that finds it.
func TestBlockIsNotAskedForWhereItsChildIsRead(t *testing.T) {
	c, d := sim.New(sim.Config{NoFinality: true}), newDB()
	f := newFollower(t, c, d, "a")
	c.Mine(8)
	drainAll(t, f)

	asked := c.Calls(sim.MethodRefAt)

	for range 3 {
		c.Pay(c.NewAddress(), "SIM", chain.Units(5))
		c.Mine(2)

		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if again := c.Calls(sim.MethodRefAt); again != asked {
		t.Errorf("blocks were asked for by height %d times", again-asked)
	}

	c.Fork(sim.Fork{Depth: 3})
	c.Mine(2)

	if _, err := f.Step(t.Context()); err != nil {
		t.Fatal(err)
	}

	at := d.cursors["simnet"].At
	if ref, err := c.RefAt(t.Context(), at.Height); err != nil || ref != at || at.Height < 14 {
		t.Errorf("after a fork the cursor is at %+v, where the chain has %+v, %v", at, ref, err)
	}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
		t.Error("after a fork:\n", diff)
	}
}

// A chain that forks while a network is first read is no reason to stop: nothing of it was read yet.
func TestForkDuringTheFirstLookIsNoFork(t *testing.T) {
	at := now()
	c, d := sim.New(sim.Config{NoFinality: true, Clock: func() time.Time { return at }}), newDB()

	for range 100 {
		at = at.Add(time.Minute)

		c.Mine(1)
	}

	f := newFollower(t, c, d, "a")
	f.Now = func() time.Time { return at }
	f.FirstAddress = func(context.Context) (time.Time, error) { return at, nil }

	forked := false

	c.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBlocks && !forked {
			forked = true

			c.Fork(sim.Fork{Depth: 40})
		}

		return nil
	})

	if _, err := f.Step(t.Context()); err != nil {
		t.Fatal(err)
	}

	if _, followed := d.cursors["simnet"]; followed || !forked {
		t.Errorf("forked %t, and on record is %+v", forked, d.cursors["simnet"])
	}

	drainAll(t, f)

	if tip := d.cursors["simnet"].At; tip.Height < 100 {
		t.Errorf("it was read up to %+v", tip)
	}
}

// astray is a driver of two nodes whose blocks come from one of them, which follows another branch than the one that
// both call final.
type astray struct {
	*sim.Chain
	final chain.Ref
	has   func(at chain.Ref) bool // whether both nodes have a block
}

func (a *astray) Nodes() []chain.NodeState { return make([]chain.NodeState, 2) }

func (a *astray) AgreedHead(ctx context.Context) (chain.Head, error) {
	head, err := a.Head(ctx)
	head.Safe, head.Final = a.final, a.final

	return head, err
}

func (a *astray) AgreedBlock(_ context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	if !a.has(at) {
		return chain.Block{}, fault.New(fault.NotFound, "block_unknown", "two nodes have another block")
	}

	return chain.Block{Ref: at}, nil
}

// What two nodes call final is stored only where it is of the branch that was read. A final block of another branch
// would be taken for a common one, and a fork back to the branch of both nodes for one below finality.
func TestFinalityOfAnotherBranchIsNotStored(t *testing.T) {
	c, d := sim.New(sim.Config{Clock: now}), newDB()
	driver := &astray{Chain: c, has: func(chain.Ref) bool { return false }}

	f, err := follow.New(follow.Config{
		Driver:       driver,
		Handler:      ledger{d, c},
		DB:           d,
		Owner:        "a",
		Now:          now,
		Log:          quiet(),
		FirstAddress: longAgo,
	})
	if err != nil {
		t.Fatal(err)
	}

	c.Mine(100)
	drainAll(t, f)

	cursor := func() scan.Cursor { return d.cursors["simnet"] }
	remembered := func(height uint64) bool {
		return slices.ContainsFunc(cursor().Recent, func(r chain.Ref) bool { return r.Height == height })
	}

	forgotten := uint64(60)
	for remembered(forgotten) {
		forgotten--
	}

	driver.final = chain.Ref{Height: forgotten, Hash: "of another branch"}

	c.Mine(1)
	drainAll(t, f)

	if !cursor().Final.IsZero() || !cursor().Safe.IsZero() {
		t.Errorf("a block of another branch is stored as final: %+v", cursor().Final)
	}

	own, err := c.RefAt(t.Context(), forgotten)
	if err != nil {
		t.Fatal(err)
	}

	driver.final, driver.has = own, func(at chain.Ref) bool { return at.Height < forgotten+30 }

	c.Mine(1)
	drainAll(t, f)

	if cursor().Final.Hash != own.Hash {
		t.Errorf("the final block of the branch that was read is %+v, want %+v", cursor().Final, own)
	}

	// What is final above the last block that was read makes that one final.
	driver.final, driver.has = chain.Ref{Height: 500, Hash: "not read"}, func(chain.Ref) bool { return true }
	tip := c.Mine(1)

	drainAll(t, f)

	if cursor().Final.Hash != tip.Hash {
		t.Errorf("the final block is %+v, want the last one that was read, %+v", cursor().Final, tip)
	}
}

// slow is a driver whose second node takes a time to answer.
type slow struct {
	*sim.Chain
	takes time.Duration
}

func (s *slow) Nodes() []chain.NodeState { return make([]chain.NodeState, 2) }

func (s *slow) Tip(ctx context.Context) (chain.Ref, error) {
	head, err := s.Head(ctx)

	return head.Tip, err
}

func (s *slow) AgreedHead(ctx context.Context) (chain.Head, error) {
	select {
	case <-time.After(s.takes):
		return s.Chain.AgreedHead(ctx)
	case <-ctx.Done():
		return chain.Head{}, ctx.Err()
	}
}

// A node that does not answer when it is compared delays no block: what is final comes with a later batch.
func TestNodeThatDoesNotAnswerDelaysNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := sim.New(sim.Config{Clock: time.Now}), newDB()
		driver := &slow{Chain: c}

		f, err := follow.New(follow.Config{
			Driver:       driver,
			Handler:      ledger{d, c},
			DB:           d,
			Owner:        "a",
			Now:          time.Now,
			Log:          quiet(),
			FirstAddress: longAgo,
		})
		if err != nil {
			t.Fatal(err)
		}

		defer func() {
			if err := f.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()

		c.Mine(40)
		drainAll(t, f)

		driver.takes = 20 * time.Second
		final, begun := d.cursors["simnet"].Final, time.Now()

		for i := range 5 {
			tip := c.Mine(1)
			before := time.Now()

			if _, err := f.Step(t.Context()); err != nil {
				t.Fatal(err)
			}

			took, most := time.Since(before), []time.Duration{2 * time.Second, 0}[min(i, 1)]
			if d.cursors["simnet"].At != tip || took > most {
				t.Errorf("after %s block %d of %d is read", took, d.cursors["simnet"].At.Height, tip.Height)
			}

			time.Sleep(time.Second)
		}

		if d.cursors["simnet"].Final != final {
			t.Error("finality moved though nodes did not agree about it")
		}

		time.Sleep(driver.takes + time.Second - time.Since(begun))
		c.Mine(1)
		drainAll(t, f)

		if d.cursors["simnet"].Final.Height <= final.Height {
			t.Error("finality does not move once the node has answered")
		}
	})
}
