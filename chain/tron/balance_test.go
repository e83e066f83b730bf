//go:build unix

package tron_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// A token whose contract answers no number is named, and the balances beside it are read.
func TestOneFailingContractFailsAlone(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	owner := h.wallet(7)
	h.mine(2)

	bad := chain.Asset{Symbol: "BAD", Kind: chain.Token, Contract: chain.Address(h.forwarder), Decimals: 6}
	d := h.driver(t, func(c *tron.Config) { c.Tokens = []chain.Asset{bad} })
	bad, _ = d.Network().Asset("BAD")
	head, err := d.Head(t.Context())
	h.must(err)

	native := chain.Holding{Address: owner.Address, AssetID: h.native.ID}
	holding := chain.Holding{Address: owner.Address, AssetID: bad.ID}
	amounts, err := d.Balances(t.Context(), head.Tip, []chain.Holding{native, holding, native})

	unreadable, ok := errors.AsType[*chain.UnreadableError](err)
	if !ok || !errors.Is(err, fault.Unavailable) || len(unreadable.Holdings) != 1 ||
		unreadable.Holdings[0].Holding != holding || unreadable.Holdings[0].Index != 1 {
		t.Fatalf("Balances returns %v; want an UnreadableError of the second holding", err)
	}

	if len(amounts) != 3 || amounts[0] != chain.Units(7_000_000) || amounts[2] != amounts[0] {
		t.Errorf("the balances are %v; want 7 TRX, nothing, 7 TRX", amounts)
	}
}

// A block that is solidified between two groups of balances costs one group, not all of them.
func TestManyBalancesAreReadInGroups(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 1})
	owner := h.wallet(7)
	h.mine(2)

	var reads atomic.Int32

	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		a := ask()

		// A block is solidified every 30 balances, as a far node would show it.
		if strings.HasSuffix(path, "walletsolidity/getaccount") && reads.Add(1)%30 == 0 {
			_, err := h.Control(t.Context(), "mine", map[string]any{"blocks": 1})
			if err != nil {
				t.Error(err)
			}
		}

		return a
	})

	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) { c.Concurrency = 1 })
	head, err := d.Head(t.Context())
	h.must(err)

	holdings := make([]chain.Holding, 240)
	for i := range holdings {
		holdings[i] = chain.Holding{Address: owner.Address, AssetID: h.native.ID}
	}

	amounts, err := d.Balances(t.Context(), head.Tip, holdings)
	h.must(err)

	for i, amount := range amounts {
		if amount != chain.Units(7_000_000) {
			t.Fatalf("balance %d is %s; want 7 TRX", i, amount)
		}
	}

	if got := reads.Load(); got > 400 {
		t.Errorf("240 balances took %d requests", got)
	}
}

// A block that is solidified with each request has no balance read again that did not move, and is no fault of the
// node.
func TestBalancesAreReadWhileBlocksAreSolidified(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 4})
	mover, still := h.stranger(), h.wallet(7)
	h.must(h.Fund(t.Context(), still.Address, h.usdt, chain.Units(3_000_000)))
	h.mine(6)

	payIn := func(blocks int) {
		for range blocks {
			_, err := h.Pay(t.Context(), mover, h.native, chain.Units(1_000_000))
			if err = errors.Join(err, h.Mine(t.Context(), 1)); err != nil {
				t.Error(err)
			}
		}
	}

	payIn(4) // blocks that are solidified while balances are read

	var (
		reads, others atomic.Int32
		forever       atomic.Bool // each block moves it
		logs          bytes.Buffer
	)

	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) {
		c.Concurrency, c.Logger = 1, slog.New(slog.NewTextHandler(&logs, nil))
	})
	head, err := d.Head(t.Context())
	h.must(err)
	_, err = d.Blocks(t.Context(), head.Tip.Height-8, head.Tip.Height)
	h.must(err)

	p.intercept(func(path string, ask func() answer) answer {
		a := ask()

		switch {
		case !strings.HasPrefix(path, "/walletsolidity/"), strings.HasSuffix(path, "/getnowblock"):
			others.Add(1)
		case forever.Load():
			reads.Add(1)
			payIn(1)
		default:
			reads.Add(1)

			if err := h.Mine(t.Context(), 1); err != nil {
				t.Error(err)
			}
		}

		return a
	})

	holdings := []chain.Holding{{Address: mover, AssetID: h.native.ID}}
	want := []chain.Amount{chain.Units(4_000_000)}

	for range 4 {
		holdings = append(
			holdings,
			chain.Holding{Address: still.Address, AssetID: h.native.ID},
			chain.Holding{Address: still.Address, AssetID: h.usdt.ID},
		)
		want = append(want, chain.Units(7_000_000), chain.Units(3_000_000))
	}

	got, err := d.Balances(t.Context(), head.Tip, holdings)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}

	if reads.Load() != int32(len(holdings))+1 {
		t.Errorf("%d balances took %d requests; want one more", len(holdings), reads.Load())
	}

	t.Logf("%d requests beside %d of balances", others.Load(), reads.Load())

	payIn(5)
	forever.Store(true)

	_, err = d.Balances(t.Context(), head.Tip, holdings[:1])
	wantFault(t, err, fault.Unavailable, "balance_unreadable")

	if logs.Len() > 0 {
		t.Errorf("logged: %s", logs.String())
	}
}

