//go:build unix

package tron_test

// The fake node as the driver suite wants it.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// outsider is a well-known development key: somebody with money who is not us.
var outsider = testenv.WellKnownDevAccounts[0].Key

// plentyOfTRX is what the outsider begins with: ten billion TRX.
const plentyOfTRX = 10_000_000_000_000_000

// addressOf returns the address of a private key, or of 20 bytes in hex.
func addressOf(t testing.TB, digits string) string {
	t.Helper()

	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}

	if len(raw) == 32 {
		key, err := crypto.ToECDSA(raw)
		if err != nil {
			t.Fatal(err)
		}

		a := crypto.PubkeyToAddress(key.PublicKey)
		raw = a[:]
	}

	return toBase58(t, raw)
}

func toBase58(t testing.TB, raw []byte) string {
	t.Helper()

	d, err := tron.NewDriver(tron.Config{Network: tron.Nile, Nodes: []tron.Node{{URL: "http://127.0.0.1:1"}}})
	if err != nil {
		t.Fatal(err)
	}

	a, err := d.ParseAddress("41" + hex.EncodeToString(raw))
	if err != nil {
		t.Fatal(err)
	}

	return string(a)
}

// chainWithToken is a fake node with a token that returns false on success, as USDT on Tron, and a
// forwarder of coin.
type chainWithToken struct {
	*testenv.TronNode
	abi              abi.ABI
	forwarderABI     abi.ABI
	token, forwarder string
	strays           int // TRC-10 tokens so far
}

func parseABI(t testing.TB, c contracts.Contract) abi.ABI {
	t.Helper()

	parsed, err := abi.JSON(strings.NewReader(c.ABI))
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

func startChain(t testing.TB, o testenv.TronOptions) *chainWithToken {
	t.Helper()
	c := &chainWithToken{
		abi:          parseABI(t, contracts.FalseOnSuccess),
		forwarderABI: parseABI(t, contracts.Forwarder),
	}

	mint, err := c.abi.Pack(
		"mint", common.HexToAddress(testenv.WellKnownDevAccounts[0].Address),
		new(big.Int).Lsh(big.NewInt(1), 100),
	)
	if err != nil {
		t.Fatal(err)
	}

	o.Balances = map[string]int64{addressOf(t, outsider): plentyOfTRX}
	o.Contracts = []testenv.TronContract{
		{Bytecode: contracts.FalseOnSuccess.Bytecode, Calls: []string{hex.EncodeToString(mint)}},
		{Bytecode: contracts.Forwarder.Bytecode},
	}
	c.TronNode = testenv.Tron(t, o)
	c.token, c.forwarder = c.Contracts[0], c.Contracts[1]

	return c
}

func (c *chainWithToken) network() chain.Network {
	return tron.Private(
		c.Genesis,
		chain.Asset{
			Symbol:    "USDT",
			Kind:      chain.Token,
			Contract:  chain.Address(c.token),
			Decimals:  6,
			MinAmount: chain.Units(100_000),
		},
	)
}

func (c *chainWithToken) driver(t testing.TB, change ...func(*tron.Config)) *tron.Driver {
	t.Helper()

	config := tron.Config{Network: c.network(), Nodes: []tron.Node{{URL: c.URL}}, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&config)
	}

	d, err := tron.NewDriver(config)
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// input encodes a call of the token.
func (c *chainWithToken) input(method string, args ...any) ([]byte, error) {
	for i, a := range args {
		switch a := a.(type) {
		case chain.Address:
			args[i] = evmAddress(a)
		case chain.Amount:
			args[i] = a.Big()
		}
	}

	return c.abi.Pack(method, args...)
}

// evmAddress is a Tron address without its prefix.
func evmAddress(a chain.Address) common.Address {
	return common.HexToAddress(testenv.TronHex(string(a))[2:])
}

const energyLimit = 100_000_000 // sun; enough for everything that tests call

func (c *chainWithToken) call(
	ctx context.Context,
	to string,
	value int64,
	data []byte,
	limit int64,
) (string, error) {
	s, err := c.Send(
		ctx,
		testenv.TronPayment{PrivateKey: outsider, To: to, Amount: value, Data: data, FeeLimit: limit},
	)

	return s.TxID, err
}

func (c *chainWithToken) NewAddress(context.Context) (chain.Address, error) {
	raw := make([]byte, 20)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}

	d, err := tron.NewDriver(tron.Config{Network: c.network(), Nodes: []tron.Node{{URL: c.URL}}})
	if err != nil {
		return "", err
	}

	return d.ParseAddress("41" + hex.EncodeToString(raw))
}

