//go:build unix

package bitcoin_test

// Child pays for parent on a real node whose miner includes nothing below 5 satoshi per vB.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

func TestCPFPOnRegtest(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{Args: []string{"-blockmintxfee=0.00005"}}).withCoins(t, 1)
	for name, test := range map[string]func(*cpfpFixture){
		"BothAreIncluded":              bothAreIncluded,
		"RaisedWhenRatesRise":          raisedWhenRatesRise,
		"DeadWithItsParent":            func(f *cpfpFixture) { f.deadWith(false) },
		"DeadWithItsParentsParent":     func(f *cpfpFixture) { f.deadWith(true) },
		"AliveWhenItsParentIsIncluded": aliveWhenItsParentIsIncluded,
		"NotWorthIt":                   notWorthIt,
		"TwoPaymentsInOne":             twoPaymentsInOne,
		"ParentOfVersionThree":         parentOfVersionThree,
	} {
		t.Run(name, func(t *testing.T) { test(newCPFPFixture(t, n)) })
	}
}

// cpfpFixture is a wallet whose master address has two coins, and a deposit address.
type cpfpFixture struct {
	*wallet
	master, deposit chain.Party
}

const paymentAmount = 1_000_000 // of each payment, in satoshi

// cpfpConfig enables bumps at a fixed fee rate, in satoshi per 1000 vB.
func cpfpConfig(rate uint64) func(*bitcoin.Config) {
	return func(c *bitcoin.Config) { c.CPFPMaxFee, c.MinFeeRate, c.MaxFeeRate = 50_000, rate, rate }
}

func newCPFPFixture(t *testing.T, n *node) *cpfpFixture {
	w := newWallet(t, n, cpfpConfig(10_000))
	f := &cpfpFixture{wallet: w, master: w.party(chain.RoleMaster, 0), deposit: w.party(chain.RoleDeposit, 1)}
	w.pay(f.master.Address, 300_000)
	w.pay(f.master.Address, 200_000)
	w.mine(1)

	return f
}

// payLow pays the deposit address at about a satoshi per vB, too low to be mined.
func (f *cpfpFixture) payLow() chain.Coin {
	f.t.Helper()
	raw, err := f.n.signedPaymentAt(
		f.t.Context(), f.deposit.Address, chain.Units(paymentAmount), chain.Units(200),
	)
	f.n.must(f.t, err)

	return f.send(raw)
}

func (f *cpfpFixture) send(raw string) chain.Coin {
	f.t.Helper()

	var hash string
	f.n.must(f.t, f.n.Call(f.t.Context(), &hash, "sendrawtransaction", raw, 0))

	return chain.Coin{
		Outpoint: chain.Outpoint{TxHash: hash},
		Owner:    f.deposit,
		Amount:   chain.Units(paymentAmount),
	}
}

func (f *cpfpFixture) bump(coin chain.Coin) chain.Order {
	f.t.Helper()
	order, ok, err := f.d.Bump(f.t.Context(), coin, f.master, f.coins(f.master))
	f.n.must(f.t, err)

	if !ok {
		f.t.Fatalf("%+v is not bumped", coin)
	}

	order.Coins = f.coins(f.master)

	return order
}

func (f *cpfpFixture) inMempool(hash string) bool {
	f.t.Helper()

	var pool []string
	f.n.must(f.t, f.n.Call(f.t.Context(), &pool, "getrawmempool"))

	return slices.Contains(pool, hash)
}

func bothAreIncluded(f *cpfpFixture) {
	coin := f.payLow()
	f.mine(1)

	if !f.inMempool(coin.Outpoint.TxHash) {
		f.t.Fatal("the miner takes the payment as it is")
	}

	before := f.coins(f.master)

	order := f.bump(coin)
	if order.From != f.master || len(order.Outputs) != 1 ||
		order.Outputs[0] != f.output(f.deposit.Address, paymentAmount) ||
		chain.Units(50_000).Less(order.MaxFee) {
		f.t.Errorf("the order is %+v", order)
	}

	child := f.sign(order)
	if !slices.Contains(child.Inputs, coin.Outpoint) || len(child.UnconfirmedParents) != 1 ||
		child.UnconfirmedParents[0].By != coin.Outpoint.TxHash {
		f.t.Errorf("it spends %+v and rests on %+v", child.Inputs, child.UnconfirmedParents)
	}

	f.n.must(f.t, f.d.Broadcast(f.t.Context(), child))

	var entry struct {
		Size int64 `json:"ancestorsize"`
		Fees struct{ Ancestor json.Number }
	}
	f.n.must(f.t, f.n.Call(f.t.Context(), &entry, "getmempoolentry", child.TxHash))

	paid, _ := child.MaxFee.Uint64()
	if rate := float64(paid+200) / float64(entry.Size); rate < 10 || rate > 10.1 {
		f.t.Errorf(
			"both together pay %s for %d vB, %.2f satoshi per vB: want 10",
			entry.Fees.Ancestor, entry.Size, rate,
		)
	}

	if second, ok, err := f.d.Bump(f.t.Context(), coin, f.master, before); ok || err != nil {
		f.t.Errorf("the coin is bumped twice: %+v, %v", second, err)
	}

	f.mine(1)

	if f.inMempool(coin.Outpoint.TxHash) || f.inMempool(child.TxHash) {
		f.t.Error("they still wait")
	}

	if status := f.status(child); status.State != chain.TxIncluded || status.Fee != child.MaxFee {
		f.t.Errorf("the child is %+v", status)
	}

	now := f.coins(f.deposit)
	if len(now) != 1 || now[0].Amount != coin.Amount ||
		now[0].Outpoint != (chain.Outpoint{TxHash: child.TxHash}) {
		f.t.Errorf("the deposit address holds %+v", now)
	}

	if was, is := total(before), total(f.coins(f.master)); was.Sub(is) != child.MaxFee {
		f.t.Errorf("the wallet had %s and has %s, the fee was %s", was, is, child.MaxFee)
	}
}

