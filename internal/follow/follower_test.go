package follow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// db is the smallest store a follower can work on: one lock, and a copy put back when a closure fails.
type db struct {
	mu        sync.Mutex
	cursors   map[string]scan.Cursor
	leases    map[string]lease.Lease
	ranges    map[string]scan.Range
	positions map[chain.Address]scan.Position
	seen      map[string]string // transfer → block hash
	crash     bool              // fail the next Update after its closure ran
}

func newDB() *db {
	return &db{
		cursors: map[string]scan.Cursor{},
		leases:  map[string]lease.Lease{},
		ranges:  map[string]scan.Range{},
		seen:    map[string]string{},

		positions: map[chain.Address]scan.Position{},
	}
}

func (d *db) Update(ctx context.Context, f func(context.Context, scan.Tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	cursors, leases, ranges := maps.Clone(d.cursors), maps.Clone(d.leases), maps.Clone(d.ranges)
	seen, positions := maps.Clone(d.seen), maps.Clone(d.positions)

	err := f(ctx, tx{d})
	if err == nil && d.crash {
		d.crash, err = false, errors.New("crashed before the commit")
	}

	if err != nil {
		d.cursors, d.leases, d.ranges, d.seen = cursors, leases, ranges, seen
		d.positions = positions
	}

	return err
}

func (d *db) Cursor(ctx context.Context, n string) (scan.Cursor, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	return tx{d}.Cursor(ctx, n)
}

func (d *db) Positions(
	_ context.Context,
	_ string,
	addresses []chain.Address,
) (out []scan.Position, _ error) {
	for _, address := range addresses {
		if p, ok := d.positions[address]; ok {
			out = append(out, p)
		}
	}

	return out, nil
}

func (t tx) Positions(
	ctx context.Context,
	network string,
	addresses []chain.Address,
) ([]scan.Position, error) {
	return t.db.Positions(ctx, network, addresses)
}

func (d *db) Ranges(ctx context.Context, n string, limit int) ([]scan.Range, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	return tx{d}.Ranges(ctx, n, limit)
}

func (d *db) Retries(context.Context, string, time.Time, int) ([]scan.Retry, error) { return nil, nil }

type tx struct{ *db }

func (t tx) Cursor(_ context.Context, n string) (scan.Cursor, bool, error) {
	c, ok := t.cursors[n]
	return c, ok, nil
}

func (t tx) Ranges(_ context.Context, n string, limit int) (out []scan.Range, _ error) {
	for _, id := range slices.Sorted(maps.Keys(t.ranges)) {
		if r := t.ranges[id]; r.Network == n && len(out) < limit {
			out = append(out, r)
		}
	}

	return out, nil
}

func (t tx) Leases(context.Context, []string) (map[string]lease.Lease, error) {
	return maps.Clone(t.leases), nil
}

// loseHeartbeats ends the sessions of all processes, as their peers do when they stand still.
func (d *db) loseHeartbeats() {
	for name, row := range d.leases {
		if strings.HasPrefix(name, "process/") {
			row.Owner = ""
			d.leases[name] = row
		}
	}
}

func (t tx) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return t.Leases(ctx, names)
}

func (t tx) ReplaceLease(ctx context.Context, _, l lease.Lease) error { return t.PutLease(ctx, l) }

func (t tx) PutLease(_ context.Context, l lease.Lease) error { t.leases[l.Name] = l; return nil }
func (t tx) PutCursor(_ context.Context, c *scan.Cursor) error {
	t.cursors[c.Network] = *c
	return nil
}

func (t tx) PutPosition(_ context.Context, p *scan.Position) error {
	t.positions[p.Address] = *p
	return nil
}

func (t tx) PutRange(_ context.Context, r *scan.Range) error { t.ranges[r.ID] = *r; return nil }
func (t tx) DeleteRange(_ context.Context, id string) error  { delete(t.ranges, id); return nil }
func (t tx) PutRetry(context.Context, *scan.Retry) error     { return nil }
func (t tx) DeleteRetry(context.Context, string) error       { return nil }

