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

// forgeBlocks has a node show its blocks with their transactions changed.
func (f *faultyNode) forgeBlocks(change func(transactions []any) []any) {
	f.set(func(method string, _ []any, result any) (any, int) {
		block, ok := result.(map[string]any)
		if transactions, whole := block["transactions"].([]any); method == "getBlock" && ok && whole {
			block["transactions"] = change(transactions)
		}

		return result, 0
	})
}

// shownTx returns the hash, the accounts and the meta of a transaction that a node shows in a block.
func shownTx(shown any) (hash string, accounts []any, meta map[string]any) {
	tx := shown.(map[string]any)
	inner := tx["transaction"].(map[string]any)

	return inner["signatures"].([]any)[0].(string), inner["accountKeys"].([]any), tx["meta"].(map[string]any)
}

// payMore returns a forgery that has a transaction bring an address so many more lamports, of its payer's.
func payMore(t *testing.T, hash string, to chain.Address, more int64) func([]any) []any {
	return func(transactions []any) []any {
		for _, shown := range transactions {
			of, accounts, meta := shownTx(shown)
			if of != hash {
				continue
			}

			after := meta["postBalances"].([]any)

			for i, account := range accounts {
				change := int64(0)

				switch {
				case i == 0:
					change = -more
				case account.(map[string]any)["pubkey"] == string(to):
					change = more
				}

				held, err := after[i].(json.Number).Int64()
				must(t, err)

				after[i] = json.Number(chain.Units(uint64(held + change)).String())
			}
		}

		return transactions
	}
}

// leaveOut returns a forgery that leaves a transaction out.
func leaveOut(hash string) func([]any) []any {
	return func(transactions []any) []any {
		return slices.DeleteFunc(
			transactions,
			func(shown any) bool { of, _, _ := shownTx(shown); return of == hash },
		)
	}
}

// What one node of two forges in a block or leaves out of it is in no block that is read again: payments in it wait
// until another one says the same. No hash binds what is in a block.
func TestOneNodeForgesNoTransfer(t *testing.T) {
	const unreachable, amount = "http://127.0.0.1:1", 1_000_000

	n := startNode(t, solanago.TokenProgramID)
	to, bystander := newAddress(t), newAddress(t)
	native := chain.Asset{Kind: chain.Native}

	paid, err := controls{n}.Pay(t.Context(), to, native, chain.Units(amount))
	must(t, err)
	_, err = controls{n}.Pay(t.Context(), bystander, native, chain.Units(amount))
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	head, err := n.driver(t).Head(t.Context())
	must(t, err)

	at := head.Tip
	forger, omitter := newFaultyNode(t, n), newFaultyNode(t, n)
	forger.forgeBlocks(payMore(t, paid, to, 500_000_000))
	omitter.forgeBlocks(leaveOut(paid))

	behind, err := n.Backends(20)
	must(t, err)

	for name, c := range map[string]struct {
		nodes  []string
		code   string // of the error; "" for a block
		amount uint64 // that the block read again shows of the payment
		waits  bool   // nothing says whether the payment is there
	}{
		"one node alone":             {nodes: []string{n.URL}, amount: amount},
		"honest nodes":               {nodes: []string{n.URL, n.URL}, amount: amount},
		"the forger first":           {nodes: []string{forger.URL, n.URL}, waits: true},
		"the forger second":          {nodes: []string{n.URL, forger.URL}, waits: true},
		"two honest ones":            {nodes: []string{forger.URL, n.URL, n.URL}, amount: amount},
		"the one that omits first":   {nodes: []string{omitter.URL, n.URL}, waits: true},
		"the one that omits second":  {nodes: []string{n.URL, omitter.URL}, waits: true},
		"two that say it is not so":  {nodes: []string{n.URL, omitter.URL, omitter.URL}},
		"three that say three":       {nodes: []string{forger.URL, n.URL, omitter.URL}, waits: true},
		"the other one is down":      {nodes: []string{forger.URL, unreachable}, code: "nodes_missing"},
		"the honest one is behind":   {nodes: []string{forger.URL, behind}, code: "nodes_missing"},
		"the first one is down":      {nodes: []string{unreachable, n.URL, n.URL}, amount: amount},
		"the forger while one is up": {nodes: []string{unreachable, forger.URL, n.URL}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := n.driver(
				t,
				func(config *solana.Config) { config.RPC, config.RPCs = c.nodes[0], c.nodes[1:] },
			)

			// What Head has read of the preferred node is no second word.
			_, err := d.Head(t.Context())
			if err != nil && c.nodes[0] != unreachable {
				t.Fatal(err)
			}

			for range 3 { // whichever node is preferred meanwhile
				block, err := agreedOf(t, d).AgreedBlock(t.Context(), at, []string{paid})
				if fault.Code(err) != c.code || err != nil && !errors.Is(err, fault.Unavailable) {
					t.Fatalf("%+v, %v; want code %q", block, err, c.code)
				}

				if err != nil {
					continue
				}

				if got := arrived(block, to); got != chain.Units(c.amount) {
					t.Errorf("the payment is %s, want %d", got, c.amount)
				}

				if got := arrived(block, bystander); got != chain.Units(amount) {
					t.Errorf("another payment in the block is %s, want %d", got, amount)
				}

				unread := slices.ContainsFunc(
					block.Unread,
					func(u chain.Unread) bool { return u.TxHash == paid },
				)
				if unread != c.waits || (block.Unverified != "") != c.waits {
					t.Errorf(
						"unread %+v, unverified %q; want that it waits: %t",
						block.Unread,
						block.Unverified,
						c.waits,
					)
				}
			}
		})
	}
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