func total(coins []chain.Coin) (sum chain.Amount) {
	for _, coin := range coins {
		sum = sum.Add(coin.Amount)
	}

	return sum
}

func raisedWhenRatesRise(f *cpfpFixture) {
	coin := f.payLow()
	order := f.bump(coin)
	first := f.sign(order)
	f.n.must(f.t, f.d.Broadcast(f.t.Context(), first))
	order.Replaces = &first
	_, err := f.d.Build(f.t.Context(), order)
	mustCode(f.t, "raising what pays enough", err, fault.State, "bump_sufficient")
	f.d = f.n.driver(f.t, cpfpConfig(20_000))

	second := f.sign(order)
	if !slices.Contains(second.Inputs, coin.Outpoint) || second.Outputs[0] != order.Outputs[0] {
		f.t.Errorf("the replacement spends %+v and pays %+v", second.Inputs, second.Outputs)
	}

	f.n.must(f.t, f.d.Broadcast(f.t.Context(), second))

	if f.inMempool(first.TxHash) || !f.inMempool(second.TxHash) {
		f.t.Error("the pool has the first one")
	}

	f.mine(2)

	if status := f.status(first); status.State != chain.TxUnknown || !f.displaced(first, 2) {
		f.t.Errorf("the first one is %+v", status)
	}

	if status := f.status(second); status.State != chain.TxIncluded || !status.Final {
		f.t.Errorf("the second one is %+v", status)
	}
}

// The child's own inputs are never spent by another transaction. A coin of its parent is, or of its parent's
// parent.
func (f *cpfpFixture) deadWith(grandparent bool) {
	t, n, ctx := f.t, f.n, f.t.Context()
	root := n.coins[0]

	var coin chain.Coin

	if grandparent {
		n.coins = n.coins[1:]
		between, err := n.NewAddress(ctx)
		n.must(t, err)
		raw, err := n.spend(ctx, root, between, chain.Units(2_000_000), chain.Units(200))
		n.must(t, err)

		first := f.send(raw)

		var signed struct{ Hex string }

		n.must(t, n.Call(
			ctx, &raw, "createrawtransaction", []outpoint{{first.Outpoint.TxHash, 0}},
			[]map[chain.Address]json.Number{{f.deposit.Address: "0.01"}, {between: "0.00999800"}},
		))
		n.must(t, n.Call(ctx, &signed, "signrawtransactionwithwallet", raw))
		coin = f.send(signed.Hex)
	} else {
		coin = f.payLow()
	}

	child := f.sign(f.bump(coin))
	n.must(t, f.d.Broadcast(ctx, child))
	elsewhere, err := n.NewAddress(ctx)
	n.must(t, err)
	rival, err := n.spend(ctx, root, elsewhere, chain.Units(paymentAmount), chain.Units(60_000))
	n.must(t, err)
	f.send(rival)

	if f.inMempool(coin.Outpoint.TxHash) || f.inMempool(child.TxHash) {
		t.Fatal("the payment was not replaced")
	}

	unknown := func(when string) {
		t.Helper()

		if status := f.status(child); status.State != chain.TxUnknown {
			t.Errorf("%s it is %+v", when, status)
		}
	}
	unknown("while the rival waits")

	if err := f.d.Broadcast(ctx, child); !errors.Is(err, fault.Unavailable) {
		t.Errorf("Broadcast without the parent: %v", err)
	}

	f.mine(1)
	unknown("after one block")
	n.must(t, n.Fork(ctx, 1))
	unknown("after the rival's block left the chain")
	f.mine(2)

	if status := f.status(child); status.State != chain.TxUnknown || !f.displaced(child, 2) {
		t.Errorf("after two blocks it is %+v", status)
	}
}