// ledger is a block handler that keeps the set of transfers in canonical blocks.
type ledger struct {
	*db
	c *sim.Chain
}

func (l ledger) Apply(ctx context.Context, b follow.Batch) error {
	return l.Update(ctx, func(ctx context.Context, w scan.Tx) error {
		if _, err := b.Advance(ctx, w); err != nil {
			return err
		}

		seen := w.(tx).seen
		if b.Rewound {
			for t, block := range seen {
				if height(block) > b.ForkedFrom.Height {
					delete(seen, t)
				}
			}
		}

		for _, block := range b.Blocks {
			for _, t := range block.Transfers {
				seen[key(t)] = blockKey(block.Ref)
			}
		}

		return nil
	})
}

func key(t chain.Transfer) string { return fmt.Sprintf("%s/%d", t.TxHash, t.Index) }
func blockKey(r chain.Ref) string { return fmt.Sprintf("%020d/%s", r.Height, r.Hash) }
func height(s string) (h uint64)  { _, _ = fmt.Sscanf(s, "%d/", &h); return h }
func (d *db) at(n string) uint64  { return d.cursors[n].At.Height }
func quiet() *slog.Logger         { return slog.New(slog.DiscardHandler) }
func now() time.Time              { return time.Unix(1_800_000_000, 0) }

func newFollower(t interface{ Fatal(...any) }, c *sim.Chain, d *db, owner string) *follow.Follower {
	f, err := follow.New(
		follow.Config{
			Driver:       c,
			Handler:      ledger{d, c},
			DB:           d,
			Owner:        owner,
			Now:          now,
			Log:          quiet(),
			BatchBlocks:  4,
			FirstAddress: longAgo,
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	return f
}

// drainAll steps until there is nothing left to do.
func drainAll(t interface{ Fatal(...any) }, f *follow.Follower) {
	for range 1000 {
		did, err := f.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}

		if !did {
			return
		}
	}

	t.Fatal("the follower never comes to rest")
}

// truth reads the whole canonical chain.
func truth(t interface{ Fatal(...any) }, c *sim.Chain) map[string]string {
	head, err := c.Head(context.Background())
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{}

	for next := uint64(1); next <= head.Tip.Height; {
		blocks, err := c.Blocks(context.Background(), next, head.Tip.Height)
		if err != nil {
			t.Fatal(err)
		}

		for _, b := range blocks {
			for _, tr := range b.Transfers {
				want[key(tr)] = blockKey(b.Ref)
			}
		}

		next = blocks[len(blocks)-1].Height + 1
	}

	return want
}

func TestFollowsAndWalksBack(t *testing.T) {
	c, d := sim.New(sim.Config{NoFinality: true}), newDB()
	n := c.Network().Slug

	f := newFollower(t, c, d, "a")
	for range 9 {
		c.Pay(c.NewAddress(), "SIM", chain.Units(5))
		c.Mine(1)
	}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
		t.Fatal("after reading on:\n", diff)
	}

	old := c.Pay(c.NewAddress(), "SIM", chain.Units(7))
	c.Mine(1)
	drainAll(t, f)

	before := d.at(n)

	c.Fork(sim.Fork{Depth: 6})
	c.Mine(3)
	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
		t.Fatal("after a fork:\n", diff)
	}

	if d.at(n) < before {
		t.Fatalf("the cursor is at %d, it was at %d", d.at(n), before)
	}

	if _, found := d.seen[old+"/0"]; !found {
		t.Fatal("the payment that returned to the pool was not found in its new block")
	}
}

