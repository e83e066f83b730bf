//go:build unix

package bitcoin_test

// The controls of a real node (bitcoind on regtest) for conformance.TestDriver and the tests beside it.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// node is a bitcoind with a wallet that holds many coins, each for one payment.
type node struct {
	*testenv.BitcoindNode
	coins []outpoint
	// pending are transactions that the pool would not take; the next block includes them.
	pending []string
}

type outpoint struct {
	Txid string `json:"txid"`
	Vout int    `json:"vout"`
}

// payerCoin is what each of a node's coins holds, in whole bitcoins: more than the suite ever pays at once.
const payerCoin = 2

func startNode(t *testing.T, o testenv.BitcoindOptions) *node {
	t.Helper()
	// of a thousand keys each by default, which takes longer than many a test
	o.Args = append(o.Args, "-keypool=10")
	n := &node{BitcoindNode: testenv.Bitcoind(t, o)}
	ctx := t.Context()
	n.must(t, n.Call(ctx, nil, "createwallet", "payer"))
	n.must(t, n.Mine(ctx, 220)) // past the 100 blocks that a reward needs, with enough rewards below

	return n
}

// withCoins splits the wallet's rewards into coins: hundreds, of which each payment takes one.
func (n *node) withCoins(t *testing.T, hundreds int) *node {
	t.Helper()
	ctx := t.Context()

	const perTx = 100

	addresses := n.walletAddresses(t, hundreds*perTx)

	for some := range slices.Chunk(addresses, perTx) {
		outputs := map[string]int{}
		for _, a := range some {
			outputs[a] = payerCoin
		}

		var txid string
		n.must(t, n.Call(ctx, &txid, "sendmany", "", outputs))

		var tx struct {
			Vout []struct {
				N     int
				Value json.Number
			}
		}
		n.must(t, n.Call(ctx, &tx, "getrawtransaction", txid, true))

		var made []outpoint

		for _, o := range tx.Vout {
			if decimal.RequireFromString(o.Value.String()).Equal(decimal.NewFromInt(payerCoin)) {
				made = append(made, outpoint{txid, o.N})
			}
		}

		// The wallet pays with other coins, the next hundreds among what it pays.
		var locked bool
		n.must(t, n.Call(ctx, &locked, "lockunspent", false, made))

		n.coins = append(n.coins, made...)
	}

	n.must(t, n.Mine(ctx, 8)) // deeper than any fork of the suite

	return n
}

// walletAddresses returns addresses of the node's wallet, those for change, which no test is given otherwise. It
// asks for all at once: the wallet waits for the disk at each that it hands out by itself.
func (n *node) walletAddresses(t *testing.T, count int) (addresses []string) {
	t.Helper()
	// The wallet knows the keys of its pool only, and signs for no other.
	n.must(t, n.Call(t.Context(), nil, "keypoolrefill", count))

	var all struct {
		Descriptors []struct {
			Desc             string
			Active, Internal bool
		}
	}
	n.must(t, n.Call(t.Context(), &all, "listdescriptors"))

	for _, d := range all.Descriptors {
		if d.Active && d.Internal && strings.HasPrefix(d.Desc, "wpkh(") {
			n.must(t, n.Call(t.Context(), &addresses, "deriveaddresses", d.Desc, []int{0, count - 1}))
		}
	}

	if len(addresses) != count {
		t.Fatalf("the wallet has %d addresses of %d", len(addresses), count)
	}

	return addresses
}

func (n *node) must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) config() bitcoin.Config {
	return bitcoin.Config{Network: bitcoin.Regtest, RPC: n.URL, Attempts: 1}
}

func (n *node) driver(t *testing.T, change ...func(*bitcoin.Config)) *bitcoin.Driver {
	t.Helper()
	return newDriver(t, n.config(), change...)
}

func (n *node) NewAddress(ctx context.Context) (chain.Address, error) {
	var a string

	err := n.Call(ctx, &a, "getnewaddress", "", "bech32")

	return chain.Address(a), err
}

// Mine makes blocks to a fresh address, so that a block is never the same as one that was taken
// away. It mines in steps, each within the time that a call has on a busy machine.
func (n *node) Mine(ctx context.Context, blocks int) error {
	a, err := n.NewAddress(ctx)
	if err != nil {
		return err
	}

	if len(n.pending) > 0 {
		var waiting []string
		if err := n.Call(ctx, &waiting, "getrawmempool"); err != nil {
			return err
		}

		if err := n.Call(ctx, nil, "generateblock", a, append(waiting, n.pending...)); err != nil {
			return err
		}

		n.pending = nil
		blocks--
	}

	for blocks > 0 {
		step := min(blocks, 50)
		if err := n.Call(ctx, nil, "generatetoaddress", step, a); err != nil {
			return err
		}

		blocks -= step
	}

	return nil
}

func (n *node) Settle(context.Context) error { return nil }

func (n *node) Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error {
	if _, err := n.Pay(ctx, to, asset, amount); err != nil {
		return err
	}

	return n.Mine(ctx, 1)
}

