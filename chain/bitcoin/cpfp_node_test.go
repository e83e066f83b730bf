//go:build unix

package bitcoin_test

// Child pays for parent on a real node whose miner leaves out what pays less than 5 satoshi per vB.

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
	"github.com/seed-8ee7f392/payments/internal/testenv"
)

func TestLiftOnRegtest(t *testing.T) {
	n := startNode(t, testenv.BitcoindOptions{Args: []string{"-blockmintxfee=0.00005"}}).rich(t, 1)
	for name, test := range map[string]func(*lifter){
		"BothAreIncluded":              bothAreIncluded,
		"RaisedWhenRatesRise":          raisedWhenRatesRise,
		"DeadWithItsParent":            func(l *lifter) { l.deadWith(false) },
		"DeadWithItsParentsParent":     func(l *lifter) { l.deadWith(true) },
		"AliveWhenItsParentIsIncluded": aliveWhenItsParentIsIncluded,
		"NotWorthIt":                   notWorthIt,
		"TwoPaymentsInOne":             twoPaymentsInOne,
		"ParentOfVersionThree":         parentOfVersionThree,
	} {
		t.Run(name, func(t *testing.T) { test(newLifter(t, n)) })
	}
}

// lifter is a purse whose master wallet has two coins, and a deposit address.
type lifter struct {
	*purse
	master, deposit chain.Party
}

const lifted = 1_000_000 // satoshi of each payment

// cpfpBump configures a driver to lift, at a rate whatever the node estimates.
func cpfpBump(rate uint64) func(*bitcoin.Config) {
	return func(c *bitcoin.Config) { c.LiftMaxFee, c.MinFeeRate, c.MaxFeeRate = 50_000, rate, rate }
}

func newLifter(t *testing.T, n *node) *lifter {
	p := newPurse(t, n, cpfpBump(10_000))
	l := &lifter{purse: p, master: p.party(chain.RoleMaster, 0), deposit: p.party(chain.RoleDeposit, 1)}
	p.pay(l.master.Address, 300_000)
	p.pay(l.master.Address, 200_000)
	p.mine(1)

	return l
}

// cheap pays the deposit address at a little more than a satoshi per vB, which waits.
func (l *lifter) cheap() chain.Coin {
	l.t.Helper()
	raw, err := l.n.signedAt(l.t.Context(), l.deposit.Address, chain.Units(lifted), chain.Units(200))
	l.n.must(l.t, err)

	return l.send(raw)
}

func (l *lifter) send(raw string) chain.Coin {
	l.t.Helper()

	var hash string
	l.n.must(l.t, l.n.Call(l.t.Context(), &hash, "sendrawtransaction", raw, 0))

	return chain.Coin{Outpoint: chain.Outpoint{TxHash: hash}, Owner: l.deposit, Amount: chain.Units(lifted)}
}

func (l *lifter) lift(c chain.Coin) chain.Order {
	l.t.Helper()
	order, ok, err := l.d.Lift(l.t.Context(), c, l.master, l.coins(l.master))
	l.n.must(l.t, err)

	if !ok {
		l.t.Fatalf("%+v is not to be lifted", c)
	}

	order.Coins = l.coins(l.master)

	return order
}

func (l *lifter) waits(hash string) bool {
	l.t.Helper()

	var pool []string
	l.n.must(l.t, l.n.Call(l.t.Context(), &pool, "getrawmempool"))

	return slices.Contains(pool, hash)
}

func bothAreIncluded(l *lifter) {
	coin := l.cheap()
	l.mine(1)

	if !l.waits(coin.Outpoint.TxHash) {
		l.t.Fatal("the miner takes the payment as it is")
	}

	before := l.coins(l.master)

	order := l.lift(coin)
	if order.From != l.master || len(order.Outputs) != 1 ||
		order.Outputs[0] != l.output(l.deposit.Address, lifted) ||
		chain.Units(50_000).Less(order.MaxFee) {
		l.t.Errorf("the order is %+v", order)
	}

	child := l.sign(order)
	if !slices.Contains(child.Inputs, coin.Outpoint) || len(child.RestsOn) != 1 ||
		child.RestsOn[0].By != coin.Outpoint.TxHash {
		l.t.Errorf("it spends %+v and rests on %+v", child.Inputs, child.RestsOn)
	}

	l.n.must(l.t, l.d.Broadcast(l.t.Context(), child))

	var entry struct {
		Size int64 `json:"ancestorsize"`
		Fees struct{ Ancestor json.Number }
	}
	l.n.must(l.t, l.n.Call(l.t.Context(), &entry, "getmempoolentry", child.TxHash))

	paid, _ := child.MaxFee.Uint64()
	if rate := float64(paid+200) / float64(entry.Size); rate < 10 || rate > 10.1 {
		l.t.Errorf(
			"both together pay %s for %d vB, %.2f satoshi per vB: want 10",
			entry.Fees.Ancestor, entry.Size, rate,
		)
	}

	if again, ok, err := l.d.Lift(l.t.Context(), coin, l.master, before); ok || err != nil {
		l.t.Errorf("what is lifted is lifted again: %+v, %v", again, err)
	}

	l.mine(1)

	if l.waits(coin.Outpoint.TxHash) || l.waits(child.TxHash) {
		l.t.Error("they still wait")
	}

	if s := l.status(child); s.State != chain.TxIncluded || s.Fee != child.MaxFee {
		l.t.Errorf("the child is %+v", s)
	}

	if now := l.coins(
		l.deposit,
	); len(now) != 1 || now[0].Amount != coin.Amount ||
		now[0].Outpoint != (chain.Outpoint{TxHash: child.TxHash}) {
		l.t.Errorf("the deposit address holds %+v", now)
	}

	if was, is := total(before), total(l.coins(l.master)); was.Sub(is) != child.MaxFee {
		l.t.Errorf("the wallet had %s and has %s, the fee was %s", was, is, child.MaxFee)
	}
}

