package scanstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// FinalHeight returns the height up to which the blocks that were read are final by a network's rule: the
// network's safe or final block, or required confirmations. When finality cannot be read, a block must have
// required confirmations and be known to be as old as Network.Fallback. ok is false while no block is final.
func FinalHeight(c scan.Cursor, n chain.Network, required uint64) (height uint64, ok bool) { // spec 2.4.2
	height, ok, counted := finalHeight(c, n, required)
	if !ok || !counted || chaindata.Fallback(n) == 0 { // spec 2.4.3
		return height, ok
	}

	// Far below the newest block few references are kept. The pace shows where between them the old blocks
	// begin.
	height = min(height, c.At.Height-min(c.At.Height, BlocksIn(c, n.Fallback)))

	for _, ref := range c.Recent {
		switch {
		case ref.Height > height:
		case chaindata.IsOld(n, c.At.Time, ref.Time):
			return height, true
		case ref.Height > 0:
			height = ref.Height - 1
		}
	}

	return 0, false
}

// finalHeight returns the final height without regard to the age of blocks. counted is set if it is counted
// from the last block that was read, because the network has no finality of its own or it cannot be read.
func finalHeight(c scan.Cursor, n chain.Network, required uint64) (height uint64, ok, counted bool) {
	reached := chain.Ref{}

	switch n.Rule {
	case chain.RuleSafe:
		reached = c.Safe
		if reached.IsZero() {
			reached = c.Final
		}
	case chain.RuleFinalized:
		reached = c.Final
	case chain.RuleConfirmations:
		// Counted below.
	}

	switch at := c.At.Height; {
	case c.At.IsZero():
		return 0, false, true
	case !reached.IsZero():
		return min(at, reached.Height), true, false
	case required == 0:
		return at, true, true
	case at+1 < required:
		return 0, false, true
	default:
		return at + 1 - required, true, true
	}
}

// UntilFinal returns the time until a block is final by confirmations, at the network's measured pace. It is
// 0 for a final block, if the node reports finality, or if the pace was not measured.
func UntilFinal(c scan.Cursor, n chain.Network, required uint64, block chain.Ref) time.Duration {
	pace, measured := Pace(c)

	height, ok, counted := finalHeight(c, n, required)
	if !ok || !counted || !measured {
		return 0
	}

	age := max(0, chaindata.Fallback(n)-c.At.Time.Sub(block.Time))
	if block.Height <= height {
		return age
	}

	return max(age, time.Duration(min(block.Height-height, maxUntilFinal))*pace)
}

// maxUntilFinal bounds the blocks that UntilFinal counts.
const maxUntilFinal = 1 << 16

// IsFinal reports whether a block is final by a network's rule; see FinalHeight.
func IsFinal(c scan.Cursor, n chain.Network, required uint64, block chain.Ref) bool {
	height, ok, counted := finalHeight(c, n, required)
	if !ok || block.Height > height {
		return false
	}

	return !counted || chaindata.IsOld(n, c.At.Time, block.Time)
}
