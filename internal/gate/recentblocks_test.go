package gate_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// counted counts the blocks that are read.
type counted struct {
	*sim.Windows
	read *int
}

func (c counted) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	blocks, err := c.Windows.Blocks(ctx, from, to)
	*c.read += len(blocks)

	return blocks, err
}

// Payouts that wait for long on a fast network are signed with what the first of them read: each reads only the
// blocks that are new, also where another process signed meanwhile.
func TestEachBlockIsReadOnce(t *testing.T) {
	read := 0
	e := newExpiring(t, func(w *sim.Windows) driver { return counted{w, &read} })
	e.mine(500)

	blocks := 0

	for _, wait := range []int{0, 1, 0, 300, 3} {
		e.mine(wait)

		if _, err := e.sign(t); err != nil {
			t.Fatal(err)
		}

		if blocks += wait; read < 500+blocks || read > 550+blocks {
			t.Errorf("%d blocks after the first signature %d were read", blocks, read)
		}
	}
}
