package bitcoin

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
)

var (
	scriptP2WPKH = append([]byte{0x00, 20}, make([]byte, 20)...)
	scriptP2TR   = append([]byte{0x51, 32}, make([]byte, 32)...)
)

func coinsOf(values ...int64) []candidate {
	out := make([]candidate, len(values))
	for i, v := range values {
		out[i] = candidate{
			Coin: chain.Coin{
				Outpoint: chain.Outpoint{TxHash: fmt.Sprintf("%064d", i)},
				Amount:   satoshiAmount(v),
				Height:   1,
			},
			value:  v,
			script: scriptP2WPKH,
		}
	}

	return out
}

func valuesOf(selected selection) []int64 {
	var out []int64
	for _, coin := range selected.coins {
		out = append(out, coin.value)
	}

	slices.Sort(out)

	return out
}

func targetOf(payments int64) coinTarget {
	return coinTarget{
		total:        payments,
		outputs:      []*wire.TxOut{wire.NewTxOut(payments, scriptP2WPKH)},
		changeScript: scriptP2WPKH,
	}
}

func TestDustLimits(t *testing.T) {
	// As Bitcoin Core has them at its default rate.
	for name, c := range map[string]struct {
		script []byte
		want   int64
	}{
		"P2PKH":  {append([]byte{0x76, 0xa9, 20}, make([]byte, 22)...), 546},
		"P2SH":   {append([]byte{0xa9, 20}, make([]byte, 21)...), 540},
		"P2WPKH": {scriptP2WPKH, 294},
		"P2WSH":  {append([]byte{0x00, 32}, make([]byte, 32)...), 330},
		"P2TR":   {scriptP2TR, 330},
	} {
		if got := dustLimit(c.script); got != c.want {
			t.Errorf("the dust limit of %s is %d, want %d", name, got, c.want)
		}
	}
}

func TestFeesAreRoundedUp(t *testing.T) {
	for _, c := range []struct{ rate, weight, want int64 }{
		{1000, 4, 1},
		{1000, 5, 2},
		{1500, 400, 150},
		{1, 1, 1},
		{0, 400, 0},
	} {
		if got := feeAt(c.rate, c.weight); got != c.want {
			t.Errorf("feeAt(%d, %d) = %d, want %d", c.rate, c.weight, got, c.want)
		}
	}
}

func TestSelection(t *testing.T) {
	cheap, dear := feePolicy{rate: 1_000}, feePolicy{rate: 100_000}
	// One input, one output, no change at 1 satoshi per vB: 110 vB; change adds 31, an input 68.
	for _, c := range []struct {
		name   string
		need   coinTarget
		price  feePolicy
		coins  []int64
		want   []int64
		change bool
	}{
		{"one that matches", targetOf(10_000), cheap, []int64{50_000, 10_110, 9_000}, []int64{10_110}, false},
		{"two that match", targetOf(10_000), dear, []int64{15_050, 12_750, 3_000}, []int64{12_750, 15_050}, false},
		{"change when nothing matches", targetOf(10_000), cheap, []int64{1_000_000}, []int64{1_000_000}, true},
		{
			"few coins when fees are high",
			targetOf(100_000),
			dear,
			[]int64{60_000, 60_000, 60_000, 900_000},
			[]int64{900_000},
			true,
		},
		{"worthless coins stay", targetOf(10_000), dear, []int64{500, 600, 700, 200_000}, []int64{200_000}, true},
		{"a rest of dust goes to the miner", targetOf(10_000), cheap, []int64{10_434}, []int64{10_434}, false},
		{"a rest above dust is change", targetOf(10_000), cheap, []int64{10_435}, []int64{10_435}, true},
		{
			"several when none is enough",
			targetOf(150_000),
			cheap,
			[]int64{100_000, 90_000, 1_000},
			[]int64{90_000, 100_000},
			true,
		},
	} {
		selected, err := selectCoins(c.need, c.price, coinsOf(c.coins...), nil)
		if err != nil || !slices.Equal(valuesOf(selected), c.want) || (selected.change > 0) != c.change {
			t.Errorf(
				"%s: chose %v with fee %d and change %d, %v; want %v",
				c.name, valuesOf(selected), selected.fee, selected.change, err, c.want,
			)
		}
	}
}

