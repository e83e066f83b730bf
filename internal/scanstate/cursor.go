package scanstate

import (
	"math/bits"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// Bounds of the block references that a cursor keeps. It keeps the newest dense ones, then one in coarseStep
// down to coarseDepth, then one in a step that doubles with the depth, down to deepest. So a walk-back over a
// fork finds the newest common block exactly within dense blocks. Within coarseDepth it is at most coarseStep
// too deep (Polygon has had forks of 187 blocks). A few unchanged blocks are then read again.
const (
	dense       = 64
	coarseStep  = 8
	coarseDepth = 512
	deepStep    = 128
	deepest     = 1 << 16
)

// Forward returns the cursor after the given canonical blocks, which start right after c.At.
func Forward(c scan.Cursor, blocks []chain.Block) scan.Cursor {
	recent := make([]chain.Ref, 0, len(c.Recent)+len(blocks)+1)
	for i := len(blocks) - 1; i >= 0; i-- {
		recent = append(recent, blocks[i].Ref)
	}

	if !c.At.IsZero() {
		recent = append(recent, c.At)
	}

	recent = append(recent, c.Recent...)
	c.At, c.Recent = recent[0], thin(recent[1:], recent[0].Height)

	return c
}

// Back returns the cursor moved back to an earlier trusted block.
func Back(c scan.Cursor, to chain.Ref) scan.Cursor {
	c.At = to
	for len(c.Recent) > 0 && c.Recent[0].Height >= to.Height {
		c.Recent = c.Recent[1:]
	}

	return c
}

// thin returns the references to keep below height top; refs are newest first.
func thin(refs []chain.Ref, top uint64) []chain.Ref {
	kept := make([]chain.Ref, 0, len(refs))

	for _, r := range refs {
		if depth := top - r.Height; depth <= deepest && r.Height%stepAt(depth) == 0 {
			kept = append(kept, r)
		}
	}

	return kept
}

// stepAt returns the distance between two kept references at a depth. A reference is kept if the step divides
// its height, so that it stays while it gets deeper.
func stepAt(depth uint64) uint64 {
	switch {
	case depth <= dense:
		return 1
	case depth <= coarseDepth:
		return coarseStep
	}

	return deepStep << bits.Len64((depth-1)/(2*coarseDepth))
}
