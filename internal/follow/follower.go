package follow

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// unlinkedCode is the code of blocks that are no chain.
const unlinkedCode = "blocks_not_linked"

// Config makes a Follower.
type Config struct {
	// Driver reads the network: a chain.BlockScanner, or a chain.AddressScanner.
	Driver chain.Driver
	// Addresses lists what a driver without blocks is asked for: the addresses of the network made
	// at or after a time, all of them for the zero time. It is asked after the head was read, so
	// that an address that could be paid in a block is in the list.
	Addresses func(ctx context.Context, since time.Time) ([]chain.Address, error)
	// PollFor is how long an address is asked for in that way. Defaults to 30 days.
	PollFor time.Duration
	// Sink stores what is found.
	Sink Sink
	DB   scan.DB
	// Owner names this process in leases; unique among all processes over one store.
	Owner string
	Now   func() time.Time
	Log   *slog.Logger
	// BatchBlocks is how many blocks one batch reads at most. Defaults to 50.
	BatchBlocks uint64
	// LeaseFor is how long the network stays ours without a sign of life. Defaults to 30 seconds.
	LeaseFor time.Duration
	// StartHeight is where a network that was never followed begins; 0: at the tip.
	StartHeight uint64
}

// Follower follows one network. Several processes may each have one; the lease lets one of them work.
type Follower struct {
	Config
	network chain.Network
	scanner chain.BlockScanner // nil: addresses are asked for
	poller  chain.AddressScanner
	name    string

	mu       sync.Mutex
	lease    lease.Lease
	poolSeen uint64
	reread   reread
	unlinked int // how often in a row the node's blocks did not link
	health   health.Follower
}

// New returns a Follower, or fault.Unsupported when the driver can scan neither blocks nor
// addresses. It starts nothing.
func New(c Config) (*Follower, error) {
	n := c.Driver.Network()
	scanner, blocks := c.Driver.(chain.BlockScanner)

	poller, addresses := c.Driver.(chain.AddressScanner)
	if !blocks && (!addresses || c.Addresses == nil) {
		return nil, fault.New(
			fault.Unsupported, "scan_unsupported",
			"the driver of %s can scan neither blocks nor addresses",
			n.Slug,
		)
	}

	if c.PollFor == 0 {
		c.PollFor = 30 * 24 * time.Hour
	}

	if c.BatchBlocks == 0 {
		c.BatchBlocks = 50
	}

	if c.LeaseFor == 0 {
		c.LeaseFor = 30 * time.Second
	}

	return &Follower{Config: c, network: n, scanner: scanner, poller: poller, name: "watch/" + n.Slug}, nil
}

// Health returns what this process knows.
func (f *Follower) Health() health.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.health
}

// Step reads one batch, if there is one, and has the sink store it. did says that something was stored and
// that more may be waiting. A network that was stopped answers fault.Stopped until Resume; a network that
// another process follows answers false and no error.
func (f *Follower) Step(ctx context.Context) (did bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	did, err = f.step(ctx)
	switch {
	case err == nil:
		f.health.LastError, f.health.LastErrorAt = "", time.Time{}
		f.health.LastReadAt = f.Now()
	case errors.Is(err, fault.LeaseLost):
		f.lease, f.health.Following = lease.Lease{}, false
		return false, nil
	default:
		f.health.LastError, f.health.LastErrorAt = err.Error(), f.Now()
	}

	return did, err
}

func (f *Follower) step(ctx context.Context) (bool, error) {
	if mine, err := f.hold(ctx); err != nil || !mine {
		return false, err
	}

	cursor, known, err := f.DB.Cursor(ctx, f.network.Slug)
	if err != nil {
		return false, fmt.Errorf("reading the cursor of %s: %w", f.network.Slug, err)
	}

	if cursor.Stopped != "" {
		return false, stopped(f.network.Slug, cursor.Stopped)
	}

	batch, err := f.read(ctx, cursor, known)
	f.doubt(err)

	if errors.Is(err, fault.Stopped) {
		return false, f.stop(ctx, cursor, err)
	}

	if err != nil || batch == nil {
		if err == nil {
			return f.backfill(ctx)
		}

		return false, err
	}

	if err := f.Sink.Apply(ctx, *batch); err != nil {
		return false, fmt.Errorf(
			"storing %d blocks of %s after height %d: %w",
			len(batch.Blocks), f.network.Slug, cursor.At.Height, err,
		)
	}

	if batch.PoolRead {
		f.poolSeen = poolHash(batch.Pool)
	}

	return true, nil
}

