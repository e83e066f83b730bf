package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// retryInterval is a row of a schedule: up to the age until (0: any age), the worker looks at a transaction
// once per interval.
type retryInterval struct{ until, every time.Duration }

var (
	// pendingIntervals apply to transactions that are not final, by the time since they were created, last
	// signed or included.
	pendingIntervals = []retryInterval{
		{30 * time.Second, 2 * time.Second},
		{2 * time.Minute, 5 * time.Second},
		{10 * time.Minute, 15 * time.Second},
		{time.Hour, time.Minute},
		{0, maxPendingInterval},
	}
	// confirmedIntervals apply to confirmed, reverted and displaced transactions, by the time since their
	// block, or since they were last sent. They apply until a block from watchFor later was read:
	// reorganisations deeper than finality have happened, also while nobody read blocks.
	confirmedIntervals = []retryInterval{
		{10 * time.Minute, time.Minute},
		{time.Hour, 10 * time.Minute},
		{watchFor, time.Hour},
	}
	// readIntervals apply where blocks are read: a fork makes the transactions that it removed due at once,
	// see ApplyForkTx.
	readIntervals = []retryInterval{{watchFor, 4 * time.Hour}}
)

// watchFor is the time for which a transaction that is over is watched.
const watchFor = 24 * time.Hour

// maxUntilFinal bounds the time until the next look at an included transaction while blocks until its
// finality are missing.
const maxUntilFinal = 30 * time.Second

// maxPendingInterval is the longest of pendingIntervals: transactions that are signed and in no block are due
// within it.
const maxPendingInterval = 5 * time.Minute

// queuedRetryEvery is the interval at which a queued transaction is looked at while its wallet has
// maxInFlight transactions in flight, or its network lags.
const queuedRetryEvery = 5 * time.Second

// intervalAt returns the interval of an age; ok is false past the end of a table.
func intervalAt(table []retryInterval, age time.Duration) (every time.Duration, ok bool) {
	for _, row := range table {
		if row.until == 0 || age < row.until {
			return row.every, true
		}
	}

	return 0, false
}

// isWatched reports whether a transaction is over but its block may still leave the chain: it is confirmed,
// or reverted and in a block.
func isWatched(t wallet.Transaction) bool {
	return t.State == wallet.Confirmed || hasReverted(t) && !t.Block.IsZero()
}

// scheduleTx schedules a transaction by the clock. For one in a block, the last block that was read counts
// too.
func (d *walletWorker) scheduleTx(ctx context.Context, tx wallet.Tx, t *wallet.Transaction) error {
	now := d.now()
	read, watched := now, confirmedIntervals

	driver, err := d.registry.Driver(t.Network)
	if err != nil {
		return err
	}

	if d.readsBlocks(driver) {
		watched = readIntervals
	}

	var cursor scan.Cursor

	if isWatched(*t) || t.State == wallet.Included {
		if cursor, _, err = tx.Cursor(ctx, t.Network); err != nil {
			return asStoreError(err)
		}
	}

	if isWatched(*t) && !cursor.At.Time.IsZero() {
		read = cursor.At.Time
	}

	schedule(t, now, read, watched)

	if d.readsBlocks(driver) {
		awaitBlocks(t, now, driver.Network(), cursor)
	}

	return nil
}

// awaitBlocks postpones an included transaction until the blocks that make it final may have come. It allows
// for blocks that come faster than usual.
func awaitBlocks(t *wallet.Transaction, now time.Time, n chain.Network, cursor scan.Cursor) {
	if t.State != wallet.Included || t.DueAt.IsZero() {
		return
	}

	usual := scanstate.UntilFinal(cursor, n, n.Confirmations, t.Block)

	if at := now.Add(min(usual*3/4, maxUntilFinal)); t.DueAt.Before(at) {
		t.DueAt = at
	}
}

// lastSentAt returns the time at which bytes of a transaction were last sent, or signed.
func lastSentAt(t wallet.Transaction) time.Time {
	last := walletstate.LastAttempt(&t).SignedAt

	for _, a := range t.Attempts {
		if a.LastSentAt.After(last) {
			last = a.LastSentAt
		}
	}

	return last
}

// schedule sets DueAt by the state and the age; zero if no more looks are needed. read is the time of the
// last block that was read; watched are the intervals for transactions that isWatched reports.
func schedule(t *wallet.Transaction, now, read time.Time, watched []retryInterval) {
	since, table := t.CreatedAt, pendingIntervals
	if t.State == wallet.Failed && !hasReverted(*t) && !wasDisplaced(*t) || t.BatchedBy != "" {
		t.DueAt = time.Time{}
		return
	}

	switch {
	case isWatched(*t):
		since, table = t.Block.Time, watched
	case wasDisplaced(*t):
		since, table = lastSentAt(*t), confirmedIntervals
	case t.State == wallet.Included:
		since = t.Block.Time
	case t.State == wallet.Queued:
	default:
		since = walletstate.LastAttempt(t).SignedAt
	}

	every, ok := intervalAt(table, now.Sub(since))
	if last := table[len(table)-1]; !ok && read.Sub(since) < last.until {
		every, ok = last.every, true
	}

	if !ok {
		t.DueAt = time.Time{}
		return
	}

	t.DueAt = now.Add(every)
}