func total(coins []chain.Coin) (sum chain.Amount) {
	for _, c := range coins {
		sum = sum.Add(c.Amount)
	}

	return sum
}

func raisedWhenRatesRise(l *lifter) {
	coin := l.cheap()
	order := l.lift(coin)
	first := l.sign(order)
	l.n.must(l.t, l.d.Broadcast(l.t.Context(), first))
	order.Replaces = &first
	_, err := l.d.Build(l.t.Context(), order)
	mustCode(l.t, "raising what pays enough", err, fault.State, "lift_enough")
	l.d = l.n.driver(l.t, cpfpBump(20_000))

	second := l.sign(order)
	if !slices.Contains(second.Inputs, coin.Outpoint) || second.Outputs[0] != order.Outputs[0] {
		l.t.Errorf("the replacement spends %+v and pays %+v", second.Inputs, second.Outputs)
	}

	l.n.must(l.t, l.d.Broadcast(l.t.Context(), second))

	if l.waits(first.TxHash) || !l.waits(second.TxHash) {
		l.t.Error("the pool has the first one")
	}

	l.mine(2)

	if s := l.status(first); s.State != chain.TxDead || s.Death != chain.DeathConflict {
		l.t.Errorf("the first one is %+v", s)
	}

	if s := l.status(second); s.State != chain.TxIncluded || !s.Final {
		l.t.Errorf("the second one is %+v", s)
	}
}

// Of all that it spends nothing is ever spent by another one: its parent's coin is, or that of its
// parent's parent.
func (l *lifter) deadWith(grandparent bool) {
	t, n, ctx := l.t, l.n, l.t.Context()
	root := n.coins[0]

	var coin chain.Coin

	if grandparent {
		n.coins = n.coins[1:]
		between, err := n.NewAddress(ctx)
		n.must(t, err)
		raw, err := n.spend(ctx, root, between, chain.Units(2_000_000), chain.Units(200))
		n.must(t, err)

		first := l.send(raw)

		var signed struct{ Hex string }

		n.must(
			t,
			n.Call(
				ctx, &raw, "createrawtransaction", []outpoint{{first.Outpoint.TxHash, 0}},
				[]map[chain.Address]json.Number{{l.deposit.Address: "0.01"}, {between: "0.00999800"}},
			),
		)
		n.must(t, n.Call(ctx, &signed, "signrawtransactionwithwallet", raw))
		coin = l.send(signed.Hex)
	} else {
		coin = l.cheap()
	}

	child := l.sign(l.lift(coin))
	n.must(t, l.d.Broadcast(ctx, child))
	elsewhere, err := n.NewAddress(ctx)
	n.must(t, err)
	rival, err := n.spend(ctx, root, elsewhere, chain.Units(lifted), chain.Units(60_000))
	n.must(t, err)
	l.send(rival)

	if l.waits(coin.Outpoint.TxHash) || l.waits(child.TxHash) {
		t.Fatal("the payment was not replaced")
	}

	unknown := func(when string) {
		t.Helper()

		if s := l.status(child); s.State != chain.TxUnknown {
			t.Errorf("%s it is %+v", when, s)
		}
	}
	unknown("while the rival waits")

	if err := l.d.Broadcast(ctx, child); !errors.Is(err, fault.Unavailable) {
		t.Errorf("Broadcast without the parent: %v", err)
	}

	l.mine(1)
	unknown("after one block")
	n.must(t, n.Fork(ctx, 1))
	unknown("after the rival's block left the chain")
	l.mine(2)

	if s := l.status(child); s.State != chain.TxDead || s.Death != chain.DeathConflict {
		t.Errorf("after two blocks it is %+v", s)
	}
}

