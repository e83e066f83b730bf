package sweep

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
)

func units(amounts ...uint64) (out []chain.Amount) {
	for _, a := range amounts {
		out = append(out, chain.Units(a))
	}

	return out
}

// The fee follows the inputs, not the amounts.
func TestFeeShareFollowsTheInputs(t *testing.T) {
	for name, test := range map[string]struct {
		total        uint64
		limits, want []uint64
	}{
		"large and small bear the same":  {300, []uint64{5_000_000, 1_000, 70_000}, []uint64{100, 100, 100}},
		"the oldest takes the remainder": {302, []uint64{1_000, 1_000, 1_000}, []uint64{102, 100, 100}},
		"nobody bears more than he has":  {300, []uint64{1_000, 50, 1_000}, []uint64{125, 50, 125}},
		"more than all have":             {400, []uint64{100, 100}, []uint64{200, 200}},
		"nothing":                        {0, []uint64{100, 100}, []uint64{0, 0}},
		"one":                            {70, []uint64{100}, []uint64{70}},
	} {
		got := shareByInput(chain.Units(test.total), units(test.limits...))
		for i, want := range units(test.want...) {
			if got[i] != want {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	}
}

func TestFeeSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := units(rapid.SliceOfN(rapid.Uint64Range(1, 10_000), 1, 50).Draw(t, "limits")...)
		total := chain.Units(rapid.Uint64Range(0, 400_000).Draw(t, "total"))

		var sum, most chain.Amount

		shares := shareByInput(total, limits)
		for i, share := range shares {
			sum, most = sum.Add(share), most.Add(limits[i])
		}

		if sum != total {
			t.Fatalf("%v of %s come to %s", shares, total, sum)
		}

		for i, share := range shares {
			if !most.Less(total) && limits[i].Less(share) {
				t.Fatalf("%d bears %s of %s", i, share, limits[i])
			}
		}
	})
}
