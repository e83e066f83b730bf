package bitcoin_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/twonodes"
)

// One node that lies about an estimate or a relay floor costs at most what the configured rate without estimates does,
// or stops what it cannot make cheaper; a second node that is honest goes on beside it.
func TestWhatALyingNodeMayCost(t *testing.T) {
	const honest, floor = "0.00008", "0.00001"

	coin := chain.Coin{
		Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
		Owner:    chain.Party{Address: payee},
		Amount:   chain.Units(100_000_000),
		Height:   1,
	}
	order := func(outputs int, amount uint64, subtract bool) func(d *bitcoin.Driver) chain.Order {
		return func(d *bitcoin.Driver) chain.Order {
			output := chain.Output{To: payee, AssetID: d.Network().Assets[0].ID, Amount: chain.Units(amount)}

			return chain.Order{
				From:        coin.Owner,
				Outputs:     slices.Repeat([]chain.Output{output}, outputs),
				Coins:       []chain.Coin{coin},
				SubtractFee: subtract,
			}
		}
	}

	kinds := map[string]func(d *bitcoin.Driver) chain.Order{
		"payout":            order(1, 50_000, false),
		"batch of 50":       order(50, 50_000, false),
		"release of a coin": order(1, 100_000_000, true),
	}
	lies := map[string][2]string{
		"an estimate of 0.9":        {"0.9", floor},
		"an estimate of 0.0001":     {"0.0001", floor},
		"an estimate of 0.00000001": {"0.00000001", floor},
		"a floor of 0.9":            {honest, "0.9"},
		"a floor of 0.00009":        {honest, "0.00009"},
	}

	cost := func(kind string, nodes ...*fakeNode) (chain.Amount, string, error) {
		d := newDriver(t, nodes[0].config(), func(c *bitcoin.Config) {
			for _, node := range nodes[1:] {
				c.RPCs = append(c.RPCs, node.URL)
			}
		})

		most, err := d.EstimateFee(t.Context(), kinds[kind](d))

		return most, twonodes.Named(d), err
	}

	for _, lie := range slices.Sorted(maps.Keys(lies)) {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			fair, _, err := cost(kind, ratedNode(t, honest, floor))
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}

			liar := func() *fakeNode { return ratedNode(t, lies[lie][0], lies[lie][1]) }
			nodes := map[string][]*fakeNode{
				"alone":         {liar()},
				"first of two":  {liar(), ratedNode(t, honest, floor)},
				"second of two": {ratedNode(t, honest, floor), liar()},
			}

			for _, place := range slices.Sorted(maps.Keys(nodes)) {
				most, named, err := cost(kind, nodes[place]...)
				t.Logf(
					"%-26s %-14s %-18s at most %-7s honest %-7s Health: %-14s %v",
					lie,
					place,
					kind,
					most,
					fair,
					named,
					err,
				)

				switch {
				case place == "alone" && lie == "a floor of 0.9" && errors.Is(err, fault.Limited):
				case err != nil:
					t.Errorf("%s, %s, %s: %v", lie, place, kind, err)
				case fair.Mul(5).Less(most.Mul(4)): // 10 satoshi a byte without estimates, 8 by an honest one
					t.Errorf("%s, %s, %s: %s, an honest node costs %s", lie, place, kind, most, fair)
				}
			}
		}
	}
}
