//go:build unix

package moneyout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// priced returns a change of a chain parameter.
func priced(key string, by, of float64) func(map[string]any) {
	return func(answer map[string]any) {
		for _, param := range answer["chainParameter"].([]any) {
			if param := param.(map[string]any); param["key"] == key {
				param["value"] = int64(param["value"].(float64) * by / of)
			}
		}
	}
}

// What one of two nodes says of prices, energy and accounts has no release and no payout fail, and strands nothing:
// they wait, and are made once it says what the other one does.
func TestTronLiarStrandsNothing(t *testing.T) {
	for name, lie := range map[string]struct {
		path   string
		change func(answer map[string]any)
	}{
		"a high price": {"/wallet/getchainparameters", priced("getEnergyFee", 100, 1)},
		"a low price":  {"/wallet/getchainparameters", priced("getEnergyFee", 1, 10)},
		"a quarter of the energy": {
			"/wallet/triggerconstantcontract",
			func(answer map[string]any) {
				if used, ok := answer["energy_used"].(float64); ok {
					answer["energy_used"] = int64(used / 4)
				}
			},
		},
		"energy that is not there": {
			"/wallet/getaccountresource",
			func(answer map[string]any) { answer["EnergyLimit"] = 10_000_000 },
		},
		"empty accounts": {"/wallet/getaccount", func(answer map[string]any) { delete(answer, "balance") }},
	} {
		t.Run(name, func(t *testing.T) {
			p, liar := behindTronLiar(t)

			transactions := internal.Of(p.engine).Transactions
			wallet, err := transactions.MasterWallet(t.Context(), p.slug, p.account.Index)
			p.must(err)

			master := string(wallet.Address)
			before := p.held(t, master)
			inv := p.sell(40_000_000)

			liar.lieAbout(lie.path, lie.change)
			p.send(inv.Options[0].Address, inv.Options[0].AmountDue)
			made := p.pay(p.stranger(t))

			p.until("the invoice is paid", func() bool {
				got, _ := p.paid(inv.ID, inv.Options[0].AmountDue)
				return got.Status == invoice.Paid
			})

			for range 2 {
				for range 10 { // blocks
					p.turn()
				}

				p.ahead += 15 * time.Minute
			}

			if got := p.get(made.ID); got.Status == payout.Failed {
				t.Fatalf("the payout failed: %s", got.FailureCode)
			}

			liar.lieAbout("", nil)

			var released settlement.Settlement

			p.until("the settlement is released", func() bool {
				found, err := p.store.Settlements(t.Context(), settlement.Filter{Owner: p.owner, Limit: 50})
				p.must(err)

				i := slices.IndexFunc(
					found,
					func(s settlement.Settlement) bool { return s.InvoiceID == inv.ID },
				)
				if i < 0 {
					return false
				}

				released = found[i]
				if released.Status == settlement.Failed {
					t.Fatalf("the settlement failed: %s", released.Reason)
				}

				return released.Status == settlement.Released
			})

			fee := p.confirmed(made.ID).NetworkFee
			spent := before.Sub(p.held(t, master))
			left := p.held(t, string(inv.Options[0].Address))

			if spent != made.Amount.Add(*fee).Add(released.NetworkFees).Add(released.FeePaid).Add(left) ||
				chain.Units(100_000).Less(left) {
				t.Errorf("the wallet spent %s sun: %s and %s for the payout, %+v, left %s",
					spent, made.Amount, fee, released, left)
			}
		})
	}
}
