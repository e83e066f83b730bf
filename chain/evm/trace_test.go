//go:build unix

package evm_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// Internal transfers by contracts need traces and are numbered in call order.
func TestRealInternalTransfersByTraces(t *testing.T) {
	n := usdtNode(t)

	code, err := hexutil.Decode(contracts.Forwarder.Bytecode)
	if err != nil {
		t.Fatal(err)
	}

	forwarder := n.deploy(t, code)

	parsed, err := abi.JSON(strings.NewReader(contracts.Forwarder.ABI))
	if err != nil {
		t.Fatal(err)
	}

	to := []common.Address{newRandomAddress(), newRandomAddress(), newRandomAddress()}

	input, err := parsed.Pack("forwardMany", to, []*big.Int{big.NewInt(5), big.NewInt(0), big.NewInt(7)})
	if err != nil {
		t.Fatal(err)
	}

	var hash common.Hash
	if err := n.call(t.Context(), &hash, "eth_sendTransaction", map[string]any{
		"from":  testenv.WellKnownDevAccounts[0].Address,
		"to":    forwarder,
		"value": "0xc",
		"data":  hexutil.Bytes(input),
		"gas":   hexutil.Uint64(1_000_000),
	}); err != nil {
		t.Fatal(err)
	}

	if err := n.Mine(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	for traces, want := range map[bool]int{false: 1, true: 3} {
		found, err := n.driver(t, func(c *evm.Config) { c.Traces = traces }).
			Transaction(t.Context(), hash.Hex())
		if err != nil || len(found.Transfers) != want {
			t.Fatalf("traces %v: %+v, %v", traces, found, err)
		}

		if !traces {
			continue
		}

		for i, paid := range []chain.Transfer{
			{Index: 1 << 20, To: chain.Address(to[0].Hex()), Amount: chain.Units(5)},
			{Index: 1<<20 + 1, To: chain.Address(to[2].Hex()), Amount: chain.Units(7)},
		} {
			got := found.Transfers[i+1]
			if got.Index != paid.Index || got.To != paid.To || got.Amount != paid.Amount ||
				got.From != chain.Address(forwarder.Hex()) ||
				got.TxHash != hash.Hex() {
				t.Errorf("internal transfer %d is %+v, want %+v", i, got, paid)
			}
		}
	}
}