// Its parent's coin is spent by its parent, which is no conflict.
func aliveWhenItsParentIsIncluded(l *lifter) {
	t, n, ctx := l.t, l.n, l.t.Context()
	coin := l.cheap()
	order := l.lift(coin)
	child := l.sign(order)
	miner, err := n.NewAddress(ctx)
	n.must(t, err)
	n.must(t, n.Call(ctx, nil, "generateblock", miner, []string{coin.Outpoint.TxHash}))
	l.mine(2)

	if s := l.status(child); s.State != chain.TxUnknown {
		t.Errorf("it was never sent and is %+v", s)
	}

	_, err = l.d.Build(ctx, order)
	mustCode(t, "lifting what is in a block", err, fault.NotFound, "lift_over")

	if _, ok, err := l.d.Lift(ctx, coin, l.master, l.coins(l.master)); ok || err != nil {
		t.Errorf("what is in a block is lifted: %v", err)
	}

	n.must(t, l.d.Broadcast(ctx, child))
	l.mine(1)

	if s := l.status(child); s.State != chain.TxIncluded {
		t.Errorf("in a block it is %+v", s)
	}
}

func notWorthIt(l *lifter) {
	coin := l.cheap()
	for name, change := range map[string]func(*bitcoin.Config){
		"off":              func(c *bitcoin.Config) { c.LiftMaxFee = 0 },
		"a low ceiling":    func(c *bitcoin.Config) { c.LiftMaxFee = 2_000 },
		"rates fell":       cpfpBump(1_000),
		"more than a part": func(c *bitcoin.Config) { cpfpBump(400_000)(c); c.LiftMaxFee = 10_000_000 },
	} {
		d := l.n.driver(l.t, cpfpBump(10_000), change)
		if order, ok, err := d.Lift(l.t.Context(), coin, l.master, l.coins(l.master)); ok || err != nil {
			l.t.Errorf("%s: %+v, %v", name, order, err)
		}
	}

	if order, ok, err := l.d.Lift(l.t.Context(), coin, l.master, nil); ok || err != nil {
		l.t.Errorf("without coins: %+v, %v", order, err)
	}

	other := coin

	other.Amount = chain.Units(lifted + 1)
	if order, ok, err := l.d.Lift(l.t.Context(), other, l.master, l.coins(l.master)); ok || err != nil {
		l.t.Errorf("another amount than the output's: %+v, %v", order, err)
	}

	l.n.must(l.t, l.n.Call(l.t.Context(), nil, "prioritisetransaction", coin.Outpoint.TxHash, 0, 10_000))

	if order, ok, err := l.d.Lift(l.t.Context(), coin, l.master, l.coins(l.master)); ok || err != nil {
		l.t.Errorf("what is in front of the miner's queue: %+v, %v", order, err)
	}

	l.mine(1)
}

// Where one transaction makes two payments, one lift is enough.
func twoPaymentsInOne(l *lifter) {
	t, n, ctx := l.t, l.n, l.t.Context()
	second := l.party(chain.RoleDeposit, 2)
	in := n.coins[0]
	n.coins = n.coins[1:]

	var (
		raw    string
		signed struct{ Hex string }
	)

	n.must(
		t,
		n.Call(
			ctx, &raw, "createrawtransaction", []outpoint{in},
			[]map[chain.Address]json.Number{{l.deposit.Address: "0.01"}, {second.Address: "1.98999800"}},
		),
	)
	n.must(t, n.Call(ctx, &signed, "signrawtransactionwithwallet", raw))
	coin := l.send(signed.Hex)
	other := chain.Coin{
		Outpoint: chain.Outpoint{TxHash: coin.Outpoint.TxHash, Vout: 1},
		Owner:    second,
		Amount:   chain.Units(198_999_800),
	}
	waiting := l.lift(other)
	child := l.sign(l.lift(coin))
	n.must(t, l.d.Broadcast(ctx, child))

	if order, ok, err := l.d.Lift(ctx, other, l.master, l.coins(l.master)); ok || err != nil {
		t.Errorf("the second one is lifted as well: %+v, %v", order, err)
	}

	waiting.Coins = l.coins(l.master)
	_, err := l.d.Build(ctx, waiting)
	mustCode(t, "the second one, when it was queued before", err, fault.NotFound, "lift_over")
	l.mine(1)

	if l.waits(coin.Outpoint.TxHash) {
		t.Error("they still wait")
	}
}

// The children of such a transaction have to be of its version and small, which ours are not.
func parentOfVersionThree(l *lifter) {
	t, n, ctx := l.t, l.n, l.t.Context()
	raw, err := n.signedAt(ctx, l.deposit.Address, chain.Units(lifted), chain.Units(200))
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

	coin := l.send(signed.Hex)
	if order, ok, err := l.d.Lift(ctx, coin, l.master, l.coins(l.master)); ok || err != nil {
		t.Errorf("it is lifted: %+v, %v", order, err)
	}

	n.must(t, n.Call(ctx, nil, "prioritisetransaction", coin.Outpoint.TxHash, 0, 10_000))
	l.mine(1)
}
