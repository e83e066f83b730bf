//go:build unix

package bitcoin_test

// Scenarios on a real node that the conformance suite does not have.

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// wallet is a signer with a driver on a node.
type wallet struct {
	t      *testing.T
	n      *node
	d      *bitcoin.Driver
	signer *hdkey.Signer
}

func newWallet(t *testing.T, n *node, change ...func(*bitcoin.Config)) *wallet {
	return &wallet{t: t, n: n, d: n.driver(t, change...), signer: freshSigner(t)}
}

func (w *wallet) party(role chain.Role, index uint32) chain.Party {
	w.t.Helper()

	ref := chain.KeyRef{Family: chain.Bitcoin, Role: role, Index: index}
	key, err := w.signer.PublicKey(w.t.Context(), ref)
	w.n.must(w.t, err)
	address, err := w.d.DeriveAddress(key)
	w.n.must(w.t, err)

	return chain.Party{Key: ref, Address: address}
}

func (w *wallet) pay(to chain.Address, amount uint64) {
	w.t.Helper()
	_, err := w.n.Pay(w.t.Context(), to, chain.Asset{}, chain.Units(amount))
	w.n.must(w.t, err)
}

func (w *wallet) mine(n int) {
	w.t.Helper()
	w.n.must(w.t, w.n.Mine(w.t.Context(), n))
}

func (w *wallet) coins(owners ...chain.Party) (all []chain.Coin) {
	w.t.Helper()

	for _, o := range owners {
		coins, err := w.n.Coins(w.t.Context(), o)
		w.n.must(w.t, err)

		all = append(all, coins...)
	}

	return all
}

func (w *wallet) output(to chain.Address, amount uint64) chain.Output {
	return chain.Output{To: to, AssetID: w.d.Network().Assets[0].ID, Amount: chain.Units(amount)}
}

func (w *wallet) sign(order chain.Order) chain.Signed {
	w.t.Helper()
	ctx := w.t.Context()
	unsigned, err := w.d.Build(ctx, order)
	w.n.must(w.t, err)

	var keys []chain.PublicKey

	for _, payload := range unsigned.Payloads {
		key, err := w.signer.PublicKey(ctx, payload.Key)
		w.n.must(w.t, err)

		keys = append(keys, key)
	}

	signatures, err := w.signer.Sign(
		ctx, chain.SignRequest{Unsigned: unsigned.Raw, Payloads: unsigned.Payloads},
	)
	w.n.must(w.t, err)
	signed, err := w.d.Assemble(order, unsigned, keys, signatures)
	w.n.must(w.t, err)

	return signed
}

// testAccept asks the node whether it would take a transaction, and returns its fee and virtual size.
func (w *wallet) testAccept(signed chain.Signed) (fee chain.Amount, vsize uint64) {
	w.t.Helper()

	var out []struct {
		Allowed bool
		Reason  string `json:"reject-reason"`
		Vsize   uint64
		Fees    struct{ Base json.Number }
	}
	w.n.must(
		w.t,
		w.n.Call(w.t.Context(), &out, "testmempoolaccept", []string{hex.EncodeToString(signed.Raw)}),
	)

	if len(out) != 1 || !out[0].Allowed {
		w.t.Fatalf("the node refuses %s: %+v", signed.TxHash, out)
	}

	fee, err := chaindata.AmountFromDecimalFloor(decimal.RequireFromString(out[0].Fees.Base.String()), 8)
	w.n.must(w.t, err)

	return fee, out[0].Vsize
}

// displaced reports whether the newest n blocks say that another transaction spends an input of a transaction
// or of an unconfirmed parent of it: the proof that it can never be mined.
func (w *wallet) displaced(signed chain.Signed, n uint64) bool {
	w.t.Helper()

	head, err := w.d.Head(w.t.Context())
	w.n.must(w.t, err)
	blocks, err := w.d.Blocks(w.t.Context(), head.Tip.Height-n+1, head.Tip.Height)
	w.n.must(w.t, err)

	spends := slices.Clone(signed.UnconfirmedParents)
	for _, input := range signed.Inputs {
		spends = append(spends, chain.Spend{Outpoint: input, By: signed.TxHash})
	}

	for _, block := range blocks {
		for _, spent := range block.Spent {
			for _, ours := range spends {
				if chaindata.Used(spent) == chaindata.Used(ours) && spent.By != ours.By {
					return true
				}
			}
		}
	}

	return false
}

