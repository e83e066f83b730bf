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
		"the other one is down":     {nodes: []string{n.URL, unreachable}, byBlock: "node_behind"},
		"the honest one is down":    {nodes: []string{liar.URL, unreachable}, byBlock: "node_behind", reverted: true},
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

// A balance is what two nodes say, where several are configured. What one says alone is named.
func TestBalanceNeedsASecondNode(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"

	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	deposit := s.party(chain.RoleDeposit, 1)
	s.fund(deposit, 60_000_000, 0)

	liar := newFaultyNode(t, n)
	liar.forgeAccounts(func(key string, account map[string]any) any {
		switch {
		case account == nil:
			return nil
		case key == string(deposit.Address):
			return holding(account, 1_000_000_000)
		}

		return account
	})

	head, err := s.d.Head(t.Context())
	must(t, err)

	for name, c := range map[string]struct {
		nodes []string
		want  uint64
		code  string
	}{
		"one node":              {[]string{n.URL}, 60_000_000, ""},
		"the other one is down": {[]string{n.URL, unreachable}, 60_000_000, "nodes_missing"},
		"the honest one is down": {
			[]string{liar.URL, unreachable}, 1_060_000_000, "nodes_missing",
		},
		"the liar and an honest one": {[]string{liar.URL, n.URL}, 0, "nodes_disagree"},
	} {
		t.Run(name, func(t *testing.T) {
			d := n.driver(
				t,
				func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] },
			)
			held := []chain.Holding{{Address: deposit.Address, AssetID: d.Network().Assets[0].ID}}

			amounts, err := d.Balances(t.Context(), head.Tip, held)

			code := ""
			if unreadable, named := errors.AsType[*chain.UnreadableError](err); named {
				code = fault.Code(unreadable.Holdings[0].Err)
			} else {
				must(t, err)
			}

			if code != c.code || amounts[0] != chain.Units(c.want) {
				t.Errorf("the balance is %v, %v", amounts, err)
			}
		})
	}
}