func TestForkBetweenTwoQuestions(t *testing.T) {
	c, d := sim.New(sim.Config{NoFinality: true}), newDB()
	f := newFollower(t, c, d, "a")
	c.Mine(4)
	drainAll(t, f)
	c.Pay(c.NewAddress(), "SIM", chain.Units(5))
	c.Mine(1)
	drainAll(t, f)
	c.Mine(1)
	// The node answers for its tip, then the chain forks below the cursor, then the blocks are asked for.
	forked := false

	c.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBlocks && !forked {
			forked = true

			c.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
		}

		return nil
	})
	drainAll(t, f)
	c.SetIntercept(nil)
	c.Mine(3)
	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
		t.Fatal(diff)
	}
	// Every block that the cursor trusts must be canonical.
	for _, r := range append(d.cursors[c.Network().Slug].Recent, d.cursors[c.Network().Slug].At) {
		if ref, err := c.RefAt(t.Context(), r.Height); err != nil || ref.Hash != r.Hash {
			t.Errorf("the cursor trusts block %d %s, the chain has %s (%v)", r.Height, r.Hash, ref.Hash, err)
		}
	}
}

func TestOneOfTwoProcessesFollows(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	a, b := newFollower(t, c, d, "a"), newFollower(t, c, d, "b")
	c.Mine(2)
	drainAll(t, a)
	drainAll(t, b)

	if !a.Health().Following || b.Health().Following {
		t.Fatalf("following: a %v, b %v", a.Health().Following, b.Health().Following)
	}
	// b takes over with a higher fence; what a still does under the old one must not be stored.
	l := d.leases["watch/"+c.Network().Slug]
	d.leases[l.Name] = lease.Lease{
		Name:      l.Name,
		Owner:     "b",
		Fence:     l.Fence + 1,
		UpdatedAt: now(),
	}
	at := d.at(c.Network().Slug)
	c.Mine(2)

	if did, err := a.Step(t.Context()); did || err != nil || d.at(c.Network().Slug) != at {
		t.Fatalf(
			"a stored under a lost lease: did %v, %v, cursor %d → %d",
			did, err, at, d.at(c.Network().Slug),
		)
	}

	drainAll(t, b)

	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.Mine(1)
	drainAll(t, a)

	if !a.Health().Following {
		t.Fatal("a did not take over what b gave back")
	}
}

func TestNodeBehindIsNoFork(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	f := newFollower(t, c, d, "a")
	c.Mine(10)
	drainAll(t, f)
	c.Lag(3)

	_, err := f.Step(t.Context())
	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "node_behind" {
		t.Fatalf("a node 3 blocks behind: %v", err)
	}

	c.Lag(0)
	drainAll(t, f)
}

// Pitfall 51. A node that does not even have the oldest block that is remembered is behind: nothing is
// stopped, and reading goes on once it has caught up.
func TestNodeBehindTheFirstBlockIsNoFork(t *testing.T) {
	c, d := sim.New(sim.Config{NoFinality: true}), newDB()
	c.Mine(10)

	f := newFollower(t, c, d, "a")
	f.FirstAddress = nil // the first reading starts at the present
	drainAll(t, f)
	c.Lag(6)

	_, err := f.Step(t.Context())
	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "node_behind" {
		t.Fatalf("a node behind the first block that was read: %v", err)
	}

	if stopped := d.cursors["simnet"].Stopped; stopped != "" {
		t.Fatalf("the network was stopped: %s", stopped)
	}

	c.Lag(0)
	c.Mine(1)
	drainAll(t, f)
}

// headOfBefore is a network of which one node was left behind, on a branch of before.
type headOfBefore struct {
	*sim.Chain
	before *chain.Head
}

func (c headOfBefore) Head(ctx context.Context) (chain.Head, error) {
	if c.before.Tip.Hash != "" {
		return *c.before, nil
	}

	return c.Chain.Head(ctx)
}

func (c headOfBefore) AgreedHead(ctx context.Context) (chain.Head, error) { return c.Head(ctx) }

// safeAt is a network whose node calls a block of this height safe, once it is set.
type safeAt struct {
	*sim.Chain
	height *uint64
}