// Behind one address there may be two nodes, one of which is a block behind: balances are read of both.
func TestBalancesAreReadOfANodeWithABackendThatIsBehind(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 4})
	owner, payee := h.wallet(7), h.stranger()
	h.mine(6)

	_, err := h.Pay(t.Context(), payee, h.native, chain.Units(1_000_000))
	h.must(err)
	h.mine(5) // the newest solidified block pays

	var (
		behind json.RawMessage
		looks  atomic.Int32
	)

	state := h.control("state", nil)
	h.must(h.Call(t.Context(), "/wallet/getblockbynum", map[string]uint64{"num": state.Solid - 1}, &behind))

	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		if path == "/walletsolidity/getnowblock" && looks.Add(1)%2 == 0 {
			return ok(string(behind))
		}

		return ask()
	})

	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) { c.Attempts = 1 })
	head, err := h.d.Head(t.Context())
	h.must(err)

	got, err := d.Balances(t.Context(), head.Tip, []chain.Holding{
		{Address: owner.Address, AssetID: h.native.ID},
		{Address: payee, AssetID: h.native.ID},
	})
	if err != nil || got[0] != chain.Units(7_000_000) || got[1] != chain.Units(1_000_000) {
		t.Errorf("%v, %v; want 7 and 1 TRX", got, err)
	}

	if looks.Load() != 3 {
		t.Errorf("it looked %d times; what moved is read once more", looks.Load())
	}
}

// Balances far before the solidified block are gone, and those far after it are not there yet.
func TestBalancesFarFromTheSolidifiedBlock(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 150})
	h.mine(300)

	head, err := h.d.Head(t.Context())
	h.must(err)
	old, err := h.d.RefAt(t.Context(), 10)
	h.must(err)

	for at, code := range map[chain.Ref]string{old: "block_too_old", head.Tip: "block_too_new"} {
		_, err := h.d.Balances(
			t.Context(),
			at,
			[]chain.Holding{{Address: h.stranger(), AssetID: h.native.ID}},
		)
		wantFault(t, err, fault.Unavailable, code)
	}
}

// That a block is too far away is what a working node answers: it is not asked for balances, nor again, it is not
// logged as failing, and it is asked the next thing at once. One node that is not that far answers for all.
func TestDistanceIsNoFailureOfANode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 150})
	h.mine(300)

	head, err := h.d.Head(t.Context())
	h.must(err)
	old, err := h.d.RefAt(t.Context(), 10)
	h.must(err)

	for at, code := range map[chain.Ref]string{old: "block_too_old", head.Tip: "block_too_new"} {
		var logs bytes.Buffer

		p, q := newProxy(t, h.TronNode), newProxy(t, h.TronNode)
		d := h.driver(t, viaNodes(p.URL, q.URL), func(c *tron.Config) {
			c.Attempts, c.Logger = 3, slog.New(slog.NewTextHandler(&logs, nil))
		})
		h.must(d.Check(t.Context()))
		_, err := d.Head(t.Context())
		h.must(err)

		before := p.requests.Load() + q.requests.Load()
		holdings := []chain.Holding{{Address: h.stranger(), AssetID: h.native.ID}}

		_, err = d.Balances(t.Context(), at, holdings)
		wantFault(t, err, fault.Unavailable, code)

		if asked := p.requests.Load() + q.requests.Load() - before; asked > 4 || logs.Len() > 0 {
			t.Errorf("%s took %d requests, logged: %s", code, asked, logs.String())
		}
	}
}

// A node that shows an old block as its solidified one does not decide alone that a block is too far from it.
func TestOneNodeDecidesNoDistance(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{SolidLag: 4})
	owner := h.wallet(7)
	h.mine(200)

	at, err := h.d.RefAt(t.Context(), 195)
	h.must(err)

	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL, h.URL))

	var early answer

	p.intercept(func(path string, ask func() answer) answer {
		if path == "/walletsolidity/getnowblock" {
			return early
		}

		return ask()
	})

	var block json.RawMessage
	h.must(h.Call(t.Context(), "/wallet/getblockbynum", map[string]int{"num": 5}, &block))
	early = ok(string(block))

	amounts, err := d.Balances(
		t.Context(),
		at,
		[]chain.Holding{{Address: owner.Address, AssetID: h.native.ID}},
	)
	if chaindata.WithoutProvisional(err) != nil || amounts[0] != chain.Units(7_000_000) {
		t.Errorf("%v, %v", amounts, err)
	}
}
