package invoice

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// TestPaceIsMeasured compares the blocks of ten minutes with what the catalogue says of a network, and with what
// its blocks show.
func TestPaceIsMeasured(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	// cursor has read blocks that took so long each, in whole seconds as blocks show it.
	cursor := func(each time.Duration, count uint64) scan.Cursor {
		var c scan.Cursor

		for i := range count {
			at := start.Add(time.Duration(i) * each).Truncate(time.Second)
			ref := chain.Ref{Height: 1_000 + i, Hash: "h", Time: at}

			c.Recent, c.At = append([]chain.Ref{c.At}, c.Recent...), ref
		}

		return c
	}

	for _, c := range []struct {
		name       string
		catalogue  time.Duration
		cursor     scan.Cursor
		least, top uint64
	}{
		{"nothing read yet", 400 * time.Millisecond, scan.Cursor{}, 1_500, 1_500},
		{"a network without a figure", 0, scan.Cursor{}, 100, 100},
		{"as the catalogue says", 400 * time.Millisecond, cursor(400*time.Millisecond, 500), 1_490, 1_600},
		{"slots became shorter", 400 * time.Millisecond, cursor(210*time.Millisecond, 500), 2_750, 3_000},
		{"slots became longer", 210 * time.Millisecond, cursor(400*time.Millisecond, 500), 2_857, 2_857},
		{"too few blocks to tell", 400 * time.Millisecond, cursor(100*time.Millisecond, 50), 1_500, 1_500},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := blocksIn(10*time.Minute, chain.Network{BlockTime: c.catalogue}, c.cursor)
			if got < c.least || got > c.top {
				t.Errorf("%d blocks in ten minutes, want %d to %d", got, c.least, c.top)
			}
		})
	}
}
