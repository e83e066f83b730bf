//go:build unix

package bitcoin_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// nodeURL is where a node is asked.
func nodeURL(n *testenv.BitcoindNode) string {
	return "http://" + n.User + ":" + n.Password + "@" + n.Addr
}

// mustCall calls a node.
func mustCall(t *testing.T, n *testenv.BitcoindNode, result any, method string, args ...any) {
	t.Helper()

	if err := n.Call(t.Context(), result, method, args...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// copyBlocks gives one node the blocks of another one.
func copyBlocks(t *testing.T, from, to *testenv.BitcoindNode, first, last int) {
	t.Helper()

	for height := first; height <= last; height++ {
		var hash, block string

		mustCall(t, from, &hash, "getblockhash", height)
		mustCall(t, from, &block, "getblock", hash, 0)
		mustCall(t, to, nil, "submitblock", block)
	}
}

// Real nodes on two branches: of less work by the same rules, and after a hard fork with headers of another form. In
// both orders the one with Bitcoin's chain of most work is followed, and the other one is named.
func TestNodesOnTwoBranches(t *testing.T) {
	const common, ours, theirs = 5, 12, 4

	for name, c := range map[string]struct {
		args []string
		word error
		code string
		says string
	}{
		"less work": {nil, fault.Unavailable, "node_other_chain", "from block 6 on"},
		"headers of another form": {
			[]string{"-testactivationheight=blake2b@6"}, fault.Stopped, "chain_id_mismatch", "another form",
		},
	} {
		t.Run(name, func(t *testing.T) {
			honest := testenv.Bitcoind(t, testenv.BitcoindOptions{})
			other := testenv.Bitcoind(t, testenv.BitcoindOptions{Args: c.args})

			mustCall(t, honest, nil, "generatetodescriptor", common, "raw(51)")
			copyBlocks(t, honest, other, 1, common)
			mustCall(t, honest, nil, "generatetodescriptor", ours, "raw(52)")
			mustCall(t, other, nil, "generatetodescriptor", theirs, "raw(53)")

			var tip string

			mustCall(t, honest, &tip, "getbestblockhash")

			for first, urls := range [][2]string{{nodeURL(honest), nodeURL(other)}, {nodeURL(other), nodeURL(honest)}} {
				d := newDriver(t, bitcoin.Config{Network: bitcoin.Regtest, RPCs: urls[:], Attempts: 1})

				mustCode(t, "Check", d.Check(t.Context()), c.word, c.code)

				for range 2 {
					if head, err := d.Head(t.Context()); err != nil || head.Tip.Hash != tip {
						t.Errorf("order %d: head %+v, %v; want %s", first, head.Tip, err, tip)
					}
				}

				reports := d.Nodes()
				if good, bad := reports[first], reports[1-first]; good.Why != "" ||
					!strings.Contains(bad.Why, c.says) || bad.Since.IsZero() ||
					!strings.Contains(bad.Version, "Knots") {
					t.Errorf("order %d: %+v", first, reports)
				}

				// It is not one that agrees.
				if _, err := d.AgreedBlock(
					t.Context(),
					chain.Ref{Height: common + ours, Hash: tip},
					nil,
				); err == nil {
					t.Errorf("order %d: one node alone confirms", first)
				}
			}
		})
	}
}