func (c *chainWithToken) Fund(
	ctx context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) error {
	if _, err := c.Pay(ctx, to, a, amount); err != nil {
		return err
	}

	return c.Mine(ctx, 1)
}

func (c *chainWithToken) Pay(
	ctx context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	if a.Kind == chain.Token {
		data, err := c.input("transfer", to, amount)
		if err != nil {
			return "", err
		}

		return c.call(ctx, c.token, 0, data, energyLimit)
	}

	sun, _ := amount.Uint64()
	s, err := c.Send(ctx, testenv.TronPayment{PrivateKey: outsider, To: string(to), Amount: int64(sun)})

	return s.TxID, err
}

func (c *chainWithToken) Mine(ctx context.Context, n int) error {
	_, err := c.Control(ctx, "mine", map[string]any{"blocks": n})
	return err
}

func (c *chainWithToken) Settle(context.Context) error { return nil }

func (c *chainWithToken) Fork(ctx context.Context, depth int, keep ...string) error {
	_, err := c.Control(ctx, "fork", map[string]any{"depth": depth, "keep": keep})
	return err
}

// forward sends coin through a contract, so that it arrives by an internal call.
func (c *chainWithToken) forward(
	ctx context.Context,
	to chain.Address,
	amount chain.Amount,
	limit int64,
) (string, error) {
	data, err := c.forwarderABI.Pack("forward", evmAddress(to))
	if err != nil {
		return "", err
	}

	sun, _ := amount.Uint64()

	return c.call(ctx, c.forwarder, int64(sun), data, limit)
}

// PayZero sends no coin through a contract, since the network takes no transfer of nothing, or no tokens.
func (c *chainWithToken) PayZero(ctx context.Context, to chain.Address, a chain.Asset) (string, error) {
	if a.Kind == chain.Native {
		return c.forward(ctx, to, chain.Amount{}, energyLimit)
	}

	return c.Pay(ctx, to, a, chain.Amount{})
}

// PayFailing lets the energy for forwarding coin run out, or sends more tokens than there are.
func (c *chainWithToken) PayFailing(
	ctx context.Context,
	to chain.Address,
	a chain.Asset,
	amount chain.Amount,
) (string, error) {
	if a.Kind == chain.Native {
		return c.forward(ctx, to, amount, 500_000)
	}

	return c.Pay(ctx, to, a, chain.MustAmount(new(big.Int).Lsh(big.NewInt(1), 200).String()))
}

// balancesSlot is where the token keeps balances: totalSupply, feeBasisPoints and paused come before it.
const balancesSlot = 3

// Freeze gives the address so many tokens that one more overflows.
func (c *chainWithToken) Freeze(ctx context.Context, address chain.Address, _ chain.Asset) error {
	to := evmAddress(address)
	slot := crypto.Keccak256(common.LeftPadBytes(to[:], 32), common.LeftPadBytes([]byte{balancesSlot}, 32))
	_, err := c.Control(ctx, "storage", map[string]any{
		"address": testenv.TronHex(c.token),
		"slot":    hex.EncodeToString(slot),
		"word":    strings.Repeat("f", 64),
	})

	return err
}

// Expire lets time pass until the transaction has run out, and makes blocks after that.
func (c *chainWithToken) Expire(ctx context.Context, signed chain.Signed) error {
	s, err := c.Control(ctx, "state", nil)
	if err != nil {
		return err
	}

	_, err = c.Control(ctx, "skip", map[string]any{"millis": signed.ValidTo.UnixMilli() - s.Time + 1000})

	return err
}

// freshSigner is a signer whose keys nobody used before.
func freshSigner(t testing.TB) *hdkey.Signer {
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

// PayStray sends TRC-10 tokens to an address, which the network activates first.
func (c *chainWithToken) PayStray(
	ctx context.Context,
	to chain.Address,
	amount chain.Amount,
) (chain.Address, error) {
	native, _ := c.network().Native()
	if err := c.Fund(ctx, to, native, chain.Units(1)); err != nil {
		return "", err
	}

	c.strays++
	id := strconv.Itoa(1_005_416 + c.strays)
	units, _ := amount.Uint64()
	_, err := c.Control(ctx, "token", map[string]any{
		"address": testenv.TronHex(string(to)),
		"key":     id,
		"value":   units,
	})

	return to + "/" + chain.Address(id), err
}
