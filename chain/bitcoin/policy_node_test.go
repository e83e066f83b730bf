//go:build unix

package bitcoin_test

// What real nodes take, ask for and show.

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// split pays an amount to each of n deposit addresses, in blocks, and returns the coins.
func (w *wallet) split(first uint32, n int, amount uint64) (coins []chain.Coin) {
	w.t.Helper()

	from := w.party(chain.RoleMaster, 9)
	w.pay(from.Address, 150_000_000)
	w.mine(1)

	for done := 0; done < n; {
		batch := min(n-done, 50)

		order := chain.Order{From: from, MaxFee: chain.Units(10_000_000), Coins: w.coins(from)}
		for i := range batch {
			to := w.party(chain.RoleDeposit, first+uint32(done+i)).Address
			order.Outputs = append(order.Outputs, w.output(to, amount))
		}

		signed := w.sign(order)
		w.n.must(w.t, w.d.Broadcast(w.t.Context(), signed))
		w.mine(1)

		for i := range batch {
			coins = append(coins, chain.Coin{
				Outpoint: chain.Outpoint{TxHash: signed.TxHash, Vout: uint32(i)},
				Owner:    w.party(chain.RoleDeposit, first+uint32(done+i)),
				Amount:   chain.Units(amount),
				Height:   w.height(),
			})
		}

		done += batch
	}

	return coins
}

func (w *wallet) height() (height uint64) {
	w.t.Helper()
	w.n.must(w.t, w.n.Call(w.t.Context(), &height, "getblockcount"))

	return height
}

// destinations are addresses of every kind, of the node's wallet.
func (w *wallet) destinations() (all []chain.Address) {
	w.t.Helper()

	for _, kind := range []string{"legacy", "p2sh-segwit", "bech32", "bech32m"} {
		var a chain.Address
		w.n.must(w.t, w.n.Call(w.t.Context(), &a, "getnewaddress", "", kind))

		all = append(all, a)
	}

	return all
}

// Pitfall 52. At exactly the node's floor each of fifty transactions is taken at its first broadcast.
func TestFirstBroadcastsAtTheFloor(t *testing.T) {
	const floor = 3_333 // satoshi per 1000 vB

	n := startNode(t, testenv.BitcoindOptions{
		Args: []string{"-minrelaytxfee=0.00003333", "-blockmintxfee=0.00000001"},
	}).withCoins(t, 1)
	for name, isTaproot := range map[string]bool{"P2WPKH": false, "P2TR": true} {
		t.Run(name, func(t *testing.T) {
			w := newWallet(t, n, func(c *bitcoin.Config) {
				c.MinFeeRate, c.FallbackFeeRate, c.MaxFeeRate, c.Taproot = 1, 1, floor, isTaproot
			})
			coins, to := w.split(0, 65, 30_000), w.destinations()

			for i := range 25 {
				inputs := coins[:1+i%4]
				coins = coins[len(inputs):]

				order := chain.Order{From: inputs[0].Owner, MaxFee: chain.Units(100_000), Coins: inputs}
				for out := range 1 + i%3 {
					order.Outputs = append(order.Outputs, w.output(to[(i+out)%len(to)], 2_000+uint64(i)))
				}

				signed := w.sign(order)
				if err := w.d.Broadcast(t.Context(), signed); err != nil {
					t.Errorf(
						"transaction %d, %d inputs at a fee of %s: %v",
						i,
						len(signed.Inputs),
						signed.MaxFee,
						err,
					)
				}

				var entry struct{ Vsize uint64 }
				n.must(t, n.Call(t.Context(), &entry, "getmempoolentry", signed.TxHash))

				most := (floor*(entry.Vsize+uint64(len(signed.Inputs))) + 999) / 1000
				if chain.Units(most + 300).
					Less(signed.MaxFee) { // change below the dust limit goes to the miner
					t.Errorf(
						"transaction %d of %d vB pays %s, more than %d",
						i,
						entry.Vsize,
						signed.MaxFee,
						most,
					)
				}
			}
		})
	}
}

