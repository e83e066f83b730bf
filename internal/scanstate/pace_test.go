package scanstate_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// series returns the cursor that has read synthetic blocks which took so long each, timed in whole seconds as headers
// are: several may share a time.
func series(each time.Duration, count uint64) scan.Cursor {
	var c scan.Cursor

	start := time.Unix(1_800_000_000, 0)

	for i := range count {
		at := start.Add(time.Duration(i) * each).Truncate(time.Second)
		c = scanstate.Forward(c, []chain.Block{{Ref: chain.Ref{Height: 1_000 + i, Hash: "h", Time: at}}})
	}

	return c
}

func TestPaceIsMeasuredFromHeaders(t *testing.T) {
	sped := series(2*time.Second, 500)
	for i := range uint64(200) { // an upgrade: from 2 s to 200 ms
		at := sped.At.Time.Add(time.Duration(i%5) / 5 * time.Second)
		if i%5 == 4 {
			at = sped.At.Time.Add(time.Second)
		}

		sped = scanstate.Forward(sped, []chain.Block{
			{Ref: chain.Ref{Height: sped.At.Height + 1, Hash: "h", Time: at}},
		})
	}

	for _, c := range []struct {
		name   string
		cursor scan.Cursor
		want   time.Duration // 0: not measured
	}{
		{"nothing read yet", scan.Cursor{}, 0},
		{"too few blocks", series(12*time.Second, 16), 0},
		{"too short a time", series(200*time.Millisecond, 100), 0},
		{"ten minutes", series(10*time.Minute, 100), 10 * time.Minute},
		{"12 s", series(12*time.Second, 100), 12 * time.Second},
		{"2 s", series(2*time.Second, 500), 2 * time.Second},
		{"0.45 s", series(450*time.Millisecond, 500), 450 * time.Millisecond},
		{"200 ms, five blocks share a time", series(200*time.Millisecond, 500), 200 * time.Millisecond},
		{"the network sped up", sped, 200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := scanstate.Pace(c.cursor)
			if ok != (c.want > 0) || (got-c.want).Abs() > c.want/20 {
				t.Errorf("%s, %t; want %s", got, ok, c.want)
			}
		})
	}
}

func TestBlocksInATimeFollowThePace(t *testing.T) {
	for _, c := range []struct {
		name        string
		cursor      scan.Cursor
		least, most uint64
	}{
		{"nothing read yet: as many as the fastest network makes", scan.Cursor{}, 3_000, 3_000},
		{"12 s", series(12*time.Second, 100), 50, 50},
		{"200 ms", series(200*time.Millisecond, 500), 2_900, 3_100},
	} {
		if got := scanstate.BlocksIn(c.cursor, 10*time.Minute); got < c.least || got > c.most {
			t.Errorf("%s: %d blocks in ten minutes, want %d to %d", c.name, got, c.least, c.most)
		}
	}
}

// Row 76 of the pitfalls: limits are times, so a network that speeds up does not lag for it.
func TestLagIsATime(t *testing.T) {
	at := chain.Ref{Height: 1_000, Time: time.Unix(1_800_000_000, 0)}

	for _, c := range []struct {
		name   string
		blocks uint64
		behind time.Duration
		want   bool
	}{
		{"at the tip", 0, 0, false},
		{"25 blocks of 200 ms", 25, 5 * time.Second, false},
		{"200 blocks of 200 ms", 200, 40 * time.Second, true},
		{"3 blocks of 12 s", 3, 36 * time.Second, false},
		{"4 blocks of 12 s", 4, 48 * time.Second, true},
	} {
		cursor := scan.Cursor{
			At:  at,
			Tip: chain.Ref{Height: at.Height + c.blocks, Time: at.Time.Add(c.behind)},
		}
		if got := scanstate.Lags(cursor, 3, 30*time.Second); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
