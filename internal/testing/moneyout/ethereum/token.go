package ethereum

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// The first four bytes of the hash of a function's signature (Ethereum contract ABI specification).
var (
	mintSelector      = []byte{0x40, 0xc1, 0x0f, 0x19} // mint(address,uint256)
	balanceOfSelector = []byte{0x70, 0xa0, 0x82, 0x31} // balanceOf(address)
)

// DeployToken makes a token on anvil that anybody can mint, with 6 decimals.
func DeployToken(t testing.TB, url string) chain.Asset {
	t.Helper()

	node, err := rpc.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()

	hash, err := sendFromDev(t.Context(), node, map[string]string{"data": contracts.USDTLike.Bytecode})
	if err != nil {
		t.Fatalf("deploying a token: %v", err)
	}

	var receipt struct{ ContractAddress common.Address }
	if err := node.CallContext(
		t.Context(), &receipt, "eth_getTransactionReceipt", hash,
	); err != nil ||
		receipt.ContractAddress == (common.Address{}) {
		t.Fatalf("deploying a token: %+v, %v", receipt, err)
	}

	return chain.Asset{
		Symbol:    "USDC",
		Name:      "USD Coin",
		Kind:      chain.Token,
		Contract:  chain.Address(receipt.ContractAddress.Hex()),
		Decimals:  6,
		MinAmount: chain.Units(1),
	}
}

// sendFromDev makes a transaction of an account that anvil signs for, in a block of its own.
func sendFromDev(ctx context.Context, node *rpc.Client, tx map[string]string) (hash common.Hash, err error) {
	tx["from"] = testenv.WellKnownDevAccounts[0].Address
	if err := node.CallContext(ctx, &hash, "eth_sendTransaction", tx); err != nil {
		return hash, err
	}

	return hash, node.CallContext(ctx, nil, "evm_mine")
}

// Mint gives an address units of a token that DeployToken made.
func (w *Harness) Mint(token chain.Asset, to chain.Address, amount chain.Amount) {
	w.t.Helper()

	units := amount.Bytes32()

	data := append(
		append([]byte{}, mintSelector...),
		common.LeftPadBytes(common.HexToAddress(string(to)).Bytes(), 32)...)
	_, err := sendFromDev(
		w.t.Context(), w.Node,
		map[string]string{"to": string(token.Contract), "data": hexutil.Encode(append(data, units[:]...))},
	)
	w.Must(err)
}

// TokenBalance is what an address holds of a token.
func (w *Harness) TokenBalance(token chain.Asset, of chain.Address) chain.Amount {
	w.t.Helper()

	data := append(
		append([]byte{}, balanceOfSelector...),
		common.LeftPadBytes(common.HexToAddress(string(of)).Bytes(), 32)...)

	var word hexutil.Bytes
	w.Call(
		&word, "eth_call",
		map[string]string{"to": string(token.Contract), "data": hexutil.Encode(data)}, "latest",
	)
	held, err := chain.AmountFromBig(new(big.Int).SetBytes(word))
	w.Must(err)

	return held
}