// A node that relays no transactions refuses to estimate: the fall-back rate counts.
func TestBlocksOnlyNodeSends(t *testing.T) {
	n := startNode(
		t,
		testenv.BitcoindOptions{Args: []string{"-blocksonly", "-walletbroadcast=1"}},
	).withCoins(t, 1)
	w := newWallet(t, n)
	from := w.party(chain.RoleMaster, 0)
	w.pay(from.Address, 500_000)
	w.mine(1)

	signed := w.sign(chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(w.destinations()[2], 100_000)},
	})
	n.must(t, w.d.Broadcast(t.Context(), signed))
	w.mine(1)

	if status := w.status(signed); status.State != chain.TxIncluded {
		t.Errorf("it is %s", status.State)
	}
}

// What the release of n deposits costs is the price of n inputs and one output.
func TestCostOfReleases(t *testing.T) {
	const (
		rate  = 10_000
		limit = 50 // deposits of one release
	)

	n := startNode(t, testenv.BitcoindOptions{}).withCoins(t, 1)
	w := newWallet(t, n, func(c *bitcoin.Config) { c.MinFeeRate, c.MaxFeeRate = rate, rate })
	master := w.party(chain.RoleMaster, 0)

	first := uint32(0)
	for _, deposits := range []int{1, 10, 200} {
		coins := w.split(first, deposits, 100_000)
		first += uint32(deposits)

		var paid, vsize uint64

		for done := 0; done < deposits; done += limit {
			part := coins[done:min(done+limit, deposits)]
			steps, err := w.d.PlanSweep(t.Context(), chain.SweepRequest{
				Asset:   w.d.Network().Assets[0],
				Deposit: part[0].Owner,
				Master:  master,
				Amount:  chain.Units(uint64(100_000 * len(part))),
				Coins:   part,
			})
			n.must(t, err)

			signed := w.sign(steps[0].Order)
			fee, _ := w.testAccept(signed)
			cost, _ := fee.Uint64()
			paid += cost

			n.must(t, w.d.Broadcast(t.Context(), signed))
		}

		w.mine(1)

		// BIP-141: 10.5 vB for the transaction and its counts, 68 for an input, 31 for an output.
		vsize = (21+136*uint64(deposits)+62+1)/2 + uint64(deposits)/253*2
		price := vsize * rate / 1000

		t.Logf("%d deposits: %d satoshi, %d vB at the rate cost %d: %.4f", deposits, paid, vsize, price,
			float64(paid)/float64(price))

		if paid*100 > price*102 {
			t.Errorf(
				"the release of %d deposits costs %d, their inputs and one output %d",
				deposits,
				paid,
				price,
			)
		}
	}
}

// A node that stands still, or was started anew from nothing, is passed over for one that goes on.
func TestNodeBehindOnRegtest(t *testing.T) {
	ahead := startNode(t, testenv.BitcoindOptions{})
	behind := &node{BitcoindNode: testenv.Bitcoind(t, testenv.BitcoindOptions{})}
	ctx := t.Context()

	var tip uint64
	ahead.must(t, ahead.Call(ctx, &tip, "getblockcount"))

	feed := func(from, to uint64) {
		for height := from; height <= to; height++ {
			var hash, raw string
			ahead.must(t, ahead.Call(ctx, &hash, "getblockhash", height))
			ahead.must(t, ahead.Call(ctx, &raw, "getblock", hash, 0))
			ahead.must(t, behind.Call(ctx, nil, "submitblock", raw))
		}
	}

	d := newDriver(t, bitcoin.Config{
		Network:  bitcoin.Regtest,
		RPCs:     []string{behind.URL, ahead.URL},
		Attempts: 1,
	})
	alone := newDriver(t, bitcoin.Config{Network: bitcoin.Regtest, RPC: behind.URL, Attempts: 1})

	mustBeAt := func(what string, want uint64) {
		t.Helper()

		if head, err := d.Head(ctx); err != nil || head.Tip.Height != want {
			t.Errorf("%s: head %+v, %v, want height %d", what, head, err, want)
		}
	}

	mustBeAt("while the first node syncs", tip)

	_, err := alone.Head(ctx)
	mustCode(t, "the syncing node alone", err, fault.Unavailable, "node_syncing")

	feed(1, tip-3)
	mustBeAt("while the first node is three blocks behind", tip)

	if head, err := alone.Head(ctx); err != nil || head.Tip.Height != tip-3 {
		t.Errorf("the node that is behind, alone: %+v, %v", head, err)
	}

	if err := alone.Check(ctx); err != nil {
		t.Errorf("it is verified anew after it synced: %v", err)
	}

	feed(tip-2, tip)
	ahead.must(t, ahead.Mine(ctx, 3))
	mustBeAt("three blocks later", tip+3)
}

