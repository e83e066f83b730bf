//go:build unix

package solana_test

// Nodes that were just restored from a snapshot: they have the blocks since, and know nothing of what was before.

import (
	"encoding/json"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// restore has a node in front of another one know nothing that is before a slot.
func (f *faultyNode) restore(first uint64) {
	slotOf := func(v any) uint64 {
		if entry, ok := v.(map[string]any); ok {
			v = entry["slot"]
		}

		if n, ok := v.(json.Number); ok {
			slot, _ := n.Int64()
			return uint64(slot)
		}

		n, _ := v.(float64)

		return uint64(n)
	}
	forgotten := func(v any) bool { return v != nil && slotOf(v) < first }

	f.set(func(method string, params []any, result any) (any, int) {
		switch method {
		case "getFirstAvailableBlock", "minimumLedgerSlot":
			return first, 0
		case "getBlock":
			if slotOf(params[0]) < first {
				return refusal(-32001), 0
			}
		case "getBlocks", "getBlocksWithLimit", "getSignaturesForAddress":
			if list, ok := result.([]any); ok {
				return slices.DeleteFunc(list, forgotten), 0
			}
		case "getTransaction":
			if result != nil && slotOf(result) < first {
				return nil, 0
			}
		case "getSignatureStatuses":
			if shown, ok := result.(map[string]any); ok {
				for i, status := range shown["value"].([]any) {
					if forgotten(status) {
						shown["value"].([]any)[i] = nil
					}
				}
			}
		}

		return result, 0
	})
}

// A node that was just restored serves the addresses of before, a new one, an imported one and a process that starts.
// Only what it does not know itself is left, and named; another node beside it shows that too.
func TestRestoredNodeStopsNothing(t *testing.T) {
	for _, reads := range []string{"by block", "by address"} {
		for _, nodes := range []string{"alone", "beside another node", "beside one that is behind"} {
			t.Run(reads+", "+nodes, func(t *testing.T) {
				n := startNode(t, solanago.TokenProgramID)
				restored, second := newFaultyNode(t, n), newFaultyNode(t, n)
				first, later, imported := newAddress(t), newAddress(t), newAddress(t)

				start := func() chain.Driver {
					d := n.driver(t, func(c *solana.Config) {
						c.RPC = restored.URL
						if nodes != "alone" {
							c.RPCs = []string{second.URL}
						}
					})
					if reads == "by address" {
						return d.Histories()
					}

					return d
				}

				f := newFollowed(t, start(), first)
				pay := func(to chain.Address, asset chain.Asset) {
					t.Helper()

					hash := n.pay(t, to, asset, 5_000_000)
					must(t, n.SolanaNode.Mine(2))
					f.steps(10)
					f.wants(to, hash)

					if f.cursor.Stopped != "" {
						t.Fatalf("the network was stopped: %s", f.cursor.Stopped)
					}
				}

				f.steps(5)

				long := n.pay(t, imported, nativeAsset, 5_000_000)
				must(t, n.SolanaNode.Mine(60))
				pay(first, nativeAsset)

				// It has the final block, and none before it.
				var last uint64
				must(t, n.Call(&last, "getSlot", map[string]any{"commitment": "finalized"}))
				restored.restore(last)

				if nodes == "beside one that is behind" {
					second.set(func(method string, _ []any, result any) (any, int) {
						if method == "getSlot" {
							return last - 3, 0
						}

						return result, 0
					})
				}

				pay(first, nativeAsset)

				f.addresses = append([]chain.Address{later}, f.addresses...)
				pay(later, n.asset)

				f.restart(start())
				pay(later, nativeAsset)

				// Old blocks are read again for an address that is imported.
				short := n.pay(t, imported, nativeAsset, 5_000_000)
				pay(later, nativeAsset)

				newest := f.cursor.At.Height
				f.ranges["old"] = scan.Range{
					ID:        "old",
					Network:   f.cursor.Network,
					Addresses: []chain.Address{imported},
					Next:      3,
					To:        newest,
				}

				f.steps(10)
				second.set(nil)
				f.steps(30)
				f.wants(imported, short)

				if nodes != "alone" {
					f.wants(imported, long)
				}

				report := f.follower.Health()
				if report.LastError != "" {
					t.Errorf("following fails: %s", report.LastError)
				}

				for id, left := range f.ranges {
					named := slices.ContainsFunc(report.Unread, func(u health.Unread) bool {
						return u.Address == string(imported) && u.Height == left.Next
					})

					if nodes != "alone" || left.To >= newest || !named {
						t.Errorf(
							"range %s is left, of blocks %d to %d; %+v",
							id,
							left.Next,
							left.To,
							report.Unread,
						)
					}
				}
			})
		}
	}
}

// restoredReadings are the ways of reading a node that was restored.
var restoredReadings = map[string]func(d *solana.BlockDriver) chain.Driver{
	"by block":   func(d *solana.BlockDriver) chain.Driver { return d },
	"by address": func(d *solana.BlockDriver) chain.Driver { return d.Histories() },
}

// A node that was restored from the very block that follows the last one that was read lacks nothing: its first block
// names that one as its parent, in the process that read it and in one that starts, and after a fork the final one.
func TestNodeWhoseFirstBlockFollowsTheCursor(t *testing.T) {
	for name, reading := range restoredReadings {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			restored, to := newFaultyNode(t, n), newAddress(t)
			start := func() chain.Driver {
				return reading(n.driver(t, func(c *solana.Config) { c.RPC = restored.URL }))
			}

			// slotOf returns the slot of the newest block of a commitment. forget leaves the node the blocks above a
			// slot; later ones are final.
			slotOf := func(commitment string) (slot uint64) {
				must(t, n.Call(&slot, "getSlot", map[string]any{"commitment": commitment}))
				return slot
			}
			forget := func(slot uint64) {
				restored.restore(slot + 1)
				must(t, n.SolanaNode.Mine(40))
			}

			f := newFollowed(t, start(), to)
			pay := func() {
				t.Helper()

				hash := n.pay(t, to, nativeAsset, 5_000_000)
				must(t, n.SolanaNode.Mine(2))
				f.steps(10)
				f.wants(to, hash)

				if f.cursor.Stopped != "" {
					t.Fatalf("the network was stopped: %s", f.cursor.Stopped)
				}
			}

			f.steps(5)
			must(t, n.SolanaNode.Mine(40))
			pay()

			forget(slotOf("confirmed"))
			pay()

			forget(slotOf("confirmed"))
			f.restart(start())
			pay()

			final := slotOf("finalized")

			must(t, n.SolanaNode.Fork(2))
			forget(final)
			pay()
		})
	}
}

