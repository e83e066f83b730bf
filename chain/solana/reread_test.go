//go:build unix

package solana_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// forgeTransactions has a node change transactions that it is asked for by their hash. What becomes nil it does not
// know.
func (f *faultyNode) forgeTransactions(change func(hash string, shown map[string]any) map[string]any) {
	f.set(func(method string, params []any, result any) (any, int) {
		shown, _ := result.(map[string]any)

		switch method {
		case "getTransaction":
			if changed := change(params[0].(string), shown); changed != nil {
				return changed, 0
			}

			return nil, 0
		case "getSignatureStatuses":
			shown["value"] = []any{nil}
		}

		return result, 0
	})
}

// after is a balance after a transaction that a node shows, in lamports.
func after(meta map[string]any, account int, change int64) {
	balances := meta["postBalances"].([]any)

	held, _ := balances[account].(json.Number).Int64()
	balances[account] = json.Number(chain.Units(uint64(held + change)).String())
}

// What one node of two forges in a transaction or leaves out confirms nothing: payments wait until another node says
// the same of the transaction. No hash binds what is in a block.
func TestOneNodeForgesNoTransfer(t *testing.T) {
	const unreachable, amount, more = "http://127.0.0.1:1", 1_000_000, 500_000_000

	n := startNode(t, solanago.TokenProgramID)
	to, bystander, thief := newAddress(t), newAddress(t), newAddress(t)
	native := chain.Asset{Kind: chain.Native}
	invented := solanago.Signature{7}.String()

	paid, err := controls{n}.Pay(t.Context(), to, native, chain.Units(amount))
	must(t, err)
	other, err := controls{n}.Pay(t.Context(), bystander, native, chain.Units(amount))
	must(t, err)
	failed, err := controls{n}.PayFailing(t.Context(), to, native, chain.Units(amount))
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	head, err := n.driver(t).Head(t.Context())
	must(t, err)

	behind, err := n.Backends(20)
	must(t, err)

	at := head.Tip
	original := transactionOf(t, n, paid)

	forgeries := map[string]func(hash string, shown map[string]any) map[string]any{
		"amount": func(hash string, shown map[string]any) map[string]any {
			if meta, ok := shown["meta"].(map[string]any); ok && hash == paid {
				after(meta, 0, -more)
				after(meta, accountIndex(shown, to), more)
			}

			return shown
		},
		"sender": func(hash string, shown map[string]any) map[string]any {
			if _, ok := shown["meta"]; ok && hash == paid {
				accountsOf(shown)[0] = string(thief)
			}

			return shown
		},
		"left out": func(hash string, shown map[string]any) map[string]any {
			if hash == paid {
				return nil
			}

			return shown
		},
		"invented": func(hash string, shown map[string]any) map[string]any {
			if hash != invented || shown != nil {
				return shown
			}

			copied := original()
			copied["transaction"].(map[string]any)["signatures"] = []any{invented}

			return copied
		},
		"no failure": func(hash string, shown map[string]any) map[string]any {
			if meta, ok := shown["meta"].(map[string]any); ok && hash == failed {
				meta["err"] = nil
				after(meta, 0, -amount)
				after(meta, 1, amount)
			}

			return shown
		},
	}

	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			forger := newFaultyNode(t, n)
			forger.forgeTransactions(forge)

			subject, shown := paid, uint64(amount) // and what honest nodes show of it

			switch name {
			case "invented":
				subject, shown = invented, 0
			case "no failure":
				subject, shown = failed, 0
			}

			for _, c := range []struct {
				nodes []string
				code  string // of the error; "" for a block
				waits bool
			}{
				{nodes: []string{n.URL}},
				{nodes: []string{n.URL, n.URL}},
				{nodes: []string{forger.URL, n.URL}, waits: true},
				{nodes: []string{n.URL, forger.URL}, waits: true},
				{nodes: []string{forger.URL, n.URL, n.URL}},
				{nodes: []string{unreachable, forger.URL, n.URL}, waits: true},
				{nodes: []string{forger.URL, unreachable}, code: "nodes_missing"},
				{nodes: []string{forger.URL, behind}, code: "nodes_missing"},
			} {
				d := n.driver(
					t,
					func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] },
				)

				for range 3 { // whichever node is preferred meanwhile
					block, err := agreedOf(t, d).AgreedBlock(t.Context(), at, []string{subject, other})
					if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
						t.Fatalf("%v: %+v, %v; want code %q", c.nodes, block, err, c.code)
					}

					if err != nil {
						continue
					}

					want := shown
					if c.waits {
						want = 0
					}

					if got := movedBy(block, subject, to); got != chain.Units(want) {
						t.Errorf("%v: %s moved %s, want %d", c.nodes, subject, got, want)
					}

					if got := arrived(block, bystander); got != chain.Units(amount) {
						t.Errorf("%v: another payment in the block is %s", c.nodes, got)
					}

					unread := slices.ContainsFunc(
						block.Unread,
						func(u chain.Unread) bool { return u.TxHash == subject },
					)
					if unread != c.waits || (block.Unverified != "") != c.waits {
						t.Errorf("%v: unread %+v, unverified %q", c.nodes, block.Unread, block.Unverified)
					}
				}
			}
		})
	}
}