func (w *wallet) status(signed chain.Signed) chain.TxStatus {
	w.t.Helper()
	status, err := w.d.Status(w.t.Context(), signed)
	w.n.must(w.t, err)

	return status
}

func TestOnRegtest(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{}).withCoins(t, 1)
	for name, test := range map[string]func(*testing.T, *node){
		"BatchToEveryKindOfAddress":     batchToEveryKindOfAddress,
		"ManyDepositsInOneSweep":        manyDepositsInOneSweep,
		"FeeBelowDustIsLeftOut":         feeBelowDustIsLeftOut,
		"DustIsRefused":                 dustIsRefused,
		"ReplacementPaysForDescendants": replacementPaysForDescendants,
		"ReplacedPaymentShowsInThePool": replacedPaymentShowsInThePool,
		"SpentCoinsAreNotUsed":          spentCoinsAreNotUsed,
		"OutsideSignerReadsThePSBT":     outsideSignerReadsThePSBT,
		"WrongCredentials":              wrongCredentials,
		"YoungBlockRewardsAreNotSpent":  youngBlockRewardsAreNotSpent,
		"DeadByAForeignTransaction":     deadByAForeignTransaction,
		"PoolOffShowsNothing":           poolOffShowsNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, n) })
	}
}

// One transaction pays a batch, from coins of both kinds and of several owners.
func batchToEveryKindOfAddress(t *testing.T, n *node) {
	w := newWallet(t, n)
	taproot := newWallet(t, n, func(c *bitcoin.Config) { c.Taproot = true })
	taproot.signer = w.signer

	from, second := w.party(chain.RoleMaster, 0), w.party(chain.RoleMaster, 1)
	third := taproot.party(chain.RoleMaster, 2)

	for _, owner := range []chain.Party{from, second, third} {
		w.pay(owner.Address, 100_000)
	}

	w.mine(1)
	order := chain.Order{From: from, MaxFee: chain.Units(100_000), Coins: w.coins(from, second, third)}

	for _, kind := range []string{"legacy", "p2sh-segwit", "bech32", "bech32m"} {
		var a chain.Address
		n.must(t, n.Call(t.Context(), &a, "getnewaddress", "", kind))
		order.Outputs = append(order.Outputs, w.output(a, 60_000))
	}
	// P2WSH: BIP-173's example.
	p2wsh := w.output("bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry", 40_000)
	order.Outputs = append(order.Outputs, p2wsh)
	signed := w.sign(order)

	fee, vsize := w.testAccept(signed)
	if fee != signed.MaxFee || len(signed.Inputs) != 3 {
		t.Errorf(
			"the node counts a fee of %s, Build said %s; %d inputs",
			fee, signed.MaxFee, len(signed.Inputs),
		)
	}
	// The node's rate, which it may estimate from what other tests sent, on what the longest signatures
	// weigh: an ECDSA signature is shorter by three bytes of witness at most.
	rate := n.feeRate(t)
	least, most := (rate*vsize+999)/1000, (rate*(vsize+uint64(3*len(signed.Inputs)+3)/4)+999)/1000

	if fee.Less(chain.Units(least)) || chain.Units(most).Less(fee) {
		t.Errorf(
			"a fee of %s for %d vB at %d satoshi per 1000 vB: want %d to %d",
			fee,
			vsize,
			rate,
			least,
			most,
		)
	}

	n.must(t, w.d.Broadcast(t.Context(), signed))
	w.mine(1)

	status := w.status(signed)
	if status.State != chain.TxIncluded || status.Fee != fee || len(status.Transfers) != 6 {
		t.Errorf("included as %+v", status)
	}

	for i, out := range order.Outputs {
		if got := status.Transfers[i]; got.To != out.To || got.Amount != out.Amount ||
			got.Index != uint32(i) {
			t.Errorf("output %d is %+v, want %+v", i, got, out)
		}
	}
}

