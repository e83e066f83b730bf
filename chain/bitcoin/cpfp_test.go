package bitcoin

import (
	"testing"

	"pgregory.net/rapid"
)

// A payment of 1,000,000 satoshi in a transaction of 200 vB that pays 200, lifted to 10 satoshi per
// vB by a child of 209 vB (two inputs, the payment and change).
func TestWhetherAPaymentIsLifted(t *testing.T) {
	const child = 2_090 // what the child costs for itself

	whole := func(change ...func(*cpfpBump)) cpfpBump {
		bump := cpfpBump{
			maxFee:   50_000,
			rate:     10_000,
			target:   needing(1_000_000),
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
		most   int64 // 0: it is not lifted
	}{
		{"as it is", func(*cpfpBump) {}, 3 * (1_800 + child)},
		{"switched off", func(l *cpfpBump) { l.maxFee = 0 }, 0},
		{"the ceiling is just enough", func(l *cpfpBump) { l.maxFee = 1_800 + child }, 1_800 + child},
		{"the ceiling is a satoshi too low", func(l *cpfpBump) { l.maxFee = 1_800 + child - 1 }, 0},
		{"the ceiling leaves less room than three times the fee", func(l *cpfpBump) { l.maxFee = 5_000 }, 5_000},
		{
			"a tenth of the payment is just enough, rounded down",
			func(l *cpfpBump) {
				l.target, l.required = needing(38_909), coinsOf(38_909)
			},
			1_800 + child,
		},
		{
			"a tenth of the payment is too little",
			func(l *cpfpBump) { l.target, l.required = needing(38_899), coinsOf(38_899) },
			0,
		},
		{"it pays what miners take", func(l *cpfpBump) { l.parent.ancestorFees, l.parent.fee = 2_000, 2_000 }, 0},
		{"it pays a satoshi less", func(l *cpfpBump) { l.parent.ancestorFees, l.parent.fee = 1_999, 1_999 }, 3 * (1 + child)},
		{"rates fell", func(l *cpfpBump) { l.rate = 1_000 }, 0},
		{
			"what it rests on pays too little as well",
			func(l *cpfpBump) { l.parent.ancestorWeight, l.parent.ancestorFees = 1_600, 400 },
			3 * (3_600 + child),
		},
		{
			"what it rests on pays much, which does not help it",
			func(l *cpfpBump) { l.parent.ancestorWeight, l.parent.ancestorFees = 1_600, 90_000 },
			3 * (1_800 + child),
		},
		{
			"it pays much, which does not help what it rests on enough",
			func(l *cpfpBump) {
				l.parent = mempoolEntry{ancestorWeight: 8_000, ancestorFees: 5_000, weight: 800, fee: 4_000}
				l.maxFee = 60_000
			},
			3 * (15_000 + child),
		},
		{"its children pay for it", func(l *cpfpBump) { l.parent.descendantWeight, l.parent.descendantFees = 1_600, 4_000 }, 0},
		{
			"its children pay a satoshi too little for it",
			func(l *cpfpBump) { l.parent.descendantWeight, l.parent.descendantFees = 1_600, 3_999 },
			3 * (1_800 + child),
		},
		{
			"its children pay for it, not for what it rests on",
			func(l *cpfpBump) {
				l.parent.ancestorWeight, l.parent.ancestorFees, l.parent.descendantWeight, l.parent.descendantFees = 1_600, 400, 1_600, 4_000
			},
			3 * (3_600 + child),
		},
		{"the wallet is empty", func(l *cpfpBump) { l.coins = nil }, 0},
		{"the wallet holds too little", func(l *cpfpBump) { l.coins = coinsOf(0, 2_000)[1:] }, 0},
		{"the node would take no child", func(l *cpfpBump) { l.parent.unspendable = true }, 0},
	} {
		bump := whole(c.change)

		most, why := bump.fee()
		if most != c.most || (why == "") != (most > 0) {
			t.Errorf("%s: it may cost %d (%s), want %d", c.name, most, why, c.most)
		}
	}
}

// What is paid for a child always makes its family worth the rate, rounded up, with the whole
// payment given back and no satoshi lost.
func TestLiftPaysForTheFamily(t *testing.T) {
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
			target:   needing(amount),
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
			bump.target,
			feePolicy{rate: rate, parentFee: parent.bumpFee(rate), parentRate: rate},
			bump.coins,
			bump.required,
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
		case totalValue(selected.coins) != amount+selected.fee+selected.change:
			t.Fatalf(
				"%d go in, %d + %d + %d come out",
				totalValue(selected.coins),
				amount,
				selected.fee,
				selected.change,
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