func (c safeAt) AgreedHead(ctx context.Context) (chain.Head, error) { return c.Head(ctx) }

func (c safeAt) Head(ctx context.Context) (chain.Head, error) {
	head, err := c.Chain.Head(ctx)
	if err == nil && *c.height > 0 {
		head.Safe, err = c.RefAt(ctx, *c.height)
	}

	return head, err
}

// A fork may go below what was safe. The block of the new branch at that height is not safe before the node says so.
func TestSafeBlockFallsBackWithAFork(t *testing.T) {
	c, d := sim.New(sim.Config{SafeDepth: 2, FinalDepth: 20}), newDB()
	f, safe := newFollower(t, c, d, "a"), uint64(0)
	f.Driver = safeAt{c, &safe}

	c.Mine(40)
	drainAll(t, f)
	c.Fork(sim.Fork{Depth: 10, Length: 11})

	safe = 31

	drainAll(t, f)

	want, err := c.RefAt(t.Context(), safe)
	if diff := cmp.Diff(want, d.cursors["simnet"].Safe); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A node that has fewer blocks than were read, on a branch that the network left before it called anything final, shows
// no fork below finality.
func TestNodeLeftBehindOnAnotherBranchIsNoFork(t *testing.T) {
	c, d := sim.New(sim.Config{FinalDepth: 2}), newDB()
	n, before := c.Network().Slug, &chain.Head{}
	f := newFollower(t, c, d, "a")
	f.Driver = headOfBefore{c, before}

	c.Mine(6)

	old, err := c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	c.Fork(sim.Fork{Depth: 1})
	c.Mine(6)
	drainAll(t, f)

	*before = old

	_, err = f.Step(t.Context())
	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "node_behind" {
		t.Fatalf("a node that was left behind: %v", err)
	}

	if stopped := d.cursors[n].Stopped; stopped != "" {
		t.Fatalf("the network was stopped: %s", stopped)
	}

	*before = chain.Head{}

	c.Mine(1)
	drainAll(t, f)
}

func TestForkBelowFinalityStopsAndResumes(t *testing.T) {
	c, d := sim.New(sim.Config{FinalDepth: 2}), newDB()
	n := c.Network().Slug
	f := newFollower(t, c, d, "a")
	c.Mine(10)
	drainAll(t, f)
	c.Fork(sim.Fork{Depth: 5})
	c.Mine(3)

	_, err := f.Step(t.Context())
	if !errors.Is(err, fault.Stopped) || fault.Code(err) != "fork_below_finality" {
		t.Fatalf("a fork below finality: %v", err)
	}

	if d.cursors[n].Stopped == "" {
		t.Fatal("the reason was not stored")
	}

	if _, err := f.Step(t.Context()); !errors.Is(err, fault.Stopped) {
		t.Fatalf("a stopped network was read on: %v", err)
	}

	if _, err := follow.Resume(t.Context(), d, c, now()); err != nil {
		t.Fatal(err)
	}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
		t.Fatal("after resuming:\n", diff)
	}
}

func TestForkDownToFinalityIsFollowed(t *testing.T) {
	for depth, code := range map[uint64]string{
		2: "", // down to the final block itself
		3: "fork_below_finality",
	} {
		c, d := sim.New(sim.Config{FinalDepth: 2}), newDB()
		f := newFollower(t, c, d, "a")
		c.Mine(10)
		drainAll(t, f)
		c.Fork(sim.Fork{Depth: depth})
		c.Mine(1)

		if _, err := f.Step(t.Context()); fault.Code(err) != code {
			t.Errorf("a fork %d blocks deep: %v, want code %q", depth, err, code)
		}
	}
}

