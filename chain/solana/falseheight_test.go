//go:build unix

package solana_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// A node that says that a blockhash runs out earlier than it does has nobody make a payment again whose bytes it keeps:
// the two would be paid.
func TestFalseLastHeightExpiresNothing(t *testing.T) {
	const (
		unreachable = "http://127.0.0.1:1"
		less        = 100
	)

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)
	must(t, n.SolanaNode.Mine(2*less))

	lower := func(shown map[string]any, field string) {
		height, _ := shown[field].(json.Number).Int64()
		shown[field] = height - less
	}
	liar, slot := newFaultyNode(t, n), ""

	liar.set(func(method string, params []any, result any) (any, int) {
		switch shown, _ := result.(map[string]any); method {
		case "getLatestBlockhash":
			slot = fmt.Sprint(shown["context"].(map[string]any)["slot"])
			lower(shown["value"].(map[string]any), "lastValidBlockHeight")
		case "getBlock":
			if fmt.Sprint(params[0]) == slot {
				lower(shown, "blockHeight")
			}
		}

		return result, 0
	})

	with := func(first string, others ...string) *solana.BlockDriver {
		return n.driver(t, func(c *solana.Config) { c.RPC, c.RPCs = first, others })
	}
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Outputs: []chain.Output{{To: newAddress(t), AssetID: s.native().ID, Amount: chain.Units(1_000_000)}},
	}

	for _, nodes := range [][]string{{liar.URL, n.URL}, {n.URL, liar.URL}} {
		_, err := with(nodes[0], nodes[1]).Build(t.Context(), order)
		if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "nodes_disagree" {
			t.Errorf("%v: built with %v, want nodes_disagree", nodes, err)
		}
	}

	for _, nodes := range [][]string{{n.URL, n.URL}, {liar.URL, n.URL, n.URL}} {
		if _, err := with(nodes[0], nodes[1:]...).Build(t.Context(), order); err != nil {
			t.Errorf("%v: not built: %v", nodes, err)
		}
	}

	// The node was the only one that was configured when it was built.
	honest := s.sign(order)
	s.d = with(liar.URL)
	tx := s.sign(order)

	if tx.ValidToHeight+less != honest.ValidToHeight {
		t.Fatalf("it runs out at %d, so the test shows nothing", tx.ValidToHeight)
	}

	liar.set(nil)
	must(t, n.SolanaNode.Mine(less))

	wants := func(state chain.TxState) {
		t.Helper()

		st, err := with(liar.URL, n.URL).Histories().Status(t.Context(), tx)
		if err != nil || st.State != state {
			t.Errorf("it is %+v, %v; want %s", st, err, state)
		}
	}

	head, err := with(n.URL).Head(t.Context())
	must(t, err)

	if head.Final.Height <= tx.ValidToHeight {
		t.Fatalf("block %d is final, so the test shows nothing", head.Final.Height)
	}

	wants(chain.TxUnknown)
	must(t, n.SolanaNode.Mine(less))
	wants(chain.TxDead)
}
