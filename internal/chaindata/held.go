package chaindata

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// IsPruned reports whether a driver's error means that no node has a block any more.
func IsPruned(err error) bool { return fault.Code(err) == "node_pruned" }

// OldestHeld returns the oldest block between two heights that a node still has. A node that has a block has
// every later one. If it lacks even the block at to, the error is that of RefAt, for which IsPruned holds.
func OldestHeld(ctx context.Context, driver chain.Driver, from, to uint64) (chain.Ref, error) {
	held, err := driver.RefAt(ctx, to)
	if err != nil {
		return chain.Ref{}, err
	}

	for low := from; low < held.Height; {
		middle := low + (held.Height-low)/2

		ref, err := driver.RefAt(ctx, middle)

		switch {
		case err == nil:
			held = ref
		case IsPruned(err):
			low = middle + 1
		default:
			return chain.Ref{}, err
		}
	}

	return held, nil
}
