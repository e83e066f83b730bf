package txmgr

import "time"
import (
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// When the worker looks at a transaction next follows from how long it has waited: often at first,
// then ever more rarely, never later than the last row.
type retryInterval struct{ until, every time.Duration }

var (
	// pendingIntervals is for transactions that are to be signed, taken or included, by the time since they were
	// created or last signed.
	pendingIntervals = []retryInterval{
		{30 * time.Second, 2 * time.Second},
		{2 * time.Minute, 5 * time.Second},
		{10 * time.Minute, 15 * time.Second},
		{time.Hour, time.Minute},
		{0, 5 * time.Minute},
	}
	// confirmedIntervals is for confirmed transactions, by the time since their block: a reorganisation deeper
	// than finality ought not to happen, and has. After a day nobody looks any more.
	confirmedIntervals = []retryInterval{
		{10 * time.Minute, time.Minute},
		{time.Hour, 10 * time.Minute},
		{24 * time.Hour, time.Hour},
	}
)

// inFlightRetryEvery is how often a queued transaction looks for room when its wallet has all that it may
// have in flight.
const inFlightRetryEvery = 5 * time.Second

// intervalAt returns the wait of an age; ok is false past the end of a table that has one.
func intervalAt(table []retryInterval, age time.Duration) (every time.Duration, ok bool) {
	for _, row := range table {
		if row.until == 0 || age < row.until {
			return row.every, true
		}
	}

	return 0, false
}

// schedule sets DueAt by the state.
func schedule(t *wallet.Transaction, now time.Time) {
	since, table := t.CreatedAt, pendingIntervals
	if t.State == wallet.Failed || t.BatchedBy != "" {
		t.DueAt = time.Time{}
		return
	}

	switch t.State {
	case wallet.Confirmed:
		since, table = t.Block.Time, confirmedIntervals
	case wallet.Included:
		since = t.Block.Time
	case wallet.Queued:
	default:
		since = t.LastAttempt().SignedAt
	}

	every, ok := intervalAt(table, now.Sub(since))
	if !ok {
		t.DueAt = time.Time{}
		return
	}

	t.DueAt = now.Add(every)
}
