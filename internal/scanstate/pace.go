package scanstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
)

// The least number of blocks, and the least time, over which the pace of a network is measured: single blocks come at
// random, and several may share a time in whole seconds.
const (
	paceBlocks = 16
	paceSpan   = 30 * time.Second
)

// The shortest and the longest usual time between blocks, one of which is assumed where it was not measured.
const (
	fastestPace = 200 * time.Millisecond
	slowestPace = 10 * time.Minute
)

// Pace returns the time between two blocks of a network, as the headers that were read last show it; ok is false while
// they are too few.
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

// LongestPace returns the measured pace of a network, or that of the slowest one where it was not measured.
func LongestPace(c scan.Cursor) time.Duration {
	if pace, ok := Pace(c); ok {
		return pace
	}

	return slowestPace
}

// BlocksIn returns how many blocks a network makes in a time, rounded up, at its measured pace; the most that any makes
// where it was not measured.
func BlocksIn(c scan.Cursor, span time.Duration) uint64 {
	pace, _ := Pace(c)

	return BlocksAt(pace, span)
}

// BlocksAt is BlocksIn for a pace; 0 where it was not measured.
func BlocksAt(pace, span time.Duration) uint64 {
	if pace <= 0 {
		pace = fastestPace
	}

	return uint64((span + pace - 1) / pace)
}

// Lags reports whether the blocks that were read are behind the node's newest one by more than a number of blocks and
// by more than a time: by what the network makes in it, and where its pace was not measured, by the times of the two
// too.
func Lags(c scan.Cursor, blocks uint64, span time.Duration) bool {
	behind := c.Tip.Height - min(c.Tip.Height, c.At.Height)
	_, measured := Pace(c)

	return behind > blocks &&
		(behind > BlocksIn(c, span) || !measured && c.Tip.Time.Sub(c.At.Time) > span)
}
