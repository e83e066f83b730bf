//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/regtest"
)

// harness is a node with the payers and the miner around it.
type harness interface {
	url() string
	address(t *testing.T) string
	// mine makes blocks of which the first includes what waits in the pool; mineEmpty leaves the pool alone.
	mine(t *testing.T, blocks int)
	mineEmpty(t *testing.T, blocks int)
	height(t *testing.T) uint64
	pool(t *testing.T) []string
	// outputs counts those of a transaction in the pool.
	outputs(t *testing.T, hash string) int
	// pay sends a payment that waits in the pool; replace displaces it by one that pays more to the miner.
	pay(t *testing.T, to chain.Address, v chain.Amount) (hash string)
	replace(t *testing.T, hash string, to chain.Address, v chain.Amount) (other string)
	// holds is what the node has unspent for an address.
	holds(t *testing.T, a chain.Address) chain.Amount
	// rewind takes the newest blocks out of the chain and makes as many and one more that leave the
	// pool alone.
	rewind(t *testing.T, blocks int)
}

// bitcoindHarness is bitcoind, whose own wallet belongs to payers.
type bitcoindHarness struct{ *testenv.BitcoindNode }

func startBitcoind(t *testing.T) harness {
	t.Helper()
	n := bitcoindHarness{testenv.Bitcoind(t, testenv.BitcoindOptions{Args: []string{"-keypool=10"}})}
	n.call(t, nil, "createwallet", "payers")
	n.mine(t, 120)

	return n
}

func (n bitcoindHarness) url() string { return n.URL }

