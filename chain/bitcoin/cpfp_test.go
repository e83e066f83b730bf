package bitcoin

import (
	"testing"

	"pgregory.net/rapid"
)

// A payment of 1,000,000 satoshi in a transaction of 200 vB that pays 200, bumped to 10 satoshi per
// vB by a child of 209 vB (two inputs, the payment and change).
func TestWhetherAPaymentIsBumped(t *testing.T) {
	const child = 2_090 // what the child costs for itself

	whole := func(change ...func(*cpfpBump)) cpfpBump {
		bump := cpfpBump{
			maxFee:   50_000,
			rate:     10_000,
			target:   targetOf(1_000_000),
			required: coinsOf(1_000_000),
			coins:    coinsOf(0, 500_000)[1:],
			parent: mempoolEntry{
				ancestorWeight:   800,
				ancestorFees:     200,
				weight:           800,
				fee:              200,
				descendantWeight: 800,
				descendantFees:   200,
			},
		}
		for _, f := range change {
			f(&bump)
		}

		return bump
	}
	for _, c := range []struct {
		name   string
		change func(*cpfpBump)
		most   int64 // 0: it is not bumped
	}{
		{"as it is", func(*cpfpBump) {}, 3 * (1_800 + child)},
		{"switched off", func(bump *cpfpBump) { bump.maxFee = 0 }, 0},
		{"the ceiling is just enough", func(bump *cpfpBump) { bump.maxFee = 1_800 + child }, 1_800 + child},
		{"the ceiling is a satoshi too low", func(bump *cpfpBump) { bump.maxFee = 1_800 + child - 1 }, 0},
		{"the ceiling is below three times the fee", func(bump *cpfpBump) { bump.maxFee = 5_000 }, 5_000},
		{
			"a tenth of the payment is just enough, rounded down",
			func(bump *cpfpBump) {
				bump.target, bump.required = targetOf(38_909), coinsOf(38_909)
			},
			1_800 + child,
		},
		{
			"a tenth of the payment is too little",
			func(bump *cpfpBump) { bump.target, bump.required = targetOf(38_899), coinsOf(38_899) },
			0,
		},
		{"it pays what miners take", paying(2_000), 0},
		{"it pays a satoshi less", paying(1_999), 3 * (1 + child)},
		{"rates fell", func(bump *cpfpBump) { bump.rate = 1_000 }, 0},
		{
			"what it rests on pays too little as well",
			func(bump *cpfpBump) { bump.parent.ancestorWeight, bump.parent.ancestorFees = 1_600, 400 },
			3 * (3_600 + child),
		},
		{
			"what it rests on pays much, which does not help it",
			func(bump *cpfpBump) { bump.parent.ancestorWeight, bump.parent.ancestorFees = 1_600, 90_000 },
			3 * (1_800 + child),
		},
		{
			"it pays much, which does not help what it rests on enough",
			func(bump *cpfpBump) {
				bump.parent = mempoolEntry{ancestorWeight: 8_000, ancestorFees: 5_000, weight: 800, fee: 4_000}
				bump.maxFee = 60_000
			},
			3 * (15_000 + child),
		},
		{"its children pay for it", withDescendants(1_600, 4_000), 0},
		{
			"its children pay a satoshi too little for it",
			withDescendants(1_600, 3_999),
			3 * (1_800 + child),
		},
		{
			"its children pay for it, not for what it rests on",
			func(bump *cpfpBump) {
				bump.parent.ancestorWeight, bump.parent.ancestorFees = 1_600, 400
				bump.parent.descendantWeight, bump.parent.descendantFees = 1_600, 4_000
			},
			3 * (3_600 + child),
		},
		{"the wallet is empty", func(bump *cpfpBump) { bump.coins = nil }, 0},
		{"the wallet holds too little", func(bump *cpfpBump) { bump.coins = coinsOf(0, 2_000)[1:] }, 0},
		{"the node would take no child", func(bump *cpfpBump) { bump.parent.unspendable = true }, 0},
	} {
		bump := whole(c.change)

		most, why := bump.fee()
		if most != c.most || (why == "") != (most > 0) {
			t.Errorf("%s: it may cost %d (%s), want %d", c.name, most, why, c.most)
		}
	}
}

// A bump always pays the rate, rounded up, for the child and its ancestors. The payment is returned whole and
// no satoshi is lost.
func TestBumpPaysForAncestors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1_000, 500_000).Draw(t, "rate")
		own := rapid.Int64Range(300, 40_000).Draw(t, "weight")
		all := own + rapid.Int64Range(0, 40_000).Draw(t, "weight of ancestors")
		paid := rapid.Int64Range(0, 100_000).Draw(t, "fee")
		parent := mempoolEntry{
			ancestorWeight: all,
			ancestorFees:   paid + rapid.Int64Range(0, 100_000).Draw(t, "fees of ancestors"),
			weight:         own,
			fee:            paid,
		}
		amount := rapid.Int64Range(1_000, 1e9).Draw(t, "amount")
		bump := cpfpBump{
			maxFee:   maxSatoshi,
			rate:     rate,
			target:   targetOf(amount),
			required: coinsOf(amount),
			coins: coinsOf(
				append([]int64{0}, rapid.SliceOfN(rapid.Int64Range(500, 1e8), 0, 6).Draw(t, "coins")...)...,
			)[1:],
			parent: parent,
		}

		most, why := bump.fee()
		if why != "" {
			return
		}

		selected, err := selectCoins(
			bump.target, feePolicy{rate: rate, parentFee: parent.bumpFee(rate), parentRate: rate},
			bump.coins, bump.required,
		)
		if err != nil {
			t.Fatal(err)
		}

		var inputs int64
		for _, coin := range selected.coins {
			inputs += coin.weight()
		}

		weight := bump.target.txWeight(len(selected.coins), inputs, selected.change > 0)
		switch {
		case sumOf(selected.coins).value != amount+selected.fee+selected.change:
			t.Fatalf(
				"%d go in, %d + %d + %d come out",
				sumOf(selected.coins).value, amount, selected.fee, selected.change,
			)
		case selected.coins[0].Outpoint != bump.required[0].Outpoint:
			t.Fatal("the payment is not spent")
		case parent.ancestorFees+selected.fee < feeAt(rate, parent.ancestorWeight+roundToVBytes(weight)),
			parent.fee+selected.fee < feeAt(rate, parent.weight+roundToVBytes(weight)):
			t.Fatalf("%d are too little at %d", selected.fee, rate)
		case most < selected.fee || most > amount/maxPaymentShare:
			t.Fatalf("it may cost %d of %d", most, selected.fee)
		}
	})
}

// paying sets the fee of the parent, in satoshi.
func paying(fee int64) func(*cpfpBump) {
	return func(bump *cpfpBump) { bump.parent.ancestorFees, bump.parent.fee = fee, fee }
}

// withDescendants sets the weight and the fees of the parent's descendants, itself included.
func withDescendants(weight, fees int64) func(*cpfpBump) {
	return func(bump *cpfpBump) { bump.parent.descendantWeight, bump.parent.descendantFees = weight, fees }
}
