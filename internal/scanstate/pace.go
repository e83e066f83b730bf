package scanstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
)

// The minimum number of blocks, and the minimum time, over which the pace of a network is measured. Single
// blocks come at random times, and several may have the same time in whole seconds.
const (
	paceBlocks = 16
	paceSpan   = 30 * time.Second
)

// The shortest and the longest usual time between blocks. One of them is assumed if the pace was not
// measured.
const (
	fastestPace = 200 * time.Millisecond
	slowestPace = 10 * time.Minute
)

// Pace returns the time between two blocks of a network, measured over the headers that were read last; ok is
// false while there are too few.
func Pace(c scan.Cursor) (pace time.Duration, ok bool) {
	for _, earlier := range c.Recent {
		if earlier.Height+paceBlocks > c.At.Height {
			continue
		}

		if took := c.At.Time.Sub(earlier.Time); took >= paceSpan {
			return took / time.Duration(c.At.Height-earlier.Height), true
		}
	}

	return 0, false
}

// LongestPace returns the measured pace of a network, or slowestPace if it was not measured.
func LongestPace(c scan.Cursor) time.Duration {
	if pace, ok := Pace(c); ok {
		return pace
	}

	return slowestPace
}

// BlocksIn returns the number of blocks that a network makes in a time, rounded up, at its measured pace. If
// the pace was not measured, it returns the number for the fastest network.
func BlocksIn(c scan.Cursor, span time.Duration) uint64 {
	pace, _ := Pace(c)

	return BlocksAt(pace, span)
}

// BlocksAt is BlocksIn for a given pace; 0 means that the pace was not measured.
func BlocksAt(pace, span time.Duration) uint64 {
	if pace <= 0 {
		pace = fastestPace
	}

	return uint64((span + pace - 1) / pace)
}

// Lags reports whether the last block that was read is behind the node's newest one by more than a number of
// blocks and by more than a time. It exceeds the time if it is further behind than the network's blocks of
// that time. If the pace was not measured, a difference of the two blocks' own times also counts.
func Lags(c scan.Cursor, blocks uint64, span time.Duration) bool {
	behind := c.Tip.Height - min(c.Tip.Height, c.At.Height)
	_, measured := Pace(c)

	return behind > blocks &&
		(behind > BlocksIn(c, span) || !measured && c.Tip.Time.Sub(c.At.Time) > span)
}
