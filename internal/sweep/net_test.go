package sweep

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Each settlement gets what is left of its own deposit. What one of them could not bear, and what did not arrive, the
// oldest bear that have something left.
func TestEachGetsWhatIsLeftOfItsOwn(t *testing.T) {
	deposit, master := settlement.FromDeposit, settlement.FromMaster

	for name, c := range map[string]struct {
		payer       settlement.FeeSource
		gross, fees []uint64
		arrived     uint64
		want        []uint64
	}{
		"all is its own":               {deposit, []uint64{100, 50}, []uint64{10, 5}, 135, []uint64{90, 45}},
		"less arrived":                 {deposit, []uint64{100, 50}, []uint64{10, 5}, 130, []uint64{85, 45}},
		"more arrived":                 {deposit, []uint64{100, 50}, []uint64{10, 5}, 150, []uint64{100, 50}},
		"one costs more than it is":    {deposit, []uint64{20, 400}, []uint64{25, 10}, 385, []uint64{0, 385}},
		"the master wallet pays a fee": {master, []uint64{100, 50}, []uint64{10, 5}, 150, []uint64{100, 50}},
	} {
		var g group

		for i, gross := range c.gross {
			g = append(g, settlement.Settlement{
				Gross:     chain.Units(gross),
				FeePaid:   chain.Units(c.fees[i]),
				FeeSource: c.payer,
			})
		}

		if got := g.net(chain.Units(c.arrived)); !slices.Equal(got, units(c.want...)) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A carried fee is taken over by the oldest settlement that has it left, or else by the largest.
func TestWhoTakesACarriedFeeOver(t *testing.T) {
	for name, c := range map[string]struct {
		gross []uint64
		carry uint64
		not   int // index of one that may not; -1 for none
		want  int
	}{
		"the oldest":                     {[]uint64{100, 200}, 50, -1, 0},
		"the oldest that has it left":    {[]uint64{20, 100, 200}, 50, -1, 1},
		"the largest, where none has it": {[]uint64{20, 40, 30}, 50, -1, 1},
		"its own fee comes first":        {[]uint64{55, 100}, 50, -1, 1},
		"one that waits for another's":   {[]uint64{100, 200}, 50, 0, 1},
		"nobody":                         {[]uint64{100}, 50, 0, -1},
	} {
		var g group

		for i, gross := range c.gross {
			g = append(g, settlement.Settlement{
				ID:        string(rune('a' + i)),
				Gross:     chain.Units(gross),
				FeeNative: chain.Units(10),
				FeeSource: settlement.FromDeposit,
			})
		}

		got := g.bearer(chain.Units(c.carry), func(s settlement.Settlement) bool {
			return c.not < 0 || s.ID != g[c.not].ID
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
