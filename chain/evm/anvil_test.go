//go:build unix

package evm_test

// The controls of a real node (anvil) for conformance.TestDriver and the tests beside it.

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// node is an anvil that mines on request, with one token deployed.
type node struct {
	url   string
	rpc   *rpc.Client
	abi   abi.ABI
	token common.Address
	asset chain.Asset
	// balancesSlot is the storage slot of the token's balance mapping.
	balancesSlot uint64
}

func startNode(t *testing.T, contract contracts.Contract, asset chain.Asset, args ...any) *node {
	t.Helper()
	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 2, Args: []string{"--no-mining"}})

	client, err := rpc.DialContext(t.Context(), anvil.URL)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	n := &node{url: anvil.URL, rpc: client, asset: asset}
	if n.abi, err = abi.JSON(strings.NewReader(contract.ABI)); err != nil {
		t.Fatal(err)
	}

	code, err := hexutil.Decode(contract.Bytecode)
	if err != nil {
		t.Fatal(err)
	}

	input, err := n.abi.Pack("", args...)
	if err != nil {
		t.Fatal(err)
	}

	n.token = n.deploy(t, append(code, input...))

	n.asset.Contract = chain.Address(n.token.Hex())
	if err := n.Mine(t.Context(), 8); err != nil { // past the first safe and final blocks
		t.Fatal(err)
	}

	return n
}

func usdtNode(t *testing.T) *node {
	n := startNode(t, contracts.USDTLike, chain.Asset{Symbol: "USDT", Kind: chain.Token, Decimals: 6})
	n.balancesSlot = n.findBalancesSlot(t)

	return n
}

func (n *node) call(ctx context.Context, result any, method string, args ...any) error {
	if err := n.rpc.CallContext(ctx, result, method, args...); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}

	return nil
}

