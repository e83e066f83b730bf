package bitcoin

import (
	"testing"

	"pgregory.net/rapid"
)

// A payment of 1,000,000 satoshi in a transaction of 200 vB that pays 200, lifted to 10 satoshi per
// vB by a child of 209 vB (two inputs, the payment and change).
func TestWhetherAPaymentIsLifted(t *testing.T) {
	const child = 2_090 // what the child costs for itself

	whole := func(change ...func(*lifting)) lifting {
		l := lifting{
			ceiling:  50_000,
			rate:     10_000,
			need:     needing(1_000_000),
			required: coinsOf(1_000_000),
			coins:    coinsOf(0, 500_000)[1:],
			family: family{
				weight:       800,
				fees:         200,
				ownWeight:    800,
				ownFee:       200,
				withChildren: 800,
				theirFees:    200,
			},
		}
		for _, f := range change {
			f(&l)
		}

		return l
	}
	for _, c := range []struct {
		name   string
		change func(*lifting)
		most   int64 // 0: it is not lifted
	}{
		{"as it is", func(*lifting) {}, 3 * (1_800 + child)},
		{"switched off", func(l *lifting) { l.ceiling = 0 }, 0},
		{"the ceiling is just enough", func(l *lifting) { l.ceiling = 1_800 + child }, 1_800 + child},
		{"the ceiling is a satoshi too low", func(l *lifting) { l.ceiling = 1_800 + child - 1 }, 0},
		{"the ceiling leaves less room than three times the fee", func(l *lifting) { l.ceiling = 5_000 }, 5_000},
		{
			"a tenth of the payment is just enough, rounded down",
			func(l *lifting) {
				l.need, l.required = needing(38_909), coinsOf(38_909)
			},
			1_800 + child,
		},
		{
			"a tenth of the payment is too little",
			func(l *lifting) { l.need, l.required = needing(38_899), coinsOf(38_899) },
			0,
		},
		{"it pays what miners take", func(l *lifting) { l.family.fees, l.family.ownFee = 2_000, 2_000 }, 0},
		{"it pays a satoshi less", func(l *lifting) { l.family.fees, l.family.ownFee = 1_999, 1_999 }, 3 * (1 + child)},
		{"rates fell", func(l *lifting) { l.rate = 1_000 }, 0},
		{
			"what it rests on pays too little as well",
			func(l *lifting) { l.family.weight, l.family.fees = 1_600, 400 },
			3 * (3_600 + child),
		},
		{
			"what it rests on pays much, which does not help it",
			func(l *lifting) { l.family.weight, l.family.fees = 1_600, 90_000 },
			3 * (1_800 + child),
		},
		{
			"it pays much, which does not help what it rests on enough",
			func(l *lifting) {
				l.family = family{weight: 8_000, fees: 5_000, ownWeight: 800, ownFee: 4_000}
				l.ceiling = 60_000
			},
			3 * (15_000 + child),
		},
		{"its children pay for it", func(l *lifting) { l.family.withChildren, l.family.theirFees = 1_600, 4_000 }, 0},
		{
			"its children pay a satoshi too little for it",
			func(l *lifting) { l.family.withChildren, l.family.theirFees = 1_600, 3_999 },
			3 * (1_800 + child),
		},
		{
			"its children pay for it, not for what it rests on",
			func(l *lifting) {
				l.family.weight, l.family.fees, l.family.withChildren, l.family.theirFees = 1_600, 400, 1_600, 4_000
			},
			3 * (3_600 + child),
		},
		{"the wallet is empty", func(l *lifting) { l.coins = nil }, 0},
		{"the wallet holds too little", func(l *lifting) { l.coins = coinsOf(0, 2_000)[1:] }, 0},
		{"the node would take no child", func(l *lifting) { l.family.crowded = true }, 0},
	} {
		l := whole(c.change)

		most, why := l.decide()
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
		f := family{
			weight:    all,
			fees:      paid + rapid.Int64Range(0, 100_000).Draw(t, "fees of ancestors"),
			ownWeight: own,
			ownFee:    paid,
		}
		amount := rapid.Int64Range(1_000, 1e9).Draw(t, "amount")
		l := lifting{
			ceiling:  maxSatoshi,
			rate:     rate,
			need:     needing(amount),
			required: coinsOf(amount),
			coins: coinsOf(
				append([]int64{0}, rapid.SliceOfN(rapid.Int64Range(500, 1e8), 0, 6).Draw(t, "coins")...)...,
			)[1:],
			family: f,
		}

		most, why := l.decide()
		if why != "" {
			return
		}

		s, err := choose(l.need, price{rate: rate, lift: f.lacks(rate), liftRate: rate}, l.coins, l.required)
		if err != nil {
			t.Fatal(err)
		}

		var inputs int64
		for _, c := range s.coins {
			inputs += c.weight()
		}

		weight := l.need.weight(len(s.coins), inputs, s.change > 0)
		switch {
		case sum(s.coins) != amount+s.fee+s.change:
			t.Fatalf("%d go in, %d + %d + %d come out", sum(s.coins), amount, s.fee, s.change)
		case s.coins[0].Outpoint != l.required[0].Outpoint:
			t.Fatal("the payment is not spent")
		case f.fees+s.fee < feeAt(rate, f.weight+wholeBytes(weight)),
			f.ownFee+s.fee < feeAt(rate, f.ownWeight+wholeBytes(weight)):
			t.Fatalf("%d are too little at %d", s.fee, rate)
		case most < s.fee || most > amount/liftShare:
			t.Fatalf("it may cost %d of %d", most, s.fee)
		}
	})
}
