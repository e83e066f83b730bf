package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// unlinkedCode is the code of blocks that do not form a chain.
const unlinkedCode = "blocks_not_linked"

// Config holds the settings of a Follower.
type Config struct {
	// Driver reads the network: a chain.BlockScanner, or a chain.AddressScanner.
	Driver chain.Driver
	// Addresses lists what a driver without blocks is asked for: the addresses of the network made
	// at or after a time, all of them for the zero time, each with when it was made. It is called after the
	// head was read, so that an address that could be paid in a block is in the list.
	Addresses func(ctx context.Context, since time.Time) ([]chain.AddressCursor, error)
	// PollFor is how long an address is queried in that way. Defaults to 30 days.
	PollFor time.Duration
	// Own lists the hashes of own transactions that are stored in a block. The block is read again for them.
	// Defaults to none.
	Own func(ctx context.Context, at chain.Ref) ([]string, error)

	// Handler stores the contents of a batch.
	Handler BlockHandler
	// DB stores the cursor, the ranges and the lease.
	DB scanstate.DB
	// Heartbeat owns the lease. Defaults to a private one, which beats at every Step.
	Heartbeat *heartbeat.Heartbeat
	// Owner names this process in the default of Heartbeat.
	Owner string
	// Now returns the current time.
	Now func() time.Time
	// Log receives forks, stops and pools that could not be read.
	Log *slog.Logger

	// BatchBlocks is the largest number of blocks in one batch. Defaults to 50.
	BatchBlocks uint64
	// FirstAddress returns when the oldest address of the network was made, zero when there is none. A network
	// that was never followed is read from then on. Defaults to none: it is read from its tip on.
	FirstAddress func(ctx context.Context) (time.Time, error)
}

// Follower follows one network. Several processes may each have one; the lease lets one of them work.
type Follower struct {
	Config
	network chain.Network
	scanner chain.BlockScanner // nil: addresses are polled
	poller  chain.AddressScanner
	partial chain.AddressPoller // nil when readings are complete and cost nothing to speak of
	name    string
	size    batchSize

	mu       sync.Mutex
	lease    lease.Lease
	checked  time.Time // when the lease was last read
	yielded  bool      // the lease was given up: the node has to answer before it is taken again
	poolSeen uint64
	reread   reread
	polling  polling
	unlinked int       // how many times in a row the node's blocks did not link
	shown    chain.Ref // the last block that a node showed
	// finalityAt is when the safe and the final block were last read apart from the tip.
	finalityAt time.Time
	// beside is the reading of finality that no batch has used yet.
	beside *finalityRead
	atRest atomic.Bool
	pace   atomic.Int64 // the time between blocks as it was measured, in nanoseconds; 0: not yet
	health health.Follower

	// report is the value of Health: health as it was after the last step. A step may hang as long as its
	// node does.
	reportMu   sync.Mutex
	report     health.Follower
	unreadable string
}

// New returns a Follower. It starts nothing. If the driver can scan neither blocks nor addresses, the error
// is fault.Unsupported.
func New(c Config) (*Follower, error) {
	network := c.Driver.Network()
	scanner, blocks := c.Driver.(chain.BlockScanner)

	poller, addresses := c.Driver.(chain.AddressScanner)
	if !blocks && (!addresses || c.Addresses == nil) {
		return nil, fault.New(
			fault.Unsupported, "scan_unsupported",
			"the driver of %s can scan neither blocks nor addresses",
			network.Slug,
		)
	}

	if c.PollFor == 0 {
		c.PollFor = 30 * 24 * time.Hour
	}

	if c.BatchBlocks == 0 {
		c.BatchBlocks = 50
	}

	if c.Heartbeat == nil {
		c.Heartbeat = heartbeat.New(
			heartbeat.Config{DB: heartbeat.Over(c.DB.Update), Process: c.Owner, Now: c.Now},
		)
	}

	partial, _ := c.Driver.(chain.AddressPoller)

	return &Follower{
		partial: partial,
		polling: newPolling(),
		Config:  c,
		network: network,
		scanner: scanner,
		poller:  poller,
		name:    LeaseName(network.Slug),
		size:    batchSize{most: c.BatchBlocks, now: min(c.BatchBlocks, firstBatch)},
	}, nil
}

// LeaseName returns the name of the lease that a follower of a network holds.
func LeaseName(network string) string { return "watch/" + network }

// Health returns the state of the follower in this process, as it was after the last step.
func (f *Follower) Health() health.Follower {
	f.reportMu.Lock()
	defer f.reportMu.Unlock()

	report := f.report
	report.Unread, report.Unreadable = slices.Clone(report.Unread), f.unreadable

	return report
}

// publish sets the value of Health. The caller holds f.mu.
func (f *Follower) publish() {
	f.reportMu.Lock()
	defer f.reportMu.Unlock()

	f.report = f.health
	f.report.Unread = f.polling.unreadReport(f.Now())
}