func TestSweepTakesItsOwnCoins(t *testing.T) {
	target := targetOf(60_000)
	target.subtractFee = true

	selected, err := selectCoins(
		target, feePolicy{rate: 1_000}, coinsOf(100_000, 30_000, 25_000, 10_000, 20_000, 999), nil,
	)
	if err != nil || !slices.Equal(valuesOf(selected), []int64{10_000, 20_000, 30_000}) ||
		selected.change != 0 {
		t.Errorf("chose %v, change %d, %v", valuesOf(selected), selected.change, err)
	}
	// The rest would be dust: neither lost to the fee nor paid to somebody else.
	selected, err = selectCoins(target, feePolicy{rate: 1_000}, coinsOf(60_100), nil)
	if !errors.Is(err, errInexact) {
		t.Errorf("chose %v of a coin with a rest of dust, %v", valuesOf(selected), err)
	}
}

func TestUnconfirmedCoinsAreTheLast(t *testing.T) {
	coins := coinsOf(10_110, 50_000)

	coins[0].Height = 0

	selected, err := selectCoins(targetOf(10_000), feePolicy{rate: 1_000}, coins, nil)
	if err != nil || !slices.Equal(valuesOf(selected), []int64{50_000}) {
		t.Errorf("chose %v, %v while a confirmed coin is enough", valuesOf(selected), err)
	}

	selected, err = selectCoins(targetOf(55_000), feePolicy{rate: 1_000}, coins, nil)
	if err != nil || len(selected.coins) != 2 {
		t.Errorf("chose %v, %v when it takes both", valuesOf(selected), err)
	}
}

// At low rates many small coins waste the least, but they may cost more than is allowed where one coin does not.
func TestSelectionKeepsToTheMaximumFee(t *testing.T) {
	coins := coinsOf(10_138, 10_100, 10_100, 10_100, 10_100, 10_100, 10_100, 200_000)
	policy := feePolicy{rate: 1_000}

	for _, c := range []struct {
		name   string
		maxFee int64
		large  uint64 // height of the block of the large coin
		want   int
	}{
		{"no maximum", 0, 7, 7},
		{"a maximum that allows for all", 1_000, 7, 7},
		{"a maximum that allows for one coin", 200, 7, 1},
		{"and that coin waits for its block", 200, 0, 1},
		{"a maximum that allows for none", 100, 7, 7},
	} {
		target := targetOf(70_220)
		target.maxFee = c.maxFee
		coins[7].Height = c.large

		selected, err := selectCoins(target, policy, coins, nil)
		if err != nil || len(selected.coins) != c.want {
			t.Errorf("%s: chose %v at a fee of %d, %v", c.name, valuesOf(selected), selected.fee, err)
		}
	}
}

func TestTooManyCoinsForOneTransaction(t *testing.T) {
	values := make([]int64, 2_000)
	for i := range values {
		values[i] = 1_000
	}

	_, err := selectCoins(targetOf(1_700_000), feePolicy{rate: 1_000}, coinsOf(values...), nil)
	if !errors.Is(err, errHeavy) {
		t.Errorf("1,800 inputs: %v", err)
	}

	_, err = selectCoins(targetOf(3_000_000), feePolicy{rate: 1_000}, coinsOf(values...), nil)
	if !errors.Is(err, errShort) {
		t.Errorf("more than there is: %v", err)
	}
}

// TestSelectionBalances: a selection adds up to the satoshi, pays enough, and spends the required
// coins and no coin twice. It is found whenever all coins together would do.
func TestSelectionBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := targetOf(rapid.Int64Range(294, 1_000_000).Draw(t, "payments"))

		target.subtractFee = rapid.Bool().Draw(t, "subtract")
		if rapid.Bool().Draw(t, "taproot change") {
			target.changeScript = scriptP2TR
		}

		policy := feePolicy{rate: rapid.Int64Range(100, 200_000).Draw(t, "rate")}
		coins := coinsOf(rapid.SliceOfN(rapid.Int64Range(1, 600_000), 1, 12).Draw(t, "coins")...)

		var required []candidate

		if rapid.Bool().Draw(t, "replaces") {
			policy.replacedFee, policy.incrementalRate = rapid.Int64Range(1, 20_000).Draw(t, "base"), 1_000
			required, coins = coins[:1], coins[1:]
		}

		selected, err := selectCoins(target, policy, coins, required)
		all := slices.Concat(required, coins)
		everything := sumOf(all).value

		if err != nil {
			if _, failed := target.evaluate(policy, all); failed == nil {
				t.Fatalf("%v, though all coins together do", err)
			}

			if target.subtractFee && everything < target.total && !errors.Is(err, errShort) {
				t.Fatalf("%v, though there is too little", err)
			}

			return
		}

		in, inputs, seen := int64(0), int64(0), map[string]bool{}
		for _, coin := range selected.coins {
			if seen[coin.Outpoint.TxHash] {
				t.Fatalf("coin %s is spent twice", coin.Outpoint.TxHash)
			}

			seen[coin.Outpoint.TxHash] = true
			in += coin.value
			inputs += coin.weight()
		}

		for _, coin := range required {
			if !seen[coin.Outpoint.TxHash] {
				t.Fatal("a coin that must be spent is not")
			}
		}

		paid := target.total
		if target.subtractFee {
			paid -= selected.fee
		}

		if in != paid+selected.fee+selected.change {
			t.Fatalf("%d come in, %d are paid, fee %d, change %d", in, paid, selected.fee, selected.change)
		}

		if selected.change != 0 && selected.change < dustLimit(target.changeScript) {
			t.Fatalf("change of %d is dust", selected.change)
		}

		due := policy.fee(target.txWeight(len(selected.coins), inputs, selected.change > 0))
		if selected.fee < due || (target.subtractFee && selected.fee != due) {
			t.Fatalf("the fee is %d, due are %d", selected.fee, due)
		}

		changed := target.txWeight(len(selected.coins), inputs, true)

		most := policy.fee(changed) + dustLimit(target.changeScript)
		if selected.fee > most {
			t.Fatalf("the fee is %d, change would have begun at %d", selected.fee, most)
		}
	})
}

