//go:build unix

package tron_test

// What a node says that its blocks do not show.

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// What a node says about a hash never proves that a transaction is dead: what it denies is unknown, and where another
// node has it, not even that.
func TestStatusProvesNoExclusion(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 3})
	from, to := h.wallet(100), h.wallet(1).Address
	lost := h.sign(h.order(from, h.native, to, 1_000_000))
	kept := h.sign(h.order(from, h.native, to, 2_000_000))
	h.include(kept)
	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		if strings.Contains(path, "gettransaction") && !strings.Contains(path, "bynum") {
			return ok("{}")
		}

		return ask()
	})
	h.must(h.Expire(t.Context(), lost))
	h.mine(5) // past its expiration, and solidified

	alone, both := h.driver(t, viaNodes(p.URL)), h.driver(t, viaNodes(p.URL, h.URL))

	for name, c := range map[string]struct {
		driver *tron.Driver
		signed chain.Signed
	}{
		"a node that denies everything, of a lost one": {alone, lost},
		"a node that denies everything, of a kept one": {alone, kept},
		"with another node, of a lost one":             {both, lost},
	} {
		if status, err := c.driver.Status(
			t.Context(),
			c.signed,
		); err != nil ||
			status.State != chain.TxUnknown {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}

	_, err := both.Status(t.Context(), kept)
	wantFault(t, err, fault.Unavailable, "node_behind")

	_, err = h.driver(t, viaNodes(p.URL)).Transaction(t.Context(), kept.TxHash)
	wantFault(t, err, fault.NotFound, "transaction_unknown")

	if found, err := both.Transaction(t.Context(), kept.TxHash); err != nil || found.Block.IsZero() {
		t.Errorf("what one node forgot is %+v, %v", found, err)
	}

	_, err = both.Transaction(t.Context(), lost.TxHash)
	wantFault(t, err, fault.NotFound, "transaction_unknown")
}

// An inclusion is believed only out of a block that holds the transaction, with the results of that block.
func TestInclusionIsReadFromTheBlock(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	signed := h.sign(h.order(from, h.native, to, 1_000_000))
	h.include(signed)

	const block, infos = "/wallet/getblockbynum", "/wallet/gettransactioninfobyblocknum"
	for name, lie := range map[string]struct {
		path string
		f    func(a answer) answer
	}{
		"a block without it": {
			block,
			func(a answer) answer { return edit(a, func(v map[string]any) { delete(v, "transactions") }) },
		},
		"a block with another result": {
			block,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					txs, _ := v["transactions"].([]any) // none in the genesis block
					for _, tx := range txs {
						tx.(map[string]any)["ret"] = []any{map[string]any{"contractRet": "REVERT"}}
					}
				})
			},
		},
		"a block with another signature": {
			block,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					txs, _ := v["transactions"].([]any)
					for _, tx := range txs {
						tx.(map[string]any)["signature"] = []any{strings.Repeat("1", 130)}
					}
				})
			},
		},
		"a receipt with another result": {
			infos,
			func(a answer) answer {
				return editList(a, func(v []any) []any { v[0].(map[string]any)["result"] = "FAILED"; return v })
			},
		},
		"no receipts": {infos, func(answer) answer { return ok("[]") }},
	} {
		p := newProxy(t, h.TronNode)
		d := h.driver(t, viaNodes(p.URL))
		p.intercept(func(path string, ask func() answer) answer {
			a := ask()
			if path == lie.path {
				a = lie.f(a)
			}

			return a
		})

		if _, err := d.Transaction(t.Context(), signed.TxHash); !errors.Is(err, fault.Unavailable) {
			t.Errorf("%s: Transaction: %v", name, err)
		}

		status, err := d.Status(t.Context(), signed)
		if !errors.Is(err, fault.Unavailable) || status.State != "" {
			t.Errorf("%s: Status: %+v, %v", name, status, err)
		}

		all := h.driver(t, viaNodes(p.URL, h.URL, h.URL))
		if status, err := all.Status(t.Context(), signed); err != nil || status.State != chain.TxIncluded {
			t.Errorf("%s, beside honest nodes: %+v, %v", name, status, err)
		}
	}
}