// Pace returns the time between blocks as it was last measured; 0 if it was not.
func (f *Follower) Pace() time.Duration { return time.Duration(f.pace.Load()) }

// fastPace is the time between blocks below which a network is fast.
const fastPace = time.Second

// IsFast reports whether blocks follow one another faster than the follower looks for them. An announcement
// then shows nothing sooner than the next look.
func (f *Follower) IsFast() bool {
	pace := f.Pace()

	return pace > 0 && pace < fastPace
}

// LookEvery returns the interval at which new blocks are looked for: a quarter of the time between two
// blocks. It is between one second, so that idle calls do not grow with the pace, and 15 seconds.
func (f *Follower) LookEvery() time.Duration {
	pace := f.Pace()
	if pace == 0 {
		return firstLook
	}

	return min(max(pace/4, fastPace), longestLook)
}

// firstLook is the interval at which new blocks are looked for before the pace was measured; longestLook is
// the longest interval.
const (
	firstLook   = 500 * time.Millisecond
	longestLook = 15 * time.Second
)

// AtRest reports whether the last step read everything, so that only a new block brings more.
func (f *Follower) AtRest() bool { return f.atRest.Load() }

// SetUnreadable sets the text about unreadable balances in Health; empty if every balance was read.
func (f *Follower) SetUnreadable(what string) {
	f.reportMu.Lock()
	defer f.reportMu.Unlock()

	f.unreadable = what
}

// Step reads one batch, if there is one, and has the block handler store it. did reports that something was
// stored, so that more may be waiting. A stopped network returns fault.Stopped until Resume; a network that
// another process follows returns false and no error. After any other error the lease is released, so that a
// process whose node answers can follow the network at once.
func (f *Follower) Step(ctx context.Context) (did bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	defer f.publish()

	f.atRest.Store(false)

	did, err = f.readAndStore(ctx)
	switch {
	case err == nil:
		f.health.LastError, f.health.LastErrorAt, f.health.FailingSince = "", time.Time{}, time.Time{}
	case errors.Is(err, fault.LeaseLost):
		f.lease, f.health.Following = lease.Lease{}, false
		return false, nil
	default:
		if f.health.LastError == "" {
			f.health.FailingSince = f.Now()
		}

		f.health.LastError, f.health.LastErrorAt = err.Error(), f.Now()
		if !errors.Is(err, fault.Stopped) && ctx.Err() == nil {
			f.yield(ctx)
		}
	}

	return did, err
}

// readAndStore reads one batch, or one part of a range, and has it stored.
func (f *Follower) readAndStore(ctx context.Context) (bool, error) {
	if mine, err := f.holdLease(ctx); err != nil || !mine {
		return false, err
	}

	cursor, _, err := f.DB.Cursor(ctx, f.network.Slug)
	if err != nil {
		return false, fmt.Errorf("reading the cursor of %s: %w", f.network.Slug, err)
	}

	if cursor.Stopped != "" {
		return false, stoppedError(f.network.Slug, cursor.Stopped)
	}

	pace, _ := scanstate.Pace(cursor)
	f.pace.Store(int64(pace))

	if isFollowed(cursor) && f.partial != nil && !f.roundDue() {
		return f.backfill(ctx)
	}

	watched, end := WhileAnswering(ctx, f.Driver)
	defer func() { _ = end(nil) }()

	batch, err := f.readBatch(watched, cursor)

	err = end(err)
	if fault.Code(err) == unlinkedCode {
		f.countUnlinked(ctx)
	}

	if errors.Is(err, fault.Stopped) {
		return false, f.stop(ctx, cursor, err)
	}

	if err != nil {
		return false, err
	}

	f.health.LastReadAt = f.Now()

	if batch == nil {
		return f.backfill(ctx)
	}

	if err := f.store(ctx, *batch); err != nil {
		return false, fmt.Errorf(
			"storing %d blocks of %s after height %d: %w",
			len(batch.Blocks), f.network.Slug, cursor.At.Height, err,
		)
	}

	if batch.PoolRead {
		f.poolSeen = poolHash(batch.Pool)
	}

	f.polling.stored(batch.round)

	if batch.failed != nil || f.partial != nil || f.polling.behind {
		return true, batch.failed
	}

	// On a fast network each step has a new block. So old blocks are read in the same step.
	more, err := f.backfill(ctx)
	f.atRest.Store(err == nil && !more)

	return true, err
}

// store has a batch stored, and adapts the batch size to the time that this takes.
func (f *Follower) store(ctx context.Context, b Batch) error {
	began := f.Now()
	err := f.Handler.Apply(ctx, b)

	if ctx.Err() == nil {
		f.size.stored(len(b.Blocks), f.Now().Sub(began), err)
	}

	return err
}