// TestMatchFindsTheBest compares branch and bound with trying every subset.
func TestMatchFindsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := targetOf(rapid.Int64Range(1_000, 40_000).Draw(t, "payments"))
		target.subtractFee = rapid.Bool().Draw(t, "subtract")
		policy := feePolicy{rate: rapid.Int64Range(100, 20_000).Draw(t, "rate")}
		coins := coinsOf(
			rapid.SliceOfN(rapid.Map(rapid.Int64Range(1, 30), func(v int64) int64 { return v * 1_000 }), 1, 9).
				Draw(t, "coins")...)
		slices.SortFunc(coins, func(a, b candidate) int { return int(b.value - a.value) })

		sum, slack := target.total, int64(0)
		if !target.subtractFee {
			sum += policy.fee(target.txWeight(0, 0, false))
			slack = target.changeCost(policy)
		}

		waste := func(chosen []candidate) (int64, bool) {
			var worth, cost int64

			for _, coin := range chosen {
				fee := feeAt(policy.rate, coin.weight())

				cost += fee
				if worth += coin.value; !target.subtractFee {
					worth -= fee
					if coin.value <= fee {
						return 0, false
					}
				}
			}

			return cost + worth - sum, len(chosen) > 0 && worth >= sum && worth <= sum+slack
		}
		best := int64(-1)

		for set := range 1 << len(coins) {
			var chosen []candidate

			for i := range coins {
				if set&(1<<i) != 0 {
					chosen = append(chosen, coins[i])
				}
			}

			if w, ok := waste(chosen); ok && (best < 0 || w < best) {
				best = w
			}
		}

		got, ok := waste(target.branchAndBound(policy, coins, 0))
		if ok != (best >= 0) || (ok && got != best) {
			t.Fatalf("found waste %d (%t), the best is %d", got, ok, best)
		}
	})
}

// Nodes count whole virtual bytes: 557 weight units are 140, not 139.25.
func TestRatesAreMetOnWholeVirtualBytes(t *testing.T) {
	for weight, want := range map[int64]int64{556: 139, 557: 140, 558: 140, 560: 140, 561: 141} {
		for name, policy := range map[string]feePolicy{
			"rate":        {rate: 1_000},
			"replacement": {incrementalRate: 1_000},
			"parents":     {parentRate: 1_000},
		} {
			if got := policy.fee(weight); got != want {
				t.Errorf("%s: %d weight units cost %d, want %d", name, weight, got, want)
			}
		}
	}
}

// TestFeeOfAReplacement: a replacement pays what it displaces and its own relay, and no less than the rate.
func TestFeeOfAReplacement(t *testing.T) {
	const weight = 560 // 140 virtual bytes
	for _, c := range []struct {
		name  string
		price feePolicy
		want  int64
	}{
		{"nothing is displaced", feePolicy{rate: 2_000}, 280},
		{"what is displaced was dear", feePolicy{rate: 2_000, replacedFee: 5_000, incrementalRate: 1_000}, 5_140},
		{"what is displaced was cheap", feePolicy{rate: 50_000, replacedFee: 5_000, incrementalRate: 1_000}, 7_000},
		{"it pays for its family as well", feePolicy{rate: 2_000, parentFee: 900, parentRate: 2_000}, 1_180},
	} {
		if got := c.price.fee(weight); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