// feeRate returns the rate that the driver takes, in satoshi per 1000 vB: the node's estimate, or the fall-back
// rate while it has none.
func (n *node) feeRate(t *testing.T) uint64 {
	t.Helper()

	var estimate struct {
		Rate json.Number `json:"feerate"`
	}
	n.must(t, n.Call(t.Context(), &estimate, "estimatesmartfee", 3))

	if estimate.Rate == "" {
		return 10_000
	}

	return uint64(decimal.RequireFromString(estimate.Rate.String()).Shift(8).IntPart())
}

func manyDepositsInOneSweep(t *testing.T, n *node) {
	w := newWallet(t, n)

	deposit, other := w.party(chain.RoleDeposit, 0), w.party(chain.RoleDeposit, 1)
	master := w.party(chain.RoleMaster, 0)

	for _, amount := range []uint64{50_000, 70_001, 90_000} {
		w.pay(deposit.Address, amount)
	}

	w.pay(other.Address, 30_000)
	w.mine(1)
	deposits := slices.DeleteFunc(
		append(w.coins(deposit), w.coins(other)...),
		func(coin chain.Coin) bool { return coin.Amount == chain.Units(90_000) },
	)
	payee, err := n.NewAddress(t.Context())
	n.must(t, err)
	steps, err := w.d.PlanSweep(t.Context(), chain.SweepRequest{
		Asset:      w.d.Network().Assets[0],
		Deposit:    deposit,
		Master:     master,
		FeeAddress: payee,
		Amount:     chain.Units(150_001),
		Fee:        chain.Units(750),
		Coins:      deposits,
	})
	n.must(t, err)

	if len(steps) != 1 || steps[0].PaysFee != chain.Units(750) {
		t.Fatalf("planned %+v", steps)
	}

	signed := w.sign(steps[0].Order)

	fee, _ := w.testAccept(signed)
	if len(signed.Inputs) != 3 || signed.Outputs[0].Amount != chain.Units(750) ||
		signed.Outputs[0].Amount.Add(signed.Outputs[1].Amount).Add(fee) != chain.Units(150_001) {
		t.Errorf("%d inputs, outputs %+v and fee %s for 150001", len(signed.Inputs), signed.Outputs, fee)
	}

	n.must(t, w.d.Broadcast(t.Context(), signed))
	w.mine(1)

	left := append(w.coins(deposit), w.coins(other)...)
	if len(left) != 1 || left[0].Amount != chain.Units(90_000) {
		t.Errorf("%+v is left", left)
	}
}

func feeBelowDustIsLeftOut(t *testing.T, n *node) {
	w := newWallet(t, n)
	release := chain.SweepRequest{
		Asset:      w.d.Network().Assets[0],
		Deposit:    w.party(chain.RoleDeposit, 0),
		Master:     w.party(chain.RoleMaster, 0),
		FeeAddress: w.party(chain.RoleMaster, 1).Address,
		Amount:     chain.Units(50_000),
	}

	release.Coins = []chain.Coin{{Owner: release.Deposit, Amount: release.Amount}}
	for fee, pays := range map[uint64]uint64{293: 0, 294: 294} {
		release.Fee = chain.Units(fee)
		steps, err := w.d.PlanSweep(t.Context(), release)
		n.must(t, err)

		var sum chain.Amount
		for _, o := range steps[0].Order.Outputs {
			sum = sum.Add(o.Amount)
		}

		if steps[0].PaysFee != chain.Units(pays) || sum != release.Amount ||
			len(steps[0].Order.Outputs) != int(1+pays/294) {
			t.Errorf("a fee of %d is planned as %+v", fee, steps[0])
		}
	}
}

func dustIsRefused(t *testing.T, n *node) {
	w := newWallet(t, n)
	from, to := w.party(chain.RoleMaster, 0), w.party(chain.RoleMaster, 1)
	w.pay(from.Address, 100_000)
	w.mine(1)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(to.Address, 293)},
	}
	_, err := w.d.Build(t.Context(), order)
	mustCode(t, "293 satoshi", err, fault.Invalid, "destination_not_payable")

	order.Outputs[0].Amount = chain.Units(294)
	w.testAccept(w.sign(order)) // the node agrees where dust ends
	order.Outputs[0].Amount = chain.MustAmount("2100000000000001")
	_, err = w.d.Build(t.Context(), order)
	mustCode(t, "more than there ever is", err, fault.Invalid, "destination_not_payable")
}

