//go:build unix

package solana_test

import (
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestListedSlotsCountHeights has a node leave the first block after a known one out of its list of slots, where each
// listed block is the child of the one before it. Their heights do not fit, so the list is not believed.
func TestListedSlotsCountHeights(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	faulty := newFaultyNode(t, n)
	d := n.driver(t, func(c *solana.Config) { c.RPC = faulty.URL })

	known, err := d.Head(t.Context())
	must(t, err)
	must(t, n.SolanaNode.Mine(6))

	_, err = d.Head(t.Context())
	must(t, err)

	from, left := known.Tip.Height+1, 0

	faulty.set(func(method string, params []any, result any) (any, int) {
		slots, ok := result.([]any)
		if !ok || method != "getBlocksWithLimit" {
			return result, 0
		}

		left++

		var more []any
		if err := n.Call(&more, method, params[0], len(slots)+1, params[2]); err != nil || len(more) < 2 {
			t.Errorf("the node lists %v, %v", more, err)
			return result, 0
		}

		return append(more[:1], more[2:]...), 0
	})

	if blocks, err := d.Blocks(t.Context(), from, from+3); !errors.Is(err, fault.Unavailable) || left < 2 {
		t.Errorf("of %d lists without a block: %d blocks, %v", left, len(blocks), err)
	}

	faulty.set(nil)

	blocks, err := d.Blocks(t.Context(), from, from+3)
	must(t, err)

	if len(blocks) != 4 || blocks[0].Height != from || blocks[0].Parent != known.Tip.Hash {
		t.Errorf("of an honest list: %d blocks, the first is %+v", len(blocks), blocks[0].Ref)
	}
}
