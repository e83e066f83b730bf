//go:build unix

package checkout_test

// A wallet on an Ethereum development node that makes blocks on request only.

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// tokenWallet sends tokens of one contract by accounts that the node has the keys of.
type tokenWallet struct {
	client   *rpc.Client
	token    abi.ABI
	contract common.Address
}

// The accounts: one has all the tokens, the other none.
var (
	rich = common.HexToAddress(testenv.WellKnownDevAccounts[0].Address)
	poor = common.HexToAddress(testenv.WellKnownDevAccounts[1].Address)
)

// newTokenWallet creates a token on the node and a wallet that has plenty of it.
func newTokenWallet(t *testing.T, url string) (*tokenWallet, chain.Asset) {
	t.Helper()

	client, err := rpc.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	w := &tokenWallet{client: client}
	if w.token, err = abi.JSON(strings.NewReader(contracts.TestERC20.ABI)); err != nil {
		t.Fatal(err)
	}

	args, err := w.token.Pack("", "Test Dollar", "USDC", uint8(6))
	if err != nil {
		t.Fatal(err)
	}

	hash, err := w.submit(
		t.Context(), rich, nil, append(common.FromHex(contracts.TestERC20.Bytecode), args...),
	)
	if err != nil {
		t.Fatal(err)
	}

	if w.contract, _, err = w.include(t.Context(), hash); err != nil {
		t.Fatal(err)
	}

	mint, err := w.token.Pack("mint", rich, chain.Pow10(15).Big())
	if err != nil {
		t.Fatal(err)
	}

	if hash, err = w.submit(t.Context(), rich, &w.contract, mint); err != nil {
		t.Fatal(err)
	}

	if _, ok, err := w.include(t.Context(), hash); err != nil || !ok {
		t.Fatalf("nothing was minted: %v", err)
	}

	return w, chain.Asset{
		Symbol:    "USDC",
		Name:      "Test Dollar",
		Kind:      chain.Token,
		Contract:  chain.Address(w.contract.Hex()),
		Decimals:  6,
		MinAmount: chain.Pow10(4),
	}
}

// submit hands in a transaction and returns its hash; to nobody, it creates a contract. Gas is
// given, so that the node takes what will fail as well.
func (w *tokenWallet) submit(
	ctx context.Context,
	from common.Address,
	to *common.Address,
	data []byte,
) (string, error) {
	tx := map[string]any{"from": from, "data": hexutil.Encode(data), "gas": hexutil.Uint64(3_000_000)}
	if to != nil {
		tx["to"] = to
	}

	var hash string

	return hash, w.client.CallContext(ctx, &hash, "eth_sendTransaction", tx)
}

// include makes a block and returns the contract that a transaction in it created, if any, and
// whether it succeeded.
func (w *tokenWallet) include(ctx context.Context, hash string) (common.Address, bool, error) {
	if err := w.mine(ctx); err != nil {
		return common.Address{}, false, err
	}

	var receipt *struct {
		ContractAddress *common.Address // null unless it created one
		Status          hexutil.Uint64
	}
	if err := w.client.CallContext(ctx, &receipt, "eth_getTransactionReceipt", hash); err != nil {
		return common.Address{}, false, err
	}

	if receipt == nil {
		return common.Address{}, false, fmt.Errorf("transaction %s is in no block", hash)
	}

	var created common.Address
	if receipt.ContractAddress != nil {
		created = *receipt.ContractAddress
	}

	return created, receipt.Status == 1, nil
}

func (w *tokenWallet) transfer(
	ctx context.Context,
	from common.Address,
	to chain.Address,
	amount chain.Amount,
) (string, error) {
	data, err := w.token.Pack("transfer", common.HexToAddress(string(to)), amount.Big())
	if err != nil {
		return "", err
	}

	return w.submit(ctx, from, &w.contract, data)
}

func (w *tokenWallet) send(ctx context.Context, to chain.Address, amount chain.Amount) (string, error) {
	return w.transfer(ctx, rich, to, amount)
}

func (w *tokenWallet) sendFailing(
	ctx context.Context,
	to chain.Address,
	amount chain.Amount,
) (string, error) {
	hash, err := w.transfer(ctx, poor, to, amount)
	if err != nil {
		return "", err
	}

	if _, ok, err := w.include(ctx, hash); err != nil || ok {
		return "", fmt.Errorf("a transfer of what nobody has went through, or not even into a block: %w", err)
	}

	return hash, nil
}

func (w *tokenWallet) mine(ctx context.Context) error {
	return w.client.CallContext(ctx, nil, "evm_mine")
}

func (w *tokenWallet) balance(ctx context.Context, of chain.Address) (chain.Amount, error) {
	data, err := w.token.Pack("balanceOf", common.HexToAddress(string(of)))
	if err != nil {
		return chain.Amount{}, err
	}

	var out hexutil.Bytes
	if err := w.client.CallContext(
		ctx, &out, "eth_call", map[string]any{"to": w.contract, "data": hexutil.Encode(data)},
		"latest",
	); err != nil {
		return chain.Amount{}, err
	}

	return chain.AmountFromBig(new(big.Int).SetBytes(out))
}
