//go:build unix

package solana_test

import (
	"encoding/json"
	"errors"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// A node that says of a payment of ours that it failed is believed by nobody while another one shows what it did, or
// is behind its block. No hash binds what a transaction did.
func TestOneNodeFailsNoTransaction(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from := s.party(chain.RoleMaster, 1)
	s.fund(from, sol, 0)

	tx := s.sign(s.paying(from, 1_000_000, nil))
	s.include(tx)
	must(t, n.SolanaNode.Mine(5))

	liar := newFaultyNode(t, n)
	liar.set(func(method string, params []any, result any) (any, int) {
		if method != "getTransaction" || params[0] != tx.TxHash {
			return result, 0
		}

		meta := result.(map[string]any)["meta"].(map[string]any)
		before := meta["preBalances"].([]any)
		after := append([]any{}, before...)

		fee, err := meta["fee"].(json.Number).Int64()
		must(t, err)

		payer, err := before[0].(json.Number).Int64()
		must(t, err)

		after[0] = payer - fee
		meta["err"], meta["postBalances"] = map[string]any{"InstructionError": []any{0, "Custom"}}, after

		return result, 0
	})

	behind, err := n.Backends(20)
	must(t, err)

	const disagree = "nodes_disagree"

	for name, c := range map[string]struct {
		nodes []string
		// byBlock and byAddress are what reading blocks and addresses ends with; "" for a status.
		byBlock, byAddress string
		reverted, final    bool
	}{
		"honest nodes":              {nodes: []string{n.URL, n.URL}, final: true},
		"the liar first":            {nodes: []string{liar.URL, n.URL}, byBlock: disagree, byAddress: disagree},
		"the liar second":           {nodes: []string{n.URL, liar.URL}, byBlock: disagree, byAddress: disagree},
		"two honest after the liar": {nodes: []string{n.URL, liar.URL, n.URL}, final: true},
		"the honest one is behind":  {nodes: []string{liar.URL, behind}, byBlock: "node_behind", reverted: true},
		"the other one is down":     {nodes: []string{n.URL, unreachable}, final: true},
		"one node alone":            {nodes: []string{n.URL}, final: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := n.driver(
				t,
				func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] },
			)

			for code, sender := range map[*string]chain.Sender{&c.byBlock: d, &c.byAddress: d.Histories()} {
				st, err := sender.Status(t.Context(), tx)
				if fault.Code(err) != *code || err != nil && !errors.Is(err, fault.Unavailable) {
					t.Errorf("%T: %+v, %v; want %q", sender, st, err, *code)
				}

				if err == nil && (st.Reverted != c.reverted || st.Final != c.final) {
					t.Errorf("%T: %+v", sender, st)
				}
			}
		})
	}
}