func (n *node) deploy(t *testing.T, code []byte) common.Address {
	t.Helper()

	var hash common.Hash

	err := n.call(t.Context(), &hash, "eth_sendTransaction", map[string]any{
		"from": testenv.WellKnownDevAccounts[0].Address,
		"data": hexutil.Bytes(code),
		"gas":  hexutil.Uint64(5_000_000),
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := n.Mine(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	var receipt struct {
		ContractAddress *common.Address `json:"contractAddress"`
		Status          hexutil.Uint64  `json:"status"`
	}
	if err := n.call(t.Context(), &receipt, "eth_getTransactionReceipt", hash); err != nil {
		t.Fatal(err)
	}

	if receipt.ContractAddress == nil || receipt.Status != 1 {
		t.Fatalf("the contract was not deployed: %+v", receipt)
	}

	return *receipt.ContractAddress
}

// findBalancesSlot returns the storage slot of the token's balances by searching for a minted one.
func (n *node) findBalancesSlot(t *testing.T) uint64 {
	t.Helper()

	owner := newRandomAddress()
	if err := n.mint(t.Context(), owner, big.NewInt(12345)); err != nil {
		t.Fatal(err)
	}

	if err := n.Mine(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	for slot := range uint64(12) {
		var word common.Hash

		err := n.call(t.Context(), &word, "eth_getStorageAt", n.token, mappingSlot(owner, slot), "latest")
		if err != nil {
			t.Fatal(err)
		}

		if word.Big().Int64() == 12345 {
			return slot
		}
	}

	t.Fatal("the token keeps its balances where they were not looked for")

	return 0
}

// mappingSlot returns the slot in which Solidity stores the value of an address key of the mapping at a slot.
func mappingSlot(key common.Address, slot uint64) common.Hash {
	at := chain.Units(slot).Bytes32()
	return crypto.Keccak256Hash(common.LeftPadBytes(key[:], 32), at[:])
}

func (n *node) mint(ctx context.Context, to common.Address, amount *big.Int) error {
	input, err := n.abi.Pack("mint", to, amount)
	if err != nil {
		return err
	}

	return n.call(ctx, new(common.Hash), "eth_sendTransaction", map[string]any{
		"from": testenv.WellKnownDevAccounts[0].Address,
		"to":   n.token,
		"data": hexutil.Bytes(input),
		"gas":  hexutil.Uint64(200_000),
	})
}

func (n *node) Mine(ctx context.Context, blocks int) error {
	return n.call(ctx, nil, "anvil_mine", hexutil.Uint64(blocks))
}

func (n *node) config() evm.Config {
	return evm.Config{Network: evm.Local(testenv.DefaultChainID, n.asset), RPC: n.url}
}

func (n *node) driver(t *testing.T, change ...func(*evm.Config)) *evm.Driver {
	t.Helper()

	c := n.config()
	for _, apply := range change {
		apply(&c)
	}

	driver, err := evm.NewDriver(c)
	if err != nil {
		t.Fatal(err)
	}

	return driver
}

// controls sends payments to the driver's addresses, each from an account of its own: a fork that
// drops one does not change the nonces of the others.
type controls struct {
	*node
	payers []*ecdsa.PrivateKey // funded with coin and token before the test began
}

const payersPerTest = 20

func newControls(t *testing.T, n *node) *controls {
	t.Helper()

	c := &controls{node: n}

	for range payersPerTest {
		key, err := crypto.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}

		c.payers = append(c.payers, key)

		owner := crypto.PubkeyToAddress(key.PublicKey)
		balance := hexutil.EncodeBig(eth(10_000))

		if err := n.call(t.Context(), nil, "anvil_setBalance", owner, balance); err != nil {
			t.Fatal(err)
		}

		if err := n.mint(t.Context(), owner, eth(1)); err != nil {
			t.Fatal(err)
		}
	}

	if err := n.Mine(t.Context(), 4); err != nil { // deeper than any fork of the suite
		t.Fatal(err)
	}

	return c
}

func eth(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e18)) }

func newRandomAddress() common.Address {
	var a common.Address

	_, _ = rand.Read(a[:])

	return a
}

func (c *controls) NewAddress(context.Context) (chain.Address, error) {
	return chain.Address(newRandomAddress().Hex()), nil
}

func (c *controls) Settle(context.Context) error { return nil }

func (c *controls) Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error {
	if asset.Kind == chain.Token {
		if err := c.mint(ctx, common.HexToAddress(string(to)), amount.Big()); err != nil {
			return err
		}

		return c.Mine(ctx, 1)
	}

	if _, err := c.Pay(ctx, to, asset, amount); err != nil {
		return err
	}

	return c.Mine(ctx, 1)
}

func (c *controls) Pay(
	ctx context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	if asset.Kind == chain.Native {
		return c.send(ctx, common.HexToAddress(string(to)), amount.Big(), nil)
	}

	input, err := c.abi.Pack("transfer", common.HexToAddress(string(to)), amount.Big())
	if err != nil {
		return "", err
	}

	return c.send(ctx, c.token, new(big.Int), input)
}

func (c *controls) PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (string, error) {
	return c.Pay(ctx, to, asset, chain.Amount{})
}

// PayFailing pays coin to a destination that refuses it, or more tokens than the payer has.
func (c *controls) PayFailing(
	ctx context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	if asset.Kind == chain.Token {
		return c.Pay(ctx, to, asset, chain.MustAmount(new(big.Int).Lsh(big.NewInt(1), 200).String()))
	}

	if err := c.Freeze(ctx, to, asset); err != nil {
		return "", err
	}

	return c.Pay(ctx, to, asset, amount)
}

// revertingCode refuses every call: PUSH1 0 PUSH1 0 REVERT.
const revertingCode = "0x60006000fd"

// Freeze makes the address a contract that refuses coin, or sets its token balance to the maximum.
func (c *controls) Freeze(ctx context.Context, address chain.Address, asset chain.Asset) error {
	to := common.HexToAddress(string(address))
	if asset.Kind == chain.Native {
		return c.call(ctx, nil, "anvil_setCode", to, revertingCode)
	}

	most := common.HexToHash("0x" + strings.Repeat("f", 64))

	return c.call(ctx, nil, "anvil_setStorageAt", c.token, mappingSlot(to, c.balancesSlot), most)
}

// Fork replaces the newest blocks: anvil_reorg makes as many as it removes, so one more is mined.
func (c *controls) Fork(ctx context.Context, depth int, keep ...string) error {
	txs := make([][2]any, 0, len(keep))
	for _, hash := range keep {
		var raw hexutil.Bytes
		if err := c.call(ctx, &raw, "eth_getRawTransactionByHash", hash); err != nil {
			return err
		}

		txs = append(txs, [2]any{raw, 0})
	}

	// Another miner makes other blocks of the same transactions at the same time.
	if err := c.call(ctx, nil, "anvil_setCoinbase", newRandomAddress()); err != nil {
		return err
	}

	if err := c.call(ctx, nil, "anvil_reorg", depth, txs); err != nil {
		return err
	}

	return c.Mine(ctx, 1)
}

// send pays from the next payer with a fixed gas limit, so that failing transactions are sent too.
func (c *controls) send(
	ctx context.Context,
	to common.Address,
	value *big.Int,
	input []byte,
) (string, error) {
	if len(c.payers) == 0 {
		return "", errors.New("the test pays more often than there are payers: raise payersPerTest")
	}

	key := c.payers[0]
	c.payers = c.payers[1:]
	id := big.NewInt(testenv.DefaultChainID)

	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID:   id,
		GasTipCap: big.NewInt(1e9),
		GasFeeCap: big.NewInt(100e9),
		Gas:       150_000,
		To:        &to,
		Value:     value,
		Data:      input,
	})
	if err != nil {
		return "", err
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		return "", err
	}

	var hash common.Hash
	if err := c.call(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw)); err != nil {
		return "", err
	}

	return hash.Hex(), nil
}

// freshSigner returns a signer with unused keys.
func freshSigner(t *testing.T) *hdkey.Signer {
	t.Helper()

	mnemonic, err := hdkey.NewMnemonic(rand.Reader, 128)
	if err != nil {
		t.Fatal(err)
	}

	signer, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	return signer
}