// A device signs with nothing but the PSBT: it finds keys by their paths, knows change, and reads amounts out
// of the transactions that are spent.
func TestDeviceReadsThePSBT(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{NoTxIndex: true}).withCoins(t, 1)
	for name, isTaproot := range map[string]bool{"P2WPKH": false, "P2TR": true} {
		t.Run(name, func(t *testing.T) {
			w := newWallet(t, n)
			if isTaproot {
				w.signer = freshSigner(t, hdkey.WithTaproot())
			}

			w.d = n.driver(t, func(c *bitcoin.Config) { c.Taproot, c.Keys = isTaproot, w.signer })
			from := w.party(chain.RoleMaster, 7)
			w.pay(from.Address, 500_000)
			w.mine(1)

			unsigned, err := w.d.Build(t.Context(), chain.Order{
				From:    from,
				MaxFee:  chain.Units(100_000),
				Coins:   w.coins(from),
				Outputs: []chain.Output{w.output(w.destinations()[2], 100_000)},
			})
			n.must(t, err)

			checkDevicePSBT(t, w, from, unsigned)
		})
	}
}

func checkDevicePSBT(t *testing.T, w *wallet, from chain.Party, unsigned chain.Unsigned) {
	t.Helper()

	type key struct {
		Path        string
		Fingerprint string `json:"master_fingerprint"`
	}

	var decoded struct {
		Inputs []struct {
			Previous  *struct{ Txid string } `json:"non_witness_utxo"`
			Keys      []key                  `json:"bip32_derivs"`
			Taproot   []key                  `json:"taproot_bip32_derivs"`
			WitnessIn *struct{}              `json:"witness_utxo"`
		}
		Outputs []struct {
			Keys    []key `json:"bip32_derivs"`
			Taproot []key `json:"taproot_bip32_derivs"`
		}
	}
	w.n.must(t, w.n.Call(
		t.Context(), &decoded, "decodepsbt", base64.StdEncoding.EncodeToString(unsigned.Raw),
	))

	path, err := w.signer.Path(from.Key)
	w.n.must(t, err)

	want := key{strings.ReplaceAll(path, "'", "h"), w.signer.Fingerprint()}
	same := func(keys ...key) bool {
		return len(keys) == 1 && strings.ReplaceAll(keys[0].Path, "'", "h") == want.Path &&
			keys[0].Fingerprint == want.Fingerprint
	}

	in, change := decoded.Inputs[0], decoded.Outputs[1]
	if !same(append(in.Keys, in.Taproot...)...) || !same(append(change.Keys, change.Taproot...)...) {
		t.Errorf("input %+v and change %+v, want %+v", in, change, want)
	}

	if payment := decoded.Outputs[0]; len(payment.Keys)+len(payment.Taproot) != 0 {
		t.Errorf("the payment is named as ours: %+v", payment)
	}

	if isTaproot := len(in.Taproot) > 0; !isTaproot &&
		(in.Previous == nil || in.Previous.Txid != unsigned.Inputs[0].TxHash) {
		t.Errorf("the transaction that it spends is %+v, want %s", in.Previous, unsigned.Inputs[0].TxHash)
	}
}