// A coin that the parent itself spends is no conflict.
func aliveWhenItsParentIsIncluded(f *cpfpFixture) {
	t, n, ctx := f.t, f.n, f.t.Context()
	coin := f.payLow()
	order := f.bump(coin)
	child := f.sign(order)
	miner, err := n.NewAddress(ctx)
	n.must(t, err)
	n.must(t, n.Call(ctx, nil, "generateblock", miner, []string{coin.Outpoint.TxHash}))
	f.mine(2)

	if status := f.status(child); status.State != chain.TxUnknown {
		t.Errorf("it was never sent and is %+v", status)
	}

	_, err = f.d.Build(ctx, order)
	mustCode(t, "bumping what is in a block", err, fault.NotFound, "bump_not_needed")

	if _, ok, err := f.d.Bump(ctx, coin, f.master, f.coins(f.master)); ok || err != nil {
		t.Errorf("what is in a block is bumped: %v", err)
	}

	n.must(t, f.d.Broadcast(ctx, child))
	f.mine(1)

	if status := f.status(child); status.State != chain.TxIncluded {
		t.Errorf("in a block it is %+v", status)
	}
}

func notWorthIt(f *cpfpFixture) {
	coin := f.payLow()
	for name, change := range map[string]func(*bitcoin.Config){
		"off":              func(c *bitcoin.Config) { c.CPFPMaxFee = 0 },
		"a low ceiling":    func(c *bitcoin.Config) { c.CPFPMaxFee = 2_000 },
		"rates fell":       cpfpConfig(1_000),
		"more than a part": func(c *bitcoin.Config) { cpfpConfig(400_000)(c); c.CPFPMaxFee = 10_000_000 },
	} {
		d := f.n.driver(f.t, cpfpConfig(10_000), change)
		if order, ok, err := d.Bump(f.t.Context(), coin, f.master, f.coins(f.master)); ok || err != nil {
			f.t.Errorf("%s: %+v, %v", name, order, err)
		}
	}

	if order, ok, err := f.d.Bump(f.t.Context(), coin, f.master, nil); ok || err != nil {
		f.t.Errorf("without coins: %+v, %v", order, err)
	}

	other := coin

	other.Amount = chain.Units(paymentAmount + 1)
	if order, ok, err := f.d.Bump(f.t.Context(), other, f.master, f.coins(f.master)); ok || err != nil {
		f.t.Errorf("another amount than the output's: %+v, %v", order, err)
	}

	f.n.must(f.t, f.n.Call(f.t.Context(), nil, "prioritisetransaction", coin.Outpoint.TxHash, 0, 10_000))

	if order, ok, err := f.d.Bump(f.t.Context(), coin, f.master, f.coins(f.master)); ok || err != nil {
		f.t.Errorf("what is in front of the miner's queue: %+v, %v", order, err)
	}

	f.mine(1)
}

// One bump is enough for a transaction with two payments.
func twoPaymentsInOne(f *cpfpFixture) {
	t, n, ctx := f.t, f.n, f.t.Context()
	second := f.party(chain.RoleDeposit, 2)
	in := n.coins[0]
	n.coins = n.coins[1:]

	var (
		raw    string
		signed struct{ Hex string }
	)

	n.must(t, n.Call(
		ctx, &raw, "createrawtransaction", []outpoint{in},
		[]map[chain.Address]json.Number{{f.deposit.Address: "0.01"}, {second.Address: "1.98999800"}},
	))
	n.must(t, n.Call(ctx, &signed, "signrawtransactionwithwallet", raw))
	coin := f.send(signed.Hex)
	other := chain.Coin{
		Outpoint: chain.Outpoint{TxHash: coin.Outpoint.TxHash, Vout: 1},
		Owner:    second,
		Amount:   chain.Units(198_999_800),
	}
	waiting := f.bump(other)
	child := f.sign(f.bump(coin))
	n.must(t, f.d.Broadcast(ctx, child))

	if order, ok, err := f.d.Bump(ctx, other, f.master, f.coins(f.master)); ok || err != nil {
		t.Errorf("the second one is bumped as well: %+v, %v", order, err)
	}

	waiting.Coins = f.coins(f.master)
	_, err := f.d.Build(ctx, waiting)
	mustCode(t, "the second one, when it was queued before", err, fault.NotFound, "bump_not_needed")
	f.mine(1)

	if f.inMempool(coin.Outpoint.TxHash) {
		t.Error("they still wait")
	}
}

// The children of such a transaction have to be of its version and small, which ours are not.
func parentOfVersionThree(f *cpfpFixture) {
	t, n, ctx := f.t, f.n, f.t.Context()
	raw, err := n.signedPaymentAt(ctx, f.deposit.Address, chain.Units(paymentAmount), chain.Units(200))
	n.must(t, err)
	bytesOf, err := hex.DecodeString(raw)
	n.must(t, err)

	tx := new(wire.MsgTx)
	n.must(t, tx.Deserialize(bytes.NewReader(bytesOf)))
	tx.Version = 3

	var again bytes.Buffer
	n.must(t, tx.SerializeNoWitness(&again))

	var signed struct{ Hex string }
	n.must(t, n.Call(ctx, &signed, "signrawtransactionwithwallet", hex.EncodeToString(again.Bytes())))

	coin := f.send(signed.Hex)
	if order, ok, err := f.d.Bump(ctx, coin, f.master, f.coins(f.master)); ok || err != nil {
		t.Errorf("it is bumped: %+v, %v", order, err)
	}

	n.must(t, n.Call(ctx, nil, "prioritisetransaction", coin.Outpoint.TxHash, 0, 10_000))
	f.mine(1)
}