// hold takes or prolongs the lease, writing only when half of it is over.
func (f *Follower) hold(ctx context.Context) (bool, error) {
	now := f.Now()
	if f.lease.Owner == f.Owner && f.lease.ExpiresAt.Sub(now) > f.LeaseFor/2 {
		return true, nil
	}

	var (
		l  lease.Lease
		ok bool
	)

	err := f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) (err error) {
		l, ok, err = lease.Take(ctx, tx, f.name, f.Owner, now, f.LeaseFor)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("taking the lease of %s: %w", f.network.Slug, err)
	}

	if !ok {
		l = lease.Lease{}
	}

	f.lease, f.health.Following = l, ok

	return ok, nil
}

// Release gives the network to another process at once; for an orderly end.
func (f *Follower) Release(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.lease.Owner == "" {
		return nil
	}

	l := f.lease
	f.lease, f.health.Following = lease.Lease{}, false

	return f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) error { return lease.Release(ctx, tx, l) })
}

// read fetches the next batch, or nil when there is nothing new.
func (f *Follower) read(ctx context.Context, cursor scan.Cursor, known bool) (*Batch, error) {
	head, err := f.Driver.Head(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its tip: %w", f.network.Slug, err)
	}

	if !known {
		if cursor, err = f.begin(ctx, head); err != nil {
			return nil, err
		}
	}

	b := &Batch{Network: f.network, Head: head}

	base, forked, err := f.commonBlock(ctx, cursor, head)
	if err != nil {
		return nil, err
	}

	if base.Height < head.Tip.Height {
		// After a fork everything up to the old position is read at once, so that nothing that merely moved
		// into another block looks lost.
		to := base.Height + f.BatchBlocks
		if forked {
			to = max(to, cursor.At.Height)
		}

		if f.scanner == nil {
			b.Blocks, err = f.poll(ctx, base, head.Tip, forked)
		} else {
			b.Blocks, err = f.blocks(ctx, base, min(to, head.Tip.Height))
		}

		if err != nil {
			return nil, err
		}

		if f.scanner != nil && !forked && len(b.Blocks) > 0 && b.Blocks[0].Parent != base.Hash {
			// The fork happened between the two questions: the next step will see it.
			f.unlinked++
			return nil, nil
		}
	}

	f.unlinked = 0
	b.Rewound, b.ForkedFrom = forked, base

	next := cursor
	if forked {
		next = cursor.Back(base)
		f.Log.WarnContext(
			ctx, "a fork was found; blocks above the common one are read again",
			"network", f.network.Slug, "common_height", base.Height, "was_at", cursor.At.Height,
			"depth", cursor.At.Height-base.Height,
		)
	}

	if len(b.Blocks) > 0 {
		next = next.Forward(above(b.Blocks, base.Height))
	}

	next.Network, next.Tip = f.network.Slug, head.Tip
	next.Safe, next.Final = newer(cursor.Safe, head.Safe), newer(cursor.Final, head.Final)

	poolNews := false

	if pool, ok := f.Driver.(chain.Mempool); ok && next.At.Height == head.Tip.Height {
		if b.Pool, err = pool.Pool(ctx); err != nil {
			f.Log.WarnContext(ctx, "the pool could not be read", "network", f.network.Slug, "error", err)

			b.Pool = nil
		} else {
			b.PoolRead = true
			poolNews = poolHash(b.Pool) != f.poolSeen
		}
	}

	if known && !forked && len(b.Blocks) == 0 && !poolNews && next.Tip.Height == cursor.Tip.Height &&
		next.Safe.Hash == cursor.Safe.Hash && next.Final.Hash == cursor.Final.Hash {
		return nil, nil
	}

	b.advance = f.advanceTo(cursor, known, next)

	return b, nil
}

// doubt tells the driver when blocks do not link for the second time in a row: a fork while they
// were read is seen once, a node that contradicts itself would keep the network where it is.
func (f *Follower) doubt(err error) {
	if fault.Code(err) == unlinkedCode {
		f.unlinked++
	}

	if d, ok := f.Driver.(chain.NodeDemoter); ok && f.unlinked > 1 {
		f.unlinked = 0
		d.DemoteNode(fmt.Sprintf("the blocks of %s do not link", f.network.Slug))
	}
}