// Blocks say who signed, failed transactions included.
func TestBlocksSayWhoSigned(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from := h.wallet(100)
	h.mine(1)

	paid := h.sign(h.order(from, h.native, h.wallet(1).Address, 1_000_000))
	h.must(h.d.Broadcast(t.Context(), paid))
	failing, err := h.PayFailing(t.Context(), h.stranger(), h.usdt, chain.Units(1_000_000))
	h.must(err)
	h.mine(1)

	head, err := h.d.Head(t.Context())
	h.must(err)
	blocks, err := h.d.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
	h.must(err)

	want := []chain.Spend{
		{Sender: from.Address, By: paid.TxHash, Shared: true},
		{Sender: chain.Address(addressOf(t, outsider)), By: failing, Shared: true, Failed: true},
	}
	if got := blocks[0]; !slices.Equal(got.Spent, want) || got.Unverified != "" {
		t.Errorf("%+v (%q), want %+v", got.Spent, got.Unverified, want)
	}
}

// A header or transaction may have fields that came with an upgrade of the network: the block is read on.
func TestUnknownFieldsAreUnverified(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	_, err := h.Pay(t.Context(), h.stranger(), h.usdt, chain.Units(1_000_000))
	h.must(err)
	h.mine(1)

	header := func(v map[string]any) map[string]any {
		return blockIn(v)["block_header"].(map[string]any)["raw_data"].(map[string]any)
	}
	result := func(v map[string]any) map[string]any {
		tx := blockIn(v)["transactions"].([]any)[0].(map[string]any)
		return tx["ret"].([]any)[0].(map[string]any)
	}
	drop := strings.Repeat("1", 64)

	for name, c := range map[string]struct {
		f    func(v map[string]any)
		want string
	}{
		"a header's field": {
			func(v map[string]any) { header(v)["shard"], header(v)["version"] = 1, 99 },
			"unknown header fields",
		},
		"a field that the id does not cover": {func(v map[string]any) { header(v)["note"] = "x" }, ""},
		"a result's field": {
			func(v map[string]any) { result(v)["gas"], result(v)["fee"] = 1, 7 },
			"unknown transaction fields",
		},
		"a result's code": {
			func(v map[string]any) { result(v)["ret"] = "MAYBE" },
			"unknown transaction fields",
		},
		"a transaction's field, and another root": {
			func(v map[string]any) {
				blockIn(v)["transactions"].([]any)[0].(map[string]any)["zk"] = 1
				header(v)["zk"], header(v)["txTrieRoot"] = 1, drop
			}, "unknown header fields",
		},
	} {
		p := newProxy(t, h.TronNode)
		d := h.driver(t, viaNodes(p.URL))
		p.intercept(func(path string, ask func() answer) answer {
			a := ask()
			if path == "/wallet/getblockbylimitnext" {
				a = edit(a, c.f)
			}

			return a
		})

		head, err := h.d.Head(t.Context())
		h.must(err)

		blocks, err := d.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
		if err != nil || blocks[0].Unverified != c.want || len(blocks[0].Transfers) != 1 {
			t.Errorf("%s: %+v, %v; want %q", name, blocks, err, c.want)
		}
	}
}

func TestABlockIsConfirmedByAnotherNode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(5)

	head, err := h.d.Head(t.Context())
	h.must(err)

	at := head.Tip
	agreed := func(d chain.Agreed, at chain.Ref) error {
		_, err := d.AgreedBlock(t.Context(), at, nil)
		return err
	}

	h.must(agreed(h.d, at)) // one node alone

	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(h.URL, p.URL))
	h.must(agreed(d, at))

	other, err := h.d.RefAt(t.Context(), at.Height-1)
	h.must(err)

	wantFault(
		t, agreed(d, chain.Ref{Height: at.Height, Hash: other.Hash}),
		fault.NotFound, "block_unknown",
	)
	wantFault(
		t, agreed(d, chain.Ref{Height: at.Height + 9, Hash: at.Hash}),
		fault.Unavailable, "nodes_missing",
	)
	p.intercept(func(string, func() answer) answer { return answer{status: http.StatusBadGateway} })
	wantFault(t, agreed(d, at), fault.Unavailable, "nodes_missing")
}