func (n bitcoindHarness) call(t *testing.T, out any, method string, params ...any) {
	t.Helper()

	if err := n.Call(t.Context(), out, method, params...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func (n bitcoindHarness) address(t *testing.T) (a string) {
	t.Helper()
	n.call(t, &a, "getnewaddress", "", "bech32")

	return a
}

// Blocks pay a fresh address, so that none is the same as one that was taken away.
func (n bitcoindHarness) mine(t *testing.T, blocks int) {
	t.Helper()
	n.call(t, nil, "generatetoaddress", blocks, n.address(t))
}

func (n bitcoindHarness) mineEmpty(t *testing.T, blocks int) {
	t.Helper()

	for range blocks {
		n.call(t, nil, "generateblock", n.address(t), []string{})
	}
}

func (n bitcoindHarness) height(t *testing.T) (h uint64) {
	t.Helper()
	n.call(t, &h, "getblockcount")

	return h
}

func (n bitcoindHarness) pool(t *testing.T) (hashes []string) {
	t.Helper()
	n.call(t, &hashes, "getrawmempool")

	return hashes
}

func (n bitcoindHarness) outputs(t *testing.T, hash string) int {
	t.Helper()
	return outputsOf(t, n.Call, hash)
}

func outputsOf(
	t *testing.T,
	call func(ctx context.Context, out any, method string, params ...any) error,
	hash string,
) int {
	t.Helper()

	var tx struct{ Vout []json.RawMessage }
	must(t, call(t.Context(), &tx, "getrawtransaction", hash, 1))

	return len(tx.Vout)
}

func (n bitcoindHarness) pay(t *testing.T, to chain.Address, v chain.Amount) (hash string) {
	t.Helper()
	n.call(t, &hash, "sendtoaddress", to, json.Number(v.Decimal(8).String()))

	return hash
}

func (n bitcoindHarness) replace(t *testing.T, hash string, to chain.Address, v chain.Amount) string {
	t.Helper()

	var bumped struct{ Txid string }
	n.call(
		t, &bumped, "bumpfee", hash,
		map[string]any{"outputs": []map[chain.Address]json.Number{{to: json.Number(v.Decimal(8).String())}}},
	)

	return bumped.Txid
}

func (n bitcoindHarness) holds(t *testing.T, a chain.Address) chain.Amount {
	t.Helper()

	var out struct {
		Total json.Number `json:"total_amount"`
	}
	n.call(t, &out, "scantxoutset", "start", []string{"addr(" + string(a) + ")"})

	v, err := chaindata.AmountFromDecimalFloor(decimal.RequireFromString(out.Total.String()), 8)
	if err != nil {
		t.Fatal(err)
	}

	return v
}

// What was in the blocks is handed over again, as other nodes would: bitcoind returns to its pool
// only what is final at the height it went back to, and of the newest ten blocks.
func (n bitcoindHarness) rewind(t *testing.T, blocks int) {
	t.Helper()

	var (
		first   string
		waiting []string
	)

	tip := n.height(t)
	for height := tip - uint64(blocks) + 1; height <= tip; height++ {
		var (
			hash  string
			block struct {
				Tx []struct{ Hex string }
			}
		)

		n.call(t, &hash, "getblockhash", height)
		n.call(t, &block, "getblock", hash, 2)

		if first == "" {
			first = hash
		}

		for _, tx := range block.Tx[1:] {
			waiting = append(waiting, tx.Hex)
		}
	}

	n.call(t, nil, "invalidateblock", first)
	n.mineEmpty(t, blocks+1)

	for _, tx := range waiting {
		n.call(t, nil, "sendrawtransaction", tx)
	}
}

// btcdHarness is btcd, with a payer and miner of the tests' own.
type btcdHarness struct {
	node  *testenv.BtcdNode
	payer *regtest.Payer
}

func startBtcd(t *testing.T) harness {
	t.Helper()
	n := testenv.Btcd(t)
	payer, err := regtest.New(t.Context(), &n.BitcoinRPC, 1)
	must(t, err)

	return btcdHarness{n, payer}
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func (n btcdHarness) url() string { return n.node.URL }

func (n btcdHarness) address(t *testing.T) string {
	t.Helper()
	a, err := n.payer.NewAddress(t.Context())
	must(t, err)

	return string(a)
}

func (n btcdHarness) mine(t *testing.T, blocks int) {
	t.Helper()
	must(t, n.payer.Mine(t.Context(), blocks))
}

func (n btcdHarness) mineEmpty(t *testing.T, blocks int) {
	t.Helper()
	must(t, n.payer.MineEmpty(t.Context(), blocks))
}

func (n btcdHarness) height(*testing.T) uint64 { return n.payer.Tip() }

func (n btcdHarness) pool(t *testing.T) (hashes []string) {
	t.Helper()
	must(t, n.node.Call(t.Context(), &hashes, "getrawmempool"))

	return hashes
}

func (n btcdHarness) outputs(t *testing.T, hash string) int {
	t.Helper()
	return outputsOf(t, n.node.Call, hash)
}

func (n btcdHarness) pay(t *testing.T, to chain.Address, v chain.Amount) string {
	t.Helper()
	hash, err := n.payer.Pay(t.Context(), to, chain.Asset{}, v)
	must(t, err)

	return hash
}

func (n btcdHarness) replace(t *testing.T, hash string, to chain.Address, v chain.Amount) string {
	t.Helper()
	other, err := n.payer.Replace(t.Context(), hash, to, v)
	must(t, err)

	return other
}

func (n btcdHarness) holds(t *testing.T, a chain.Address) (sum chain.Amount) {
	t.Helper()
	coins, err := n.payer.Coins(t.Context(), chain.Party{Address: a})
	must(t, err)

	for _, c := range coins {
		sum = sum.Add(c.Amount)
	}

	return sum
}

func (n btcdHarness) rewind(t *testing.T, blocks int) {
	t.Helper()
	must(t, n.payer.Fork(t.Context(), blocks))
}

// onBothNodes plays a scenario on bitcoind and on btcd.
func onBothNodes(t *testing.T, scenario func(t *testing.T, w harness)) {
	if testing.Short() {
		t.Skip("needs bitcoind and btcd; run without -short")
	}

	t.Run("bitcoind", func(t *testing.T) {
		t.Parallel()
		scenario(t, startBitcoind(t))
	})
	t.Run("btcd", func(t *testing.T) {
		t.Parallel()
		scenario(t, startBtcd(t))
	})
}