// What is safe or final on a branch that is gone says nothing of the blocks of another: they are not stored with it.
func TestFinalBlockOfAnotherBranch(t *testing.T) {
	for name, forget := range map[string]func(old *chain.Head){
		"safe":  func(old *chain.Head) { old.Final = chain.Ref{} },
		"final": func(old *chain.Head) { old.Safe = chain.Ref{} },
	} {
		t.Run(name, func(t *testing.T) {
			c, d := sim.New(sim.Config{FinalDepth: 2}), newDB()
			n, before := c.Network().Slug, &chain.Head{}
			f := newFollower(t, c, d, "a")
			f.Driver = headOfBefore{c, before}

			c.Mine(6)
			drainAll(t, f)

			was := d.cursors[n]

			c.Mine(2)

			old, err := c.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			forget(&old)
			c.Fork(sim.Fork{Depth: 4})

			*before = old

			if did, err := f.Step(t.Context()); did || err != nil {
				t.Errorf("a block of another branch: did %t, %v", did, err)
			}

			if diff := cmp.Diff(was, d.cursors[n]); diff != "" {
				t.Error(diff)
			}

			*before = chain.Head{}

			drainAll(t, f)

			final, err := c.RefAt(t.Context(), d.cursors[n].Final.Height)
			if err != nil || final.Hash != d.cursors[n].Final.Hash {
				t.Errorf("the final block is %v, the chain has %v (%v)", d.cursors[n].Final, final, err)
			}
		})
	}
}

// A final block is forgotten when another one is read in its place.
func TestFinalBlockThatWasNotReadYet(t *testing.T) {
	c, d := sim.New(sim.Config{FinalDepth: 2}), newDB()
	n := c.Network().Slug
	f := newFollower(t, c, d, "a")

	c.Mine(6)
	drainAll(t, f)

	cursor := d.cursors[n]
	cursor.Final = chain.Ref{Height: cursor.At.Height + 2, Hash: "of another branch"}
	d.cursors[n] = cursor

	c.Mine(3)
	drainAll(t, f)

	head, err := c.Head(t.Context())
	if err != nil || d.cursors[n].Final.Hash != head.Final.Hash {
		t.Errorf("the final block is %v, the chain's is %v (%v)", d.cursors[n].Final, head.Final, err)
	}
}

// hooked is a block handler that looks at each batch before it is stored.
type hooked struct {
	ledger
	before func(follow.Batch)
}

func (h hooked) Apply(ctx context.Context, b follow.Batch) error {
	h.before(b)
	return h.ledger.Apply(ctx, b)
}

func TestForkIsReadUpToTheOldPositionAtOnce(t *testing.T) {
	c, d := sim.New(sim.Config{NoFinality: true}), newDB()
	f := newFollower(t, c, d, "a")
	c.Mine(12)
	drainAll(t, f)

	was := d.at(c.Network().Slug)
	rewound := 0
	f.Handler = hooked{
		ledger{d, c},
		func(b follow.Batch) {
			if !b.Rewound {
				return
			}

			rewound++

			if n := len(b.Blocks); n == 0 || b.Blocks[n-1].Height < was {
				t.Errorf("%d blocks of the new branch came at once, not up to height %d", n, was)
			}
		},
	}

	c.Fork(sim.Fork{Depth: 7}) // more than a batch
	c.Mine(2)
	drainAll(t, f)

	if rewound != 1 {
		t.Errorf("%d batches took the fork in, want 1", rewound)
	}
}

func TestCursorMovesFromTheBlockThatWasRead(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	n := c.Network().Slug
	f := newFollower(t, c, d, "a")
	c.Mine(3)
	drainAll(t, f)

	var moved scan.Cursor

	f.Handler = hooked{
		ledger{d, c},
		func(follow.Batch) {
			moved = d.cursors[n]
			moved.At.Hash = "of another branch"
			d.cursors[n] = moved
		},
	}

	c.Mine(1)

	if did, err := f.Step(t.Context()); did || err != nil && !errors.Is(err, fault.LeaseLost) {
		t.Errorf("did %t, %v", did, err)
	}

	if got := d.cursors[n].At; got != moved.At {
		t.Errorf("the cursor is at %v, though it was moved to %v meanwhile", got, moved.At)
	}
}