// Nobody can ever spend what is paid to a P2TR key off the curve.
func TestKeyOffTheCurveIsRefused(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{}).withCoins(t, 1)
	w := newWallet(t, n)
	from := w.party(chain.RoleMaster, 0)
	w.pay(from.Address, 500_000)
	w.mine(1)

	const offCurve = "bcrt1pqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsk8mhfx"

	// The node takes it for an address, and would pay it.
	var valid struct{ IsValid bool }
	n.must(t, n.Call(t.Context(), &valid, "validateaddress", offCurve))

	if !valid.IsValid {
		t.Error("the node refuses the address itself")
	}

	_, err := w.d.Build(t.Context(), chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(offCurve, 100_000)},
	})
	mustCode(t, "Build", err, fault.Invalid, "destination_not_payable")
}

// bitcoinjs and the node read 200 transactions as we do: bytes, hash, size, digests and signatures.
func TestOthersAgreeOnTransactions(t *testing.T) {
	const transactions = 200

	n := startNode(t, testenv.BitcoindOptions{}).withCoins(t, 1)
	plain, taproot := newWallet(t, n), newWallet(t, n, func(c *bitcoin.Config) { c.Taproot = true })

	coins := append(plain.split(0, 20, 40_000), taproot.split(0, 20, 40_000)...)
	to := plain.destinations()

	type output struct {
		Script string `json:"script"`
		Value  string `json:"value"`
	}

	type transaction struct {
		Hex   string   `json:"hex"`
		Spent []output `json:"spent"`
	}

	random := rand.New(rand.NewPCG(22, 0))
	txs := make([]transaction, transactions)
	hashes := make([]string, transactions)

	for i := range txs {
		w, own := plain, coins[:20]
		if i%2 == 1 {
			w, own = taproot, coins[20:]
		}

		order := chain.Order{MaxFee: chain.Units(500_000)}
		for _, at := range random.Perm(len(own))[:1+random.IntN(6)] {
			order.Coins = append(order.Coins, own[at])
		}

		order.From = order.Coins[0].Owner

		for out := range 1 + random.IntN(len(to)) {
			order.Outputs = append(order.Outputs, w.output(to[out], 1_000+random.Uint64N(4_000)))
		}

		signed := w.sign(order)
		w.testAccept(signed)

		hashes[i], txs[i].Hex = signed.TxHash, hex.EncodeToString(signed.Raw)

		for _, in := range signed.Inputs {
			at := slices.IndexFunc(own, func(c chain.Coin) bool { return c.Outpoint == in })

			var address struct{ ScriptPubKey string }
			n.must(t, n.Call(t.Context(), &address, "validateaddress", own[at].Owner.Address))

			txs[i].Spent = append(txs[i].Spent, output{address.ScriptPubKey, own[at].Amount.String()})
		}
	}

	var read []struct {
		ID, Hex       string
		Vsize, Weight int
		Signed        bool
	}
	testenv.Bitcoinjs(t, "read.js", txs, &read)

	for i, tx := range txs {
		var decoded struct {
			Txid          string
			Vsize, Weight int
		}
		n.must(t, n.Call(t.Context(), &decoded, "decoderawtransaction", tx.Hex))

		got := read[i]
		if got.ID != hashes[i] || decoded.Txid != hashes[i] || got.Hex != tx.Hex || !got.Signed ||
			got.Vsize != decoded.Vsize || got.Weight != decoded.Weight {
			t.Errorf("transaction %d, %s: bitcoinjs reads %+v, the node %+v", i, hashes[i], got, decoded)
		}
	}
}
