package scanstate

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
)

// FinalHeight returns the height up to which the blocks that were read are final by a network's rule:
// its safe or final block reached, or required confirmations. Where finality cannot be read, required is
// the fall-back. ok is false while no block is final.
func FinalHeight(c scan.Cursor, n chain.Network, required uint64) (height uint64, ok bool) { // spec 2.4.2
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
		return 0, false
	case !reached.IsZero(): // spec 2.4.3
		return min(at, reached.Height), true
	case required == 0:
		return at, true
	case at+1 < required:
		return 0, false
	default:
		return at + 1 - required, true
	}
}

// UntilFinal returns how many blocks have to come until a block is final, where confirmations are counted; 0 where
// the node says what is final, and for a final block.
func UntilFinal(c scan.Cursor, n chain.Network, required uint64, block chain.Ref) uint64 {
	height, ok := FinalHeight(c, n, required)
	if counted := height+required == c.At.Height+1; !ok || !counted || block.Height <= height {
		return 0
	}

	return block.Height - height
}

// IsFinal reports whether a block is final by a network's rule; see FinalHeight.
func IsFinal(c scan.Cursor, n chain.Network, required uint64, block chain.Ref) bool {
	height, ok := FinalHeight(c, n, required)

	return ok && block.Height <= height
}