func replacementPaysForDescendants(t *testing.T, n *node) {
	w := newWallet(t, n)
	from, to := w.party(chain.RoleMaster, 0), w.party(chain.RoleMaster, 1)
	w.pay(from.Address, 10_000_000)
	w.mine(1)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(1_000_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(to.Address, 1_000_000)},
	}
	old := w.sign(order)
	n.must(t, w.d.Broadcast(t.Context(), old))
	child := w.sign(chain.Order{
		From:    to,
		MaxFee:  chain.Units(1_000_000),
		Outputs: []chain.Output{w.output(from.Address, 900_000)},
		// unconfirmed
		Coins: []chain.Coin{
			{Outpoint: chain.Outpoint{TxHash: old.TxHash}, Owner: to, Amount: chain.Units(1_000_000)},
		},
	})
	n.must(t, w.d.Broadcast(t.Context(), child))

	order.Replaces = &old

	replacement := w.sign(order)
	if least := old.MaxFee.Add(child.MaxFee); replacement.MaxFee.Cmp(least) <= 0 {
		t.Errorf("the replacement pays %s, what it displaces paid %s", replacement.MaxFee, least)
	}

	if !slices.Equal(replacement.Inputs, old.Inputs) {
		t.Errorf("it spends %+v, not %+v", replacement.Inputs, old.Inputs)
	}

	n.must(t, w.d.Broadcast(t.Context(), replacement))

	if status := w.status(child); status.State != chain.TxUnknown {
		t.Errorf("the displaced child is %+v", status)
	}

	w.mine(1)

	if status := w.status(replacement); status.State != chain.TxIncluded || status.Fee != replacement.MaxFee {
		t.Errorf("the replacement is %+v", status)
	}

	order.Replaces = &replacement
	_, err := w.d.Build(t.Context(), order)
	mustCode(t, "replacing what is in a block", err, fault.Unavailable, "coin_spent")

	order.Coins = nil
	_, err = w.d.Build(t.Context(), order)
	mustCode(t, "replacing without its coins", err, fault.Invalid, "replacement_invalid")
}

// A payment from outside is displaced: what displaces it shows that it spends the same output.
func replacedPaymentShowsInThePool(t *testing.T, n *node) {
	w := newWallet(t, n)
	ctx := t.Context()
	to := w.party(chain.RoleDeposit, 0).Address
	coin := n.coins[0]
	n.coins = n.coins[1:]
	send := func(to chain.Address, fee uint64) string {
		raw, err := n.spend(ctx, coin, to, chain.Units(50_000), chain.Units(fee))
		n.must(t, err)

		var txid string
		n.must(t, n.Call(ctx, &txid, "sendrawtransaction", raw, 0))

		return txid
	}
	spender := func() string {
		pool, err := w.d.Pool(ctx)
		n.must(t, err)

		for _, tx := range pool {
			for _, s := range tx.Spent {
				if s.Outpoint == (chain.Outpoint{TxHash: coin.Txid, Vout: uint32(coin.Vout)}) {
					return tx.TxHash
				}
			}
		}

		return ""
	}

	first := send(to, 2_000)
	if got := spender(); got != first {
		t.Fatalf("the pool shows the output spent by %q, want %s", got, first)
	}

	stranger, err := n.NewAddress(ctx)
	n.must(t, err)

	second := send(stranger, 20_000)
	if got := spender(); got != second || got == first {
		t.Errorf("the pool shows the output spent by %q, want %s", got, second)
	}

	if _, err := w.d.Transaction(ctx, first); !errors.Is(err, fault.NotFound) {
		t.Errorf("the displaced payment: %v", err)
	}

	w.mine(1)
	head, err := w.d.Head(ctx)
	n.must(t, err)
	blocks, err := w.d.Blocks(ctx, head.Tip.Height, head.Tip.Height)
	n.must(t, err)

	spend := chain.Spend{Outpoint: chain.Outpoint{TxHash: coin.Txid, Vout: uint32(coin.Vout)}, By: second}
	if !slices.Contains(blocks[0].Spent, spend) {
		t.Errorf("the block does not say that %s spends the output", second)
	}

	for _, x := range blocks[0].Transfers {
		if x.To == stranger && x.From == "" {
			t.Error("the one sender of a payment is not named, though the node knows it")
		}
	}
}