// Pay spends a coin of its own.
func (n *node) Pay(
	ctx context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	raw, err := n.signedPayment(ctx, to, amount)
	if err != nil {
		return "", err
	}

	var txid string

	return txid, n.Call(ctx, &txid, "sendrawtransaction", raw, 0)
}

// PayCheap pays about a satoshi per vB, where the driver takes ten for the current rate.
func (n *node) PayCheap(
	ctx context.Context,
	to chain.Address,
	asset chain.Asset,
	amount chain.Amount,
) (string, error) {
	raw, err := n.signedPaymentAt(ctx, to, amount, chain.Units(200))
	if err != nil {
		return "", err
	}

	var txid string

	return txid, n.Call(ctx, &txid, "sendrawtransaction", raw, 0)
}

// PayZero is against the pool's rules, not against the chain's.
func (n *node) PayZero(ctx context.Context, to chain.Address, asset chain.Asset) (string, error) {
	raw, err := n.signedPayment(ctx, to, chain.Amount{})
	if err != nil {
		return "", err
	}

	n.pending = append(n.pending, raw)

	var tx struct{ Txid string }

	return tx.Txid, n.Call(ctx, &tx, "decoderawtransaction", raw)
}

// signedPayment makes a transaction that spends the next coin.
func (n *node) signedPayment(ctx context.Context, to chain.Address, amount chain.Amount) (string, error) {
	return n.signedPaymentAt(ctx, to, amount, chain.Units(2_000))
}

// signedPaymentAt does so at a fee.
func (n *node) signedPaymentAt(
	ctx context.Context,
	to chain.Address,
	amount, fee chain.Amount,
) (string, error) {
	if len(n.coins) == 0 {
		return "", errors.New("the test pays more often than there are coins: make the node richer")
	}

	coin := n.coins[0]
	n.coins = n.coins[1:]

	return n.spend(ctx, coin, to, amount, fee)
}

// spend signs a transaction of the node's wallet that spends a coin at a fee.
func (n *node) spend(
	ctx context.Context,
	coin outpoint,
	to chain.Address,
	amount, fee chain.Amount,
) (string, error) {
	back, err := n.NewAddress(ctx)
	if err != nil {
		return "", err
	}

	change := chain.Units(payerCoin * 100_000_000).Sub(amount).Sub(fee)

	var raw string
	if err := n.Call(ctx, &raw, "createrawtransaction", []outpoint{coin}, []map[chain.Address]json.Number{
		{to: json.Number(amount.Decimal(8).String())},
		{back: json.Number(change.Decimal(8).String())},
	}); err != nil {
		return "", err
	}

	var out struct {
		Hex      string
		Complete bool
		Errors   []struct{ Error string }
	}
	if err := n.Call(ctx, &out, "signrawtransactionwithwallet", raw); err != nil {
		return "", err
	}

	if !out.Complete {
		return "", fmt.Errorf("the node did not sign for %v: %v", coin, out.Errors)
	}

	return out.Hex, nil
}

// Fork takes blocks away and makes others, of which the first includes the transactions to keep.
func (n *node) Fork(ctx context.Context, depth int, keep ...string) error {
	var tip int
	if err := n.Call(ctx, &tip, "getblockcount"); err != nil {
		return err
	}

	var first string
	if err := n.Call(ctx, &first, "getblockhash", tip-depth+1); err != nil {
		return err
	}

	if err := n.Call(ctx, nil, "invalidateblock", first); err != nil {
		return err
	}

	if keep == nil {
		keep = []string{}
	}

	for i := range depth + 1 {
		a, err := n.NewAddress(ctx)
		if err != nil {
			return err
		}

		if i > 0 {
			keep = []string{}
		}

		if err := n.Call(ctx, nil, "generateblock", a, keep); err != nil {
			return err
		}
	}

	return nil
}

// Coins asks the node for all outputs of an address.
func (n *node) Coins(ctx context.Context, owner chain.Party) ([]chain.Coin, error) {
	var out struct {
		Unspents []struct {
			Txid   string
			Vout   uint32
			Amount json.Number
			Height uint64
		}
	}

	descriptors := []string{"addr(" + string(owner.Address) + ")"}
	if err := n.Call(ctx, &out, "scantxoutset", "start", descriptors); err != nil {
		return nil, err
	}

	var coins []chain.Coin

	for _, u := range out.Unspents {
		amount, err := chaindata.AmountFromDecimalFloor(decimal.RequireFromString(u.Amount.String()), 8)
		if err != nil {
			return nil, err
		}

		coins = append(coins, chain.Coin{
			Outpoint: chain.Outpoint{TxHash: u.Txid, Vout: u.Vout},
			Owner:    owner,
			Amount:   amount,
			Height:   u.Height,
		})
	}

	return coins, nil
}

// freshSigner is a signer whose keys nobody used before.
func freshSigner(t *testing.T, options ...hdkey.Option) *hdkey.Signer {
	t.Helper()

	mnemonic, err := hdkey.NewMnemonic(rand.Reader, 128)
	if err != nil {
		t.Fatal(err)
	}

	signer, err := hdkey.New(mnemonic, "", options...)
	if err != nil {
		t.Fatal(err)
	}

	return signer
}
