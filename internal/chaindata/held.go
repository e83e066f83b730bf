package chaindata

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// IsPruned reports whether a driver's error means that no node has a block any more.
func IsPruned(err error) bool { return fault.Code(err) == "node_pruned" }

// ParentOf returns the hash of the block below a height, as the block at that height names it. Of a driver that reads
// neither blocks nor parents it is that of the block below, while a node has it. The errors are those of RefAt.
func ParentOf(ctx context.Context, driver chain.Driver, height uint64) (string, error) {
	if reader, ok := driver.(chain.ParentReader); ok {
		return reader.ParentAt(ctx, height)
	}

	if scanner, ok := driver.(chain.BlockScanner); ok {
		blocks, err := scanner.Blocks(ctx, height, height)
		if err != nil {
			return "", err
		}

		return blocks[0].Parent, nil
	}

	below, err := driver.RefAt(ctx, height-1)

	return below.Hash, err
}

// IsCanonical reports whether a block is in the chain of the nodes: the block at its height is it or, where no node has
// that one any more, the block after it names it as its parent. The errors are those of RefAt.
func IsCanonical(ctx context.Context, driver chain.Driver, block chain.Ref) (bool, error) {
	ref, err := driver.RefAt(ctx, block.Height)
	if err == nil || !IsPruned(err) {
		return err == nil && ref.Hash == block.Hash, err
	}

	parent, err := ParentOf(ctx, driver, block.Height+1)

	return err == nil && parent == block.Hash, err
}

// Below returns the parent of a block. The block itself names it, so no node needs to have it. Its time is that of the
// block. The errors are those of RefAt.
func Below(ctx context.Context, driver chain.Driver, above chain.Ref) (chain.Ref, error) {
	parent, err := ParentOf(ctx, driver, above.Height)
	if err != nil {
		return chain.Ref{}, err
	}

	return chain.Ref{Height: above.Height - 1, Hash: parent, Time: above.Time}, nil
}

// Held returns the block at a height where a node has it as it is read: whole where the driver reads whole blocks. The
// errors are those of RefAt.
func Held(ctx context.Context, driver chain.Driver, height uint64) (chain.Ref, error) {
	scanner, ok := driver.(chain.BlockScanner)
	if !ok {
		return driver.RefAt(ctx, height)
	}

	blocks, err := scanner.Blocks(ctx, height, height)
	if err != nil {
		return chain.Ref{}, err
	}

	return blocks[0].Ref, nil
}

// OldestHeld returns the oldest block between two heights that a node still has, as Held reads it. A node that
// has a block has every later one. If it lacks even the block at to, IsPruned holds for the error.
func OldestHeld(ctx context.Context, driver chain.Driver, from, to uint64) (chain.Ref, error) {
	held, err := Held(ctx, driver, to)
	if err != nil {
		return chain.Ref{}, err
	}

	for low := from; low < held.Height; {
		middle := low + (held.Height-low)/2

		ref, err := Held(ctx, driver, middle)

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