func spentCoinsAreNotUsed(t *testing.T, n *node) {
	w := newWallet(t, n)
	from, to := w.party(chain.RoleMaster, 0), w.party(chain.RoleMaster, 1)
	w.pay(from.Address, 500_000)
	w.mine(1)
	old := w.coins(from)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   old,
		Outputs: []chain.Output{w.output(to.Address, 300_000)},
	}
	n.must(t, w.d.Broadcast(t.Context(), w.sign(order)))
	w.pay(from.Address, 400_000)
	w.mine(1)
	_, err := w.d.Build(t.Context(), order)
	mustCode(t, "a coin that is spent", err, fault.State, "insufficient_funds")

	wrong := w.coins(from)
	for i := range wrong {
		wrong[i].Amount = wrong[i].Amount.Add(chain.Units(1_000_000))
	}

	order.Coins = wrong
	_, err = w.d.Build(t.Context(), order)
	mustCode(t, "coins with other amounts than the chain's", err, fault.State, "insufficient_funds")

	order.Coins = append(old, w.coins(from)...)
	if signed := w.sign(order); slices.Contains(signed.Inputs, old[0].Outpoint) {
		t.Errorf("it spends %+v", signed.Inputs)
	}
}

// The node's own wallet, given the key, signs what Build made.
func outsideSignerReadsThePSBT(t *testing.T, n *node) {
	w := newWallet(t, n)
	ctx := t.Context()

	var wallet string
	n.must(t, n.Call(ctx, &wallet, "getnewaddress", "", "bech32"))
	from := chain.Party{Address: chain.Address(wallet)}
	w.pay(from.Address, 500_000)
	w.mine(1)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(w.party(chain.RoleMaster, 1).Address, 300_000)},
	}
	unsigned, err := w.d.Build(ctx, order)
	n.must(t, err)

	text := base64.StdEncoding.EncodeToString(unsigned.Raw)

	var decoded struct {
		Fee json.Number
		Tx  struct{ Locktime int64 }
	}
	n.must(t, n.Call(ctx, &decoded, "decodepsbt", text))

	if want := unsigned.MaxFee.Decimal(8); !decimal.RequireFromString(decoded.Fee.String()).Equal(want) {
		t.Errorf("the node reads a fee of %s, want %s", decoded.Fee, want)
	}

	var tip int64
	n.must(t, n.Call(ctx, &tip, "getblockcount"))

	if decoded.Tx.Locktime != tip {
		t.Errorf("the lock time is %d, the tip %d", decoded.Tx.Locktime, tip)
	}

	var signed struct {
		Complete bool
		Hex      string
	}
	n.must(t, n.Call(ctx, &signed, "walletprocesspsbt", text))

	if !signed.Complete {
		t.Fatal("the wallet did not sign")
	}

	raw, err := hex.DecodeString(signed.Hex)
	n.must(t, err)
	w.testAccept(chain.Signed{Raw: raw})
}

func wrongCredentials(t *testing.T, n *node) {
	d := n.driver(t, func(c *bitcoin.Config) { c.RPC = "http://" + n.User + ":secret-guess@" + n.Addr })
	mustCode(t, "Check", d.Check(t.Context()), fault.Unavailable, "node_unauthorized")
	_, err := d.Head(t.Context())
	mustCode(t, "Head", err, fault.Unavailable, "node_unauthorized")
}

func youngBlockRewardsAreNotSpent(t *testing.T, n *node) {
	w := newWallet(t, n)
	from := w.party(chain.RoleMaster, 0)
	n.must(t, n.Call(t.Context(), nil, "generatetoaddress", 1, from.Address))
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(from.Address, 100_000)},
	}
	_, err := w.d.Build(t.Context(), order)
	mustCode(t, "a reward of one confirmation", err, fault.State, "insufficient_funds")
	w.mine(99)
	w.testAccept(w.sign(order))
}

