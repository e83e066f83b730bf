package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/store"
)

// The bounds of the difference between a clock and the database's.
const (
	skewWarned = 5 * time.Second
	skewTooBig = 5 * time.Minute
)

// clock compares this process's clock with the store's. It reads the store's clock now and then. In between,
// the machine's monotonic clock continues it, so that a step of this process's clock is noticed at once.
type clock struct {
	injected bool
	now      func() time.Time
	// elapsed is a monotonic clock.
	elapsed func() time.Duration

	mu     sync.Mutex
	read   bool
	stored time.Time     // the store's time
	at     time.Duration // the reading of elapsed at that time
}

// set stores a reading of the store's clock.
func (c *clock) set(stored time.Time, at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.read, c.stored, c.at = true, stored, at
}

// storeNow returns the time by the store's clock, or by this process's if that was not read.
func (c *clock) storeNow() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.read {
		return c.now()
	}

	return c.stored.Add(c.elapsed() - c.at)
}

// skew returns how far this process's clock is ahead of the store's.
func (c *clock) skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.read {
		return 0
	}

	return c.now().Sub(c.stored.Add(c.elapsed() - c.at)).Round(time.Millisecond)
}

// CheckClock makes an injected clock be checked like the system's. Only tests call it, before Run.
func (e *Engine) CheckClock() { e.clock.injected = false }

func (c *clock) isChecked() bool { return !c.injected }

// checkClock measures the skew, and warns of networks whose newest block is ahead of the clock.
//
// Errors: fault.Unavailable with code clock_skewed when the skew is too big to sign.
func (e *Engine) checkClock(ctx context.Context) error {
	if !e.clock.isChecked() {
		return nil
	}

	err := e.readClock(ctx)

	for _, f := range e.followers {
		n := f.Driver.Network()

		c, _, cursorErr := e.config.Store.Cursor(ctx, n.Slug)
		if ahead := e.tipAhead(c); ahead > 0 {
			e.config.Log.WarnContext(
				ctx, "the newest block is ahead of this process's clock", "network", n.Slug, "ahead", ahead,
			)
		}

		err = errors.Join(err, cursorErr)
	}

	return err
}

// readClock measures the skew.
//
// Errors: fault.Unavailable with code clock_skewed when it is too big to sign.
func (e *Engine) readClock(ctx context.Context) error {
	source, ok := e.config.Store.(store.Clock)
	if !ok {
		return e.clock.check()
	}

	before := e.clock.elapsed()

	theirs, err := source.Time(ctx)
	if err != nil {
		return fmt.Errorf("reading the store's clock: %w", err)
	}

	e.clock.set(theirs, (before+e.clock.elapsed())/2)

	if skew := e.clock.skew(); skew.Abs() > skewWarned {
		e.config.Log.WarnContext(ctx, "this process's clock differs from the store's", "ahead", skew)
	}

	return e.clock.check()
}

// check returns an error when the skew is too big to sign.
func (c *clock) check() error {
	if skew := c.skew(); skew.Abs() > skewTooBig {
		return fault.New(
			fault.Unavailable, "clock_skewed",
			"this process's clock is %s ahead of the store's; nothing is signed until it is set right", skew,
		)
	}

	return nil
}

// storeNow returns the time by the store's clock, as far as it was measured. Deadlines that other processes
// read use it.
func (e *Engine) storeNow() time.Time { return e.clock.storeNow() }

// maySign reports whether wallets may sign in this process: its clock is right, and its signer has the right
// keys. If not, Health shows it.
func (e *Engine) maySign() bool { return e.clock.check() == nil && !e.seeds.isWrong() }

// aheadBlocks is how far a newest block may be ahead of the clock, in times between blocks. On Bitcoin that
// is the two hours that the network allows.
const aheadBlocks = 12

// tipAhead returns how far a network's newest block is ahead of a checked clock; 0 while that is allowed. A
// block behind the clock proves nothing: blocks may be rare.
func (e *Engine) tipAhead(c scan.Cursor) time.Duration {
	ahead := c.Tip.Time.Sub(e.config.Now())
	if !e.clock.isChecked() || ahead <= max(aheadBlocks*scanstate.LongestPace(c), skewWarned) {
		return 0
	}

	return ahead
}