// begin returns the cursor of a network that was never followed.
func (f *Follower) begin(ctx context.Context, head chain.Head) (scan.Cursor, error) {
	at := head.Tip
	if f.StartHeight > 0 && f.StartHeight <= head.Tip.Height {
		ref, err := f.Driver.RefAt(ctx, f.StartHeight-1)
		if err != nil {
			return scan.Cursor{}, fmt.Errorf(
				"starting %s at height %d: %w", f.network.Slug, f.StartHeight, err,
			)
		}

		at = ref
	}

	return scan.Cursor{Network: f.network.Slug, At: at}, nil
}

// commonBlock returns the newest block that the cursor and the node agree on, and whether the chain
// forked below the cursor. A node that is merely behind is no fork.
func (f *Follower) commonBlock(
	ctx context.Context,
	cursor scan.Cursor,
	head chain.Head,
) (chain.Ref, bool, error) {
	trusted := append([]chain.Ref{cursor.At}, cursor.Recent...)
	if !cursor.Final.IsZero() && cursor.Final.Height < cursor.At.Height {
		trusted = append(trusted, cursor.Final)
		sort.SliceStable(trusted, func(i, j int) bool { return trusted[i].Height > trusted[j].Height })
	}

	forked := false

	for _, t := range trusted {
		if t.Height > head.Tip.Height {
			continue
		}

		ref := head.Tip
		if t.Height < ref.Height {
			var err error
			if ref, err = f.Driver.RefAt(ctx, t.Height); err != nil {
				return chain.Ref{}, false, fmt.Errorf(
					"asking %s for block %d: %w", f.network.Slug, t.Height, err,
				)
			}
		}

		if ref.Hash == t.Hash {
			if !forked && t.Height < cursor.At.Height {
				// The node agrees with everything it has: it is behind, not on another branch.
				return chain.Ref{}, false, fault.New(
					fault.Unavailable,
					"node_behind",
					"the node of %s is at block %d and this service has already read block %d; waiting for the node",
					f.network.Slug,
					head.Tip.Height,
					cursor.At.Height,
				)
			}

			if forked && !cursor.Final.IsZero() && t.Height < cursor.Final.Height {
				return chain.Ref{}, false, fault.New(
					fault.Stopped,
					"fork_below_finality",
					"the chain forked at block %d, below block %d which the network had called final; "+
						"compare several nodes, then resume the network",
					t.Height,
					cursor.Final.Height,
				)
			}

			return t, forked, nil
		}

		forked = true
	}

	return chain.Ref{}, false, fault.New(
		fault.Stopped,
		"fork_too_deep",
		"the chain forked below block %d, the oldest that is remembered: none of the blocks read from "+
			"there to block %d is in the node's chain any more; the node may be on another network",
		trusted[len(trusted)-1].Height,
		cursor.At.Height,
	)
}

// blocks reads the canonical blocks after base up to height to. An ordinary batch is what one call returns.
func (f *Follower) blocks(ctx context.Context, base chain.Ref, to uint64) ([]chain.Block, error) {
	var all []chain.Block

	for next := base.Height + 1; next <= to; {
		part, err := f.scanner.Blocks(ctx, next, to)
		if err != nil {
			return nil, fmt.Errorf("reading blocks %d to %d of %s: %w", next, to, f.network.Slug, err)
		}

		for i, b := range part {
			if b.Height != next+uint64(i) {
				return nil, fault.New(
					fault.Unavailable, unlinkedCode, "the node of %s left a gap before block %d",
					f.network.Slug, b.Height,
				)
			}

			if n := len(all); n > 0 && all[n-1].Hash != b.Parent {
				return nil, fault.New(
					fault.Unavailable, unlinkedCode,
					"block %d of %s is not the child of the one before it; the chain moved while it was read",
					b.Height, f.network.Slug,
				)
			}

			all = append(all, b)
		}

		if len(part) == 0 {
			return nil, fault.New(
				fault.Unavailable, unlinkedCode, "the node of %s answered no block for height %d",
				f.network.Slug, next,
			)
		}

		next = all[len(all)-1].Height + 1
		if uint64(len(all)) >= f.BatchBlocks && to-base.Height <= f.BatchBlocks {
			break
		}
	}

	return all, nil
}