// What no node has any more is passed once a person resumes the network: everything since is read, what was paid in
// between is looked for where a node has it again.
func TestResumeReadsOnAtTheFirstBlockOfARestoredNode(t *testing.T) {
	for name, reading := range restoredReadings {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			restored, to, other := newFaultyNode(t, n), newAddress(t), newAddress(t)
			start := func() chain.Driver {
				return reading(n.driver(t, func(c *solana.Config) { c.RPC = restored.URL }))
			}

			f := newFollowed(t, start(), to, other)
			f.steps(5)

			before := n.pay(t, to, nativeAsset, 5_000_000)
			must(t, n.SolanaNode.Mine(40))
			f.steps(5)
			f.wants(to, before)

			// The service is down; the node is restored meanwhile.
			read, lost := f.cursor.At.Height, n.pay(t, to, nativeAsset, 6_000_000)
			must(t, n.SolanaNode.Mine(9))

			held := n.pay(t, to, n.asset, 7_000_000)
			must(t, n.SolanaNode.Mine(3))

			var slot uint64
			must(t, n.Call(&slot, "getSlot", map[string]any{"commitment": "confirmed"}))
			restored.restore(slot - 3)
			must(t, n.SolanaNode.Mine(40)) // the first ones are final
			f.restart(start())
			f.steps(5)

			if f.cursor.Stopped == "" || f.cursor.At.Height != read {
				t.Fatalf("with blocks missing it is at block %d: %q", f.cursor.At.Height, f.cursor.Stopped)
			}

			passed, err := follow.Resume(t.Context(), f, f.driver, f.now)
			must(t, err)

			if passed == nil || passed.Next != read+1 {
				t.Fatalf("above block %d was passed %+v", read, passed)
			}

			since := n.pay(t, other, nativeAsset, 8_000_000)
			must(t, n.SolanaNode.Mine(2))
			f.steps(60)
			f.wants(to, held)
			f.wants(other, since)

			if _, found := f.seen[lost+"/"+string(to)]; found || f.cursor.Stopped != "" {
				t.Fatalf("what no node has is read: %t; stopped: %q", found, f.cursor.Stopped)
			}

			restored.set(nil)
			f.restart(start())
			f.steps(300)
			f.wants(to, lost)

			if len(f.ranges) > 0 {
				t.Errorf("left are %+v; health: %+v", f.ranges, f.follower.Health())
			}
		})
	}
}
