//go:build unix

package solana_test

import (
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// TestGuessedTipCountsHeights has slots skipped below the block that is guessed to be near the tip. It is as many slots
// above the known block as blocks and skips, so slots are listed: no height is remembered at another's slot, and each
// block is read once, the final one besides.
func TestGuessedTipCountsHeights(t *testing.T) {
	for _, skipped := range []int{0, 2} {
		n := startNode(t, solanago.TokenProgramID)
		d := n.driver(t)
		head := func() chain.Ref {
			t.Helper()

			h, err := d.Head(t.Context())
			must(t, err)

			return h.Tip
		}

		head()
		must(t, n.SolanaNode.Mine(3))

		known := head() // lists slots, and knows from now on how far the final block is behind

		must(t, n.SolanaNode.Mine(2))
		must(t, n.Skip(skipped))
		must(t, n.SolanaNode.Mine(8))

		_, err := n.Calls()
		must(t, err)

		tip := head()
		blocks, err := d.Blocks(t.Context(), known.Height+1, tip.Height)
		must(t, err)
		calls, err := n.Calls()
		must(t, err)

		n.wantSlots(t, d, known.Height, tip.Height)

		if tip.Height != known.Height+8 || uint64(len(blocks)) != tip.Height-known.Height ||
			calls["getBlock"] != len(
				blocks,
			)+1 || calls["getBlocks"] != min(skipped, 1) ||
			calls["getBlocksWithLimit"] > 0 {
			t.Errorf("with %d slots skipped the tip is %d above, and %v calls read it", skipped,
				tip.Height-known.Height, calls)
		}
	}
}

// TestListedSlotsCountHeights has a node leave a block out of its list of slots: its height does not fit, so nothing of
// the list is remembered.
func TestListedSlotsCountHeights(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	faulty := newFaultyNode(t, n)
	d := n.driver(t, func(c *solana.Config) { c.RPC = faulty.URL })

	known, err := d.Head(t.Context())
	must(t, err)
	must(t, n.SolanaNode.Mine(6))

	left := 0

	faulty.set(func(method string, _ []any, result any) (any, int) {
		if slots, ok := result.([]any); ok && method == "getBlocks" && len(slots) > 4 {
			left++
			return slices.Delete(slots, 2, 3), 0
		}

		return result, 0
	})

	head, err := d.Head(t.Context())
	must(t, err)

	if left == 0 || head.Tip.Height != known.Tip.Height+6 {
		t.Fatalf("the tip is %+v after %d lists without a block, so the test shows nothing", head.Tip, left)
	}

	n.wantSlots(t, d, known.Tip.Height, head.Tip.Height)
}

// wantSlots fails the test where the driver remembers another slot than that of a height.
func (n *node) wantSlots(t *testing.T, d *solana.BlockDriver, from, to uint64) {
	t.Helper()

	var slots []uint64
	must(t, n.Call(&slots, "getBlocks", 0, map[string]string{"commitment": "confirmed"}))

	for height := from; height <= to; height++ {
		if slot, known := d.SlotOf(height); known && slot != slots[height] {
			t.Errorf("block %d is remembered in slot %d, it is in %d", height, slot, slots[height])
		}
	}
}
