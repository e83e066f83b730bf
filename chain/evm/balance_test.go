package evm_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

// A token whose balanceOf fails is named, and the balances beside it are read.
func TestOneFailingContractFailsAlone(t *testing.T) {
	cases := map[string]any{
		"reverts":              rpcError{3, "execution reverted"},
		"runs out of gas":      rpcError{-32000, "out of gas"},
		"has an invalid code":  rpcError{-32000, "invalid opcode: INVALID"},
		"is no contract":       "0x",
		"answers half a word":  "0x00000000000000000000000000000001",
		"answers three words":  "0x" + strings.Repeat("00", 96),
		"reverts, says Parity": rpcError{-32015, "VM execution error."},
	}

	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(5)
			n.answer = func(c rpcCall) (any, bool) { return answer, c.Method == "eth_call" }
			driver := driverOf(t, n)
			head, native, token := balanceHoldings(t, driver)

			amounts, err := driver.Balances(t.Context(), head, []chain.Holding{native, token, native})

			unreadable, ok := errors.AsType[*chain.UnreadableError](err)
			if !ok || !errors.Is(err, fault.Unavailable) {
				t.Fatalf("Balances returns %v; want an UnreadableError that is fault.Unavailable", err)
			}

			if len(unreadable.Holdings) != 1 || unreadable.Holdings[0].Holding != token ||
				unreadable.Holdings[0].Index != 1 || unreadable.Holdings[0].Err == nil {
				t.Errorf("it names %+v; want the second holding with its error", unreadable.Holdings)
			}

			want := []chain.Amount{chain.Pow10(18), {}, chain.Pow10(18)}
			for i := range want {
				if len(amounts) != 3 || amounts[i] != want[i] {
					t.Fatalf("the balances are %v; want %v", amounts, want)
				}
			}
		})
	}
}

// What says nothing about the contract fails the whole call: another node may know better.
func TestNodeFailureIsNoContractFailure(t *testing.T) {
	for name, answer := range map[string]any{
		"block unknown":  rpcError{-32000, "header not found"},
		"internal error": rpcError{-32603, "internal error"},
		"null":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode(5)
			n.answer = func(c rpcCall) (any, bool) { return answer, c.Method == "eth_call" }
			driver := driverOf(t, n)
			head, native, token := balanceHoldings(t, driver)

			amounts, err := driver.Balances(t.Context(), head, []chain.Holding{native, token})
			if _, ok := errors.AsType[*chain.UnreadableError](err); err == nil || ok || amounts != nil {
				t.Errorf("Balances returns %v, %v; want an error for all", amounts, err)
			}
		})
	}
}

// balanceHoldings returns the node's tip and, of one address, its native coin and its token.
func balanceHoldings(t *testing.T, driver *evm.Driver) (tip chain.Ref, native, token chain.Holding) {
	t.Helper()

	head, err := driver.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, asset := range driver.Network().Assets {
		holding := chain.Holding{Address: chain.Address(payee.Hex()), AssetID: asset.ID}
		if asset.Kind == chain.Native {
			native = holding
		} else {
			token = holding
		}
	}

	if token.AssetID == "" {
		t.Fatal("the driver has no token")
	}

	return head.Tip, native, token
}

// No block proves a balance: it is what two nodes say, where more than one is configured. What one says alone is named.
func TestBalanceIsWhatTwoNodesSay(t *testing.T) {
	says := func(coins uint64) *fakeNode {
		n := newFakeNode(5)
		n.answer = func(c rpcCall) (any, bool) {
			return hexutil.EncodeBig(new(big.Int).SetUint64(coins)), c.Method == "eth_getBalance"
		}

		return n
	}
	silent := newFakeNode(5)
	silent.answer = func(c rpcCall) (any, bool) {
		return rpcError{-32000, "missing trie node"}, c.Method == "eth_getBalance"
	}

	const disputed, unshared = "nodes_disagree", "nodes_missing"

	cases := map[string]struct {
		nodes []*fakeNode
		want  uint64
		code  string
	}{
		"one node":                      {[]*fakeNode{says(7)}, 7, ""},
		"two that agree":                {[]*fakeNode{says(7), says(7)}, 7, ""},
		"two that do not":               {[]*fakeNode{says(7), says(8)}, 0, disputed},
		"three, the first alone":        {[]*fakeNode{says(7), says(8), says(8)}, 8, ""},
		"three, the second alone":       {[]*fakeNode{says(7), says(8), says(7)}, 7, ""},
		"three that all differ":         {[]*fakeNode{says(7), says(8), says(9)}, 0, disputed},
		"a second that has no balances": {[]*fakeNode{says(7), silent}, 7, unshared},
		"a first that has no balances":  {[]*fakeNode{silent, says(7)}, 7, unshared},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			transport, hosts := fakeTransport{}, []string{}

			for i, n := range c.nodes {
				hosts = append(hosts, string(rune('a'+i)))
				transport[hosts[i]] = n
			}

			driver := fakeDriver(t, transport, hosts)
			head, native, token := balanceHoldings(t, driver)

			amounts, err := driver.Balances(t.Context(), head, []chain.Holding{token, native})

			unreadable, named := errors.AsType[*chain.UnreadableError](err)
			if named != (c.code != "") || err != nil && !named {
				t.Fatalf("Balances returns %v", err)
			}

			// A node that has no balances has none of the token either.
			if named {
				last := unreadable.Holdings[len(unreadable.Holdings)-1]
				if last.Holding != native || last.Index != 1 || fault.Code(last.Err) != c.code ||
					(len(unreadable.Holdings) == 1) != (c.code == disputed) {
					t.Errorf("it names %+v", unreadable.Holdings)
				}
			}

			if len(amounts) != 2 || amounts[1] != chain.Units(c.want) || amounts[0].IsZero() {
				t.Errorf("the balances are %v; want that of the token and %d", amounts, c.want)
			}
		})
	}
}