// transactionOf returns a transaction as a node shows it, a copy at each call.
func transactionOf(t *testing.T, n *node, hash string) func() map[string]any {
	t.Helper()

	var raw json.RawMessage

	must(t, n.SolanaNode.Call(&raw, "getTransaction", hash, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "json",
		"maxSupportedTransactionVersion": 0,
	}))

	return func() (shown map[string]any) {
		must(t, json.Unmarshal(raw, &shown))
		return shown
	}
}

// accountsOf returns the accounts of a transaction that a node shows by its hash.
func accountsOf(shown map[string]any) []any {
	message := shown["transaction"].(map[string]any)["message"].(map[string]any)
	return message["accountKeys"].([]any)
}

func accountIndex(shown map[string]any, account chain.Address) int {
	return slices.Index(accountsOf(shown), any(string(account)))
}

// movedBy returns what a transaction brings an address, in base units.
func movedBy(block chain.Block, hash string, to chain.Address) (sum chain.Amount) {
	for _, moved := range block.Transfers {
		if moved.TxHash == hash && moved.To == to {
			sum = sum.Add(moved.Amount)
		}
	}

	return sum
}

// A block that only one node of two has is not read again from that one.
func TestRereadOfABlockThatOneNodeHas(t *testing.T) {
	s := newScenario(t, 1)
	at := chain.Ref{Height: s.from}

	s.bad.set(func(method string, _ []any, result any) (any, int) {
		if block, ok := result.(map[string]any); ok && method == "getBlock" {
			block["blockhash"] = solanago.Hash{1}.String()
		}

		return result, 0
	})

	at.Hash = solanago.Hash{1}.String()

	block, err := agreedOf(t, s.driver(t, true)).AgreedBlock(t.Context(), at, []string{s.payments[0]})
	if fault.Code(err) != "nodes_disagree" {
		t.Errorf("%+v, %v; want nodes_disagree", block, err)
	}
}

// agreedOf returns the ability of a driver to say what nodes agree on.
func agreedOf(t *testing.T, d chain.Driver) chain.Agreed {
	t.Helper()

	reader, ok := d.(chain.Agreed)
	if !ok {
		t.Fatal("blocks cannot be read again: what one node shows in them confirms")
	}

	return reader
}

// arrived returns what a block brings an address, in base units.
func arrived(block chain.Block, to chain.Address) (sum chain.Amount) {
	for _, moved := range block.Transfers {
		if moved.To == to {
			sum = sum.Add(moved.Amount)
		}
	}

	return sum
}