// Another holder of the key spends the coin: the rows of blocks prove that the transaction is dead; Status never says
// so.
func deadByAForeignTransaction(t *testing.T, n *node) {
	w := newWallet(t, n)
	from := w.party(chain.RoleMaster, 0)
	w.pay(from.Address, 500_000)
	w.mine(1)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(from.Address, 100_000)},
	}
	ours := w.sign(order)
	order.Outputs[0].Amount = chain.Units(200_000)
	n.must(t, w.d.Broadcast(t.Context(), w.sign(order)))

	if status := w.status(ours); status.State != chain.TxUnknown {
		t.Errorf("while the rival waits it is %+v", status)
	}

	if err := w.d.Broadcast(t.Context(), ours); !errors.Is(err, fault.Unavailable) {
		t.Errorf("Broadcast against the rival: %v", err)
	}

	w.mine(1)

	if status := w.status(ours); status.State != chain.TxUnknown {
		t.Errorf("after one block it is %+v", status)
	}

	n.must(t, n.Fork(t.Context(), 1))

	if status := w.status(ours); status.State != chain.TxUnknown {
		t.Errorf("after the rival's block left the chain it is %+v", status)
	}

	w.mine(2)

	if status := w.status(ours); status.State != chain.TxUnknown || !w.displaced(ours, 2) {
		t.Errorf("after two blocks it is %+v", status)
	}
}

func poolOffShowsNothing(t *testing.T, n *node) {
	w := newWallet(t, n, func(c *bitcoin.Config) { c.PoolLimit = -1 })
	w.pay(w.party(chain.RoleDeposit, 0).Address, 50_000)

	if pool, err := w.d.Pool(t.Context()); err != nil || len(pool) != 0 {
		t.Errorf("%d transactions, %v", len(pool), err)
	}

	w.mine(1)
}

// TestPrunedNodeStops is pitfall 9. Sending needs neither old blocks nor an index of transactions.
func TestPrunedNodeStops(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{NoTxIndex: true, Args: []string{"-prune=1", "-fastprune"}})
	ctx := t.Context()

	var coins []outpoint
	n.must(t, n.Call(ctx, &coins, "listunspent"))
	n.must(t, n.Mine(ctx, 900))

	var lowest uint64
	n.must(t, n.Call(ctx, &lowest, "pruneblockchain", 500))

	var info struct{ Pruneheight uint64 }
	n.must(t, n.Call(ctx, &info, "getblockchaininfo"))

	if info.Pruneheight < 100 {
		t.Fatalf("the node pruned nothing: %d", info.Pruneheight)
	}

	w := newWallet(t, n)
	below := info.Pruneheight - 1
	_, err := w.d.RefAt(ctx, below)
	mustCode(t, "RefAt", err, fault.Stopped, "node_pruned")
	blocks, err := w.d.Blocks(ctx, below, below+5)
	mustCode(t, "Blocks", err, fault.Stopped, "node_pruned")

	if len(blocks) != 0 {
		t.Errorf("%d blocks beside the error", len(blocks))
	}

	if blocks, err := w.d.Blocks(ctx, info.Pruneheight, info.Pruneheight+2); err != nil || len(blocks) != 3 {
		t.Errorf("the blocks that are left: %d, %v", len(blocks), err)
	}

	from := w.party(chain.RoleMaster, 0)
	n.must(t, n.Call(ctx, nil, "sendtoaddress", from.Address, 1))
	w.mine(1)
	order := chain.Order{
		From:    from,
		MaxFee:  chain.Units(100_000),
		Coins:   w.coins(from),
		Outputs: []chain.Output{w.output(from.Address, 100_000)},
	}
	signed := w.sign(order)
	n.must(t, w.d.Broadcast(ctx, signed))

	if status := w.status(signed); status.State != chain.TxPooled {
		t.Errorf("waiting it is %+v", status)
	}

	w.mine(1)

	if status := w.status(
		signed,
	); status.State != chain.TxIncluded || status.Final ||
		status.Fee != signed.MaxFee {
		t.Errorf("in a block it is %+v", status)
	}

	w.mine(1)

	if status := w.status(signed); status.State != chain.TxIncluded || !status.Final {
		t.Errorf("two deep it is %+v", status)
	}

	_, err = w.d.Transaction(ctx, signed.TxHash)
	mustCode(t, "Transaction without an index", err, fault.Unavailable, "txindex_missing")
}