// advanceTo returns the compare-and-set that moves the cursor from was to next.
func (f *Follower) advanceTo(
	was scan.Cursor,
	known bool,
	next scan.Cursor,
) func(context.Context, scan.Tx) (scan.Cursor, error) {
	held := f.lease

	return func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		if err := lease.Check(ctx, tx, held); err != nil {
			return scan.Cursor{}, err
		}

		now, found, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return scan.Cursor{}, err
		}

		if found != known || now.At.Height != was.At.Height && known || now.At.Hash != was.At.Hash && known ||
			now.Stopped != "" {
			return scan.Cursor{}, fault.New(
				fault.LeaseLost, "cursor_moved", "the cursor of %s was moved by another process",
				f.network.Slug,
			)
		}

		c := next
		c.Version, c.UpdatedAt = now.Version, f.Now()

		return c, tx.PutCursor(ctx, &c)
	}
}

// backfill reads one stretch of an old range again, when there is one.
func (f *Follower) backfill(ctx context.Context) (bool, error) {
	ranges, err := f.DB.Ranges(ctx, f.network.Slug, 16)
	if err != nil || len(ranges) == 0 {
		return false, err
	}

	head, err := f.Driver.Head(ctx)
	if err != nil {
		return false, err
	}
	// A range may reach above the tip (addresses made inside a host's transaction); that part waits.
	at := slices.IndexFunc(
		ranges, func(r scan.Range) bool { return r.Next <= head.Tip.Height || r.Next > r.To },
	)
	if at < 0 {
		return false, nil
	}

	r := ranges[at]

	b := Batch{Network: f.network, Head: head, Backfill: &r}
	if to := min(r.To, r.Next+f.BatchBlocks-1, head.Tip.Height); r.Next <= r.To {
		if b.Blocks, err = f.old(ctx, r, to); err != nil {
			return false, fmt.Errorf(
				"reading old blocks from %d of %s again: %w",
				r.Next, f.network.Slug, err,
			)
		}
	}

	held := f.lease

	b.advance = func(ctx context.Context, tx scan.Tx) (scan.Cursor, error) {
		if err := lease.Check(ctx, tx, held); err != nil {
			return scan.Cursor{}, err
		}

		c, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return scan.Cursor{}, err
		}

		done := r
		if n := len(b.Blocks); n > 0 {
			done.Next = b.Blocks[n-1].Height + 1
		}

		if done.Next > done.To {
			return c, tx.DeleteRange(ctx, done.ID)
		}

		return c, tx.PutRange(ctx, &done)
	}
	if err := f.Sink.Apply(ctx, b); err != nil {
		return false, fmt.Errorf("storing old blocks from %d of %s: %w", r.Next, f.network.Slug, err)
	}

	return true, nil
}

// stop stores why the network must not be read any further, and returns cause.
func (f *Follower) stop(ctx context.Context, cursor scan.Cursor, cause error) error {
	f.Log.ErrorContext(
		ctx, "the network was stopped; nothing more is read from it until it is resumed",
		"network", f.network.Slug, "height", cursor.At.Height, "reason", cause.Error(),
	)
	held := f.lease
	err := f.DB.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		if err := lease.Check(ctx, tx, held); err != nil {
			return err
		}

		c, _, err := tx.Cursor(ctx, f.network.Slug)
		if err != nil {
			return err
		}

		c.Network, c.Stopped, c.UpdatedAt = f.network.Slug, cause.Error(), f.Now()

		return tx.PutCursor(ctx, &c)
	})

	return errors.Join(cause, err)
}

// Resume lets a stopped network be read again after a person looked into it. What the node says is
// trusted anew: a fork below what was final before is then walked back like any other.
func Resume(ctx context.Context, db scan.DB, network string, now time.Time) error {
	return db.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		c, ok, err := tx.Cursor(ctx, network)
		if err != nil {
			return err
		}

		if !ok || c.Stopped == "" {
			return fault.New(fault.State, "network_not_stopped", "network %s is not stopped", network)
		}

		c.Stopped, c.Final, c.Safe, c.UpdatedAt = "", chain.Ref{}, chain.Ref{}, now

		return tx.PutCursor(ctx, &c)
	})
}

func stopped(network, why string) error {
	return fault.New(fault.Stopped, "network_stopped", "network %s is stopped: %s", network, why)
}

func newer(was, is chain.Ref) chain.Ref {
	if is.IsZero() || is.Height < was.Height {
		return was
	}

	return is
}

// poolHash tells two readings of a pool apart; the order of transactions does not matter.
func poolHash(txs []chain.PoolTx) uint64 {
	sum := uint64(1)

	for _, t := range txs {
		h := fnv.New64a()
		h.Write([]byte(t.TxHash))
		sum += h.Sum64()
	}

	return sum
}
