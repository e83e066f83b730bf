package bitcoin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

func repeated(n int, value int64) []int64 { return slices.Repeat([]int64{value}, n) }

// paymentOf is an order that an estimate is made for.
var paymentOf = chain.Order{From: chain.Party{Address: "the wallet"}}

// A payment that the coins cannot make in one transaction is refused as it is asked for, with the number of satoshi
// that they can. That many can be sent.
func TestPaymentThatTheCoinsCannotMakeIsRefusedInNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		values []int64
		rate   int64
		pay    int64
		code   string
		least  int64 // of what can be sent instead
	}{
		"3,000 coins, of which 1,475 fit": {repeated(3_000, 10_000), 1_000, 20_000_000, "amount_too_large", 14_500_000},
		"all of 3,000 coins": {
			repeated(3_000, 10_000), 1_000, 30_000_000, "insufficient_funds", 14_500_000,
		},
		"coins that cost what they hold": {repeated(100, 2_000), 50_000, 34_500, "insufficient_funds", 0},
		"a few are worth their fee": {
			append(repeated(100, 2_000), 100_000), 50_000, 120_000, "insufficient_funds", 75_000,
		},
		"more than there is":         {[]int64{200_000}, 50_000, 300_000, "insufficient_funds", 170_000},
		"the fee is not there":       {[]int64{200_000}, 50_000, 199_000, "insufficient_funds", 170_000},
		"what can be sent is enough": {[]int64{200_000}, 50_000, 178_850, "", 0},
		"3,000 coins, a little":      {repeated(3_000, 10_000), 1_000, 1_000_000, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, policy, coins := &driver{}, feePolicy{rate: c.rate}, coinsOf(c.values...)

			_, err := d.estimateFee(paymentOf, targetOf(c.pay), policy, coins, nil)
			if fault.Code(err) != c.code || c.code != "" && !errors.Is(err, fault.State) {
				t.Fatalf("%v (%q), want %q", err, fault.Code(err), c.code)
			}

			if c.code == "" {
				return
			}

			most := d.mostAtOnce(targetOf(c.pay), policy, coins)
			if most < c.least || most >= c.pay ||
				!strings.Contains(err.Error(), "at most "+satoshiAmount(most).String()+" ") {
				t.Errorf("%d can be sent, want at least %d: %v", most, c.least, err)
			}
		})
	}
}

// What is named as the most that can be sent can be: the coins make it, and hold the fee that is reserved.
func TestMostThatCanBeSentCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(300, 60_000), 1, 12).Draw(t, "coins")
		if rapid.Bool().Draw(t, "many") {
			values = append(values, repeated(2_000, rapid.Int64Range(300, 20_000).Draw(t, "each"))...)
		}

		policy := feePolicy{rate: rapid.Int64Range(100, 100_000).Draw(t, "rate")}
		d, coins := &driver{}, coinsOf(values...)

		most := d.mostAtOnce(targetOf(1), policy, coins)
		if most == 0 {
			return
		}

		fee, err := d.estimateFee(paymentOf, targetOf(most), policy, coins, nil)
		if err != nil || most+bumpHeadroom*fee > sumOf(coins).value {
			t.Fatalf(
				"%d cannot be sent with a fee of three times %d out of %d: %v",
				most,
				fee,
				sumOf(coins).value,
				err,
			)
		}
	})
}

// The reserve is that of the coins that are really there: one coin is not charged for three.
func TestReserveIsThatOfTheCoinsAtHand(t *testing.T) {
	d, policy := &driver{}, feePolicy{rate: 50_000}

	for coins, vbytes := range map[int]int64{0: 277, 1: 141, 2: 209, 3: 277, 9: 277} {
		fee, err := d.estimateFee(
			paymentOf,
			targetOf(34_500),
			policy,
			coinsOf(repeated(coins, 200_000)...),
			nil,
		)
		if want := vbytes * 50; err != nil || fee != want {
			t.Errorf("%d coins: %d, %v; want %d", coins, fee, err, want)
		}
	}
}

// A watch-only wallet of any kind of address can be asked for: nobody signs for it, which is what a payout says then,
// and not that its destination cannot be paid.
func TestOrderOfAWatchOnlyWalletIsNoFaultOfTheDestination(t *testing.T) {
	d, err := newDriver(Config{Network: Regtest, RPC: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}

	const (
		p2wsh = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry" // of BIP-173's vectors, on regtest
		to    = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
	)

	order := chain.Order{
		From:    chain.Party{Address: p2wsh},
		Outputs: []chain.Output{{To: to, AssetID: d.native.ID, Amount: chain.Units(50_000)}},
		Coins: []chain.Coin{{
			Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
			Owner:    chain.Party{Address: p2wsh},
			Amount:   chain.Units(100_000),
			Height:   1,
		}},
	}

	target, err := d.targetOf(order)
	if err != nil {
		t.Fatal(err)
	}

	coins, _, err := d.candidates(order)
	if err != nil || len(coins) != 0 {
		t.Errorf("%d coins that nobody here signs for, %v", len(coins), err)
	}

	if fee, err := d.estimateFee(order, target, feePolicy{rate: 1_000}, coins, nil); err != nil || fee == 0 {
		t.Errorf("a fee of %d, %v", fee, err)
	}
}

// Selection takes time in proportion to the coins: it copies no set of coins for each one that it tries.
func TestSelectionOfManyCoinsIsLinear(t *testing.T) {
	for name, values := range map[string][]int64{
		"equal": repeated(16_000, 5_000),
		"different": func() []int64 {
			values := repeated(16_000, 5_000)
			for i := range values {
				values[i] += int64(i)
			}

			return values
		}(),
	} {
		coins, policy := coinsOf(values...), feePolicy{rate: 2_000}

		for _, pay := range []int64{4_000_000, 60_000_000} {
			if most := testing.AllocsPerRun(
				1,
				func() { _, _ = selectCoins(targetOf(pay), policy, coins, nil) },
			); most > 2_000 {
				t.Errorf("%s, %d: %v allocations", name, pay, most)
			}
		}
	}
}

func BenchmarkSelectionOf16000Coins(b *testing.B) {
	coins, policy := coinsOf(repeated(16_000, 5_000)...), feePolicy{rate: 2_000}
	d := &driver{}

	for b.Loop() {
		_, _ = d.estimateFee(paymentOf, targetOf(60_000_000), policy, coins, nil)
	}
}
