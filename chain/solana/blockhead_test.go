//go:build unix

package solana_test

import (
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain/solana"
)

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
