package moneyout_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// On another branch a payment fails and its sweep stands: it took what the next payment brought. Balance watching
// makes no payment of that, the next settlement is released in full, and the audit is clean.
func TestSweepStandsWithoutItsPayment(t *testing.T) {
	for symbol, unit := range map[string]chain.Amount{"USDX": dollars(100), "SIM": coin(1)} {
		t.Run(symbol, func(t *testing.T) {
			inTime(t, account.Settings{}, sim.Config{NoFinality: true}, func(t *testing.T, w *harness) {
				w.fund(1, 0)

				d, err := w.engine.Invoices.CreateDeposit(
					t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
				)
				w.must(err)
				w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

				pays := chain.Output{To: d.Address, AssetID: w.asset(symbol).ID, Amount: unit}
				w.chain.PayVariable(pays, func(_, branch uint64) sim.Result {
					return sim.Result{Failed: branch > 0, Outputs: []chain.Output{pays}}
				})
				from := w.chain.Mine(1).Height

				released := func(n int) func() bool {
					return func() bool {
						done := 0

						for _, s := range w.settlements() {
							if s.Status == settlement.Released {
								done++
							}
						}

						return done == n
					}
				}
				w.live("the first is released", released(1))
				w.chain.Pay(d.Address, symbol, unit.Mul(2))
				tip := w.chain.Mine(1)
				w.chain.Fork(sim.Fork{
					Depth: tip.Height - from + 1,
					Fate:  sim.Reinclude,
					// The sweep is mined again after the next payment.
					Each: map[string]sim.OrphanFate{w.settlements()[0].SweepTx: sim.ReturnToPool},
				})
				w.live("the first is gone", released(0))
				w.live("the second is released", released(1))

				since := time.Now()

				w.live("time passes", func() bool { return time.Since(since) > 90*time.Minute })

				all := w.settlements()
				if len(all) != 2 {
					t.Fatalf("there are %d settlements", len(all))
				}

				w.check("left at the address", w.chain.Balance(d.Address, symbol), chain.Amount{})
				w.clean(1, 0)
			})
		})
	}
}
