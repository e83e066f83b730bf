//go:build unix

package solana_test

// A node that hides what arrives at an address: its history leaves the payments out, and its balance agrees.

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// hide has a node in front of another one show accounts as they are now, whatever arrives later.
func (f *faultyNode) hide(t *testing.T, n *node, accounts ...chain.Address) {
	t.Helper()

	var now struct{ Value []any }

	must(t, n.Call(&now, "getMultipleAccounts", accounts, map[string]any{
		"commitment": "confirmed",
		"encoding":   "base64",
	}))

	known := map[string]string{}

	for _, account := range accounts {
		var listed []any
		must(
			t,
			n.Call(&listed, "getSignaturesForAddress", account, map[string]any{"commitment": "confirmed"}),
		)

		known[string(account)] = fmt.Sprint(listed)
	}

	f.set(func(method string, params []any, result any) (any, int) {
		switch method {
		case "getMultipleAccounts":
			for i, key := range params[0].([]any) {
				if at := slices.Index(accounts, chain.Address(key.(string))); at >= 0 {
					result.(map[string]any)["value"].([]any)[i] = now.Value[at]
				}
			}
		case "getSignaturesForAddress":
			if before, ok := known[params[0].(string)]; ok {
				return slices.DeleteFunc(result.([]any), func(entry any) bool {
					return !strings.Contains(before, entry.(map[string]any)["signature"].(string))
				}), 0
			}
		}

		return result, 0
	})
}

// What a node left out of a history while the cursor moved on is read once another node says what the account holds.
func TestHistoryIsReadBelowTheCursorWhereMoreArrived(t *testing.T) {
	down := func(string, []any, any) (any, int) { return nil, http.StatusBadGateway }

	for _, c := range []struct {
		name           string
		before, hidden int  // payments
		tokens, later  bool // later is a payment above the cursor, after the hidden ones
		ranged         bool // the end is read as a range meanwhile
		then           func(method string, params []any, result any) (any, int)
	}{
		{name: "the node tells the truth later", before: 1, hidden: 1},
		{name: "the node fails later", before: 1, hidden: 1, then: down},
		{name: "the first payments", hidden: 2, then: down},
		{name: "below another payment", before: 2, hidden: 3, later: true, then: down},
		{name: "and a range above them is read", before: 1, hidden: 1, ranged: true},
		{name: "tokens", before: 1, hidden: 2, tokens: true, then: down},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, solanago.TokenProgramID)
			liar := newFaultyNode(t, n)
			to, asset := newAddress(t), nativeAsset
			account := to

			if c.tokens {
				owner := solanago.MustPublicKeyFromBase58(string(to))
				asset, account = n.asset, chain.Address(n.accountOf(owner).String())
			}

			d := n.driver(t, func(config *solana.Config) {
				config.RPC, config.RPCs = liar.URL, []string{n.URL}
			}).Histories()
			f := newFollowed(t, d, to)

			pay := func(count int) (hashes []string) {
				for range count {
					hashes = append(hashes, n.pay(t, to, asset, 1_000_000))
					must(t, n.SolanaNode.Mine(1))
				}

				f.steps(10)

				return hashes
			}

			f.steps(10)

			before := pay(c.before)
			f.wants(to, before...)

			rest := func() { // until the account is not read again for its own sake
				for range 4 {
					must(t, n.SolanaNode.Mine(200))
					f.steps(10)
				}
			}

			rest()
			liar.hide(t, n, slices.Compact([]chain.Address{to, account})...)

			hidden := pay(c.hidden)

			rest()

			if len(f.seen) != c.before {
				t.Fatalf("%d payments are stored, so the test shows nothing", len(f.seen))
			}

			liar.set(c.then)

			var later []string
			if c.later {
				later = pay(1)
			}

			must(t, n.SolanaNode.Mine(1))

			if c.ranged {
				head, err := d.Head(t.Context())
				must(t, err)
				_, err = d.TransfersTo(t.Context(), []chain.Address{to}, head.Tip.Height, head.Tip.Height)
				must(t, err)
			}

			f.steps(30)
			f.wants(to, slices.Concat(hidden, later)...)

			for key, moved := range f.seen {
				payer := chain.Address(n.authority.PublicKey().String())
				if moved.Amount != chain.Units(1_000_000) || moved.From != payer && !c.tokens {
					t.Errorf("%s is stored as %+v", key, moved)
				}
			}
		})
	}
}

// While nodes say different balances each of them is asked for histories: what only one shows is seen, and waits for
// another to show it too.
func TestNodesThatDifferAreReadInTurn(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	liar := newFaultyNode(t, n)
	to := newAddress(t)

	d := n.driver(t, func(config *solana.Config) {
		config.RPC, config.RPCs = liar.URL, []string{n.URL}
	}).Histories()
	f := newFollowed(t, d, to)

	f.steps(10)
	liar.hide(t, n, to)

	hash := n.pay(t, to, nativeAsset, 1_000_000)
	must(t, n.SolanaNode.Mine(1))
	f.steps(10)

	if len(f.seen) > 0 {
		t.Fatal("the payment was not hidden, so the test shows nothing")
	}

	native, _ := d.Network().Native()
	holding := chain.Holding{Address: to, AssetID: native.ID}

	_, err := d.Balances(t.Context(), f.cursor.At, []chain.Holding{holding})
	if unreadable, ok := errors.AsType[*chain.UnreadableError](err); !ok || len(unreadable.Holdings) != 1 {
		t.Fatalf("of a balance that two nodes say differently: %v", err)
	}

	must(t, n.SolanaNode.Mine(1))
	f.steps(10)
	f.wants(to, hash)
}