func TestPrunedNodeStops(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	f := newFollower(t, c, d, "a")
	c.Mine(3)
	drainAll(t, f)
	c.Mine(20)
	c.Prune(15)

	_, err := f.Step(t.Context())
	if !errors.Is(err, fault.Stopped) || d.cursors[c.Network().Slug].Stopped == "" {
		t.Fatalf("a node pruned behind the cursor: %v", err)
	}
}

func TestBackfillReadsAnOldRangeOnce(t *testing.T) {
	c, d := sim.New(sim.Config{}), newDB()
	for range 12 {
		c.Pay(c.NewAddress(), "SIM", chain.Units(5))
		c.Mine(1)
	}

	f, err := follow.New(
		follow.Config{
			Driver:      c,
			Handler:     ledger{d, c},
			DB:          d,
			Owner:       "a",
			Now:         now,
			Log:         quiet(),
			BatchBlocks: 4,
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	drainAll(t, f)

	if len(d.seen) != 0 {
		t.Fatalf("a network that begins at the tip has %d transfers", len(d.seen))
	}

	d.ranges["r"] = scan.Range{ID: "r", Network: c.Network().Slug, Next: 1, To: 12}

	drainAll(t, f)

	if diff := cmp.Diff(truth(t, c), d.seen); diff != "" || len(d.ranges) != 0 {
		t.Fatalf("after the back-fill %d ranges are left:\n%s", len(d.ranges), diff)
	}
}

// Whatever happens in between (payments, blocks, forks, lag, crashes, other processes), the ledger ends as
// the chain is.
func TestAnyHistoryEndsAsTheChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, d := sim.New(sim.Config{NoFinality: true, Seed: rapid.Uint64().Draw(t, "seed")}), newDB()
		fs := []*follow.Follower{newFollower(t, c, d, "a")}
		c.Mine(1)

		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0:
				c.Pay(c.NewAddress(), "SIM", chain.Units(1))
			case 1:
				c.Mine(rapid.IntRange(1, 6).Draw(t, "blocks"))
			case 2:
				head, _ := c.Head(context.Background())
				if depth := rapid.IntRange(1, 12).Draw(t, "depth"); uint64(depth) < head.Tip.Height {
					c.Fork(
						sim.Fork{
							Depth: uint64(depth),
							Fate: rapid.SampledFrom([]sim.OrphanFate{sim.ReturnToPool, sim.Reinclude, sim.DropOrphan}).
								Draw(t, "fate"),
						},
					)
					c.Mine(rapid.IntRange(1, depth+2).Draw(t, "new"))
				}
			case 3:
				d.crash = true
			case 4:
				c.Lag(uint64(rapid.IntRange(0, 3).Draw(t, "lag")))
			case 5:
				d.loseHeartbeats()

				fs = []*follow.Follower{newFollower(t, c, d, "a")} // the process starts again
			case 6:
				_, _ = fs[0].Step(context.Background())
			}
		}

		c.Lag(0)

		d.crash = false

		c.Mine(20) // longer than whatever was read before
		drainAll(t, fs[0])

		if diff := cmp.Diff(truth(t, c), d.seen); diff != "" {
			t.Fatal(diff)
		}

		for _, r := range d.cursors[c.Network().Slug].Recent {
			if ref, err := c.RefAt(context.Background(), r.Height); err != nil || ref.Hash != r.Hash {
				t.Fatalf(
					"the cursor trusts block %d %s, the chain has %s (%v)",
					r.Height, r.Hash, ref.Hash, err,
				)
			}
		}
	})
}

// longAgo is before the first block: a follower that begins there reads the whole chain.
func longAgo(context.Context) (time.Time, error) { return time.Unix(1, 0), nil }
