package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// no payout that lost records sent fails, wherever its bytes are when the backup from before it is
// restored, and whoever ends it.
func TestNothingIsEndedThatLostRecordsSent(t *testing.T) {
	type ending struct {
		utxo bool
		// sent is what happens to the bytes before the backup is restored, read what happens after it.
		sent, read func(w *harness)
	}

	cases := map[string]ending{
		"in the pool":             {sent: func(*harness) {}, read: func(*harness) {}},
		"in the pool, of outputs": {utxo: true, sent: func(*harness) {}, read: func(*harness) {}},
		"in a block": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(*harness) {},
		},
		"in a block, of outputs": {
			utxo: true,
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(*harness) {},
		},
		"in a block that was read": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(w *harness) { w.steps(2) },
		},
		"older than its deadline": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(w *harness) { w.clock.advance(3 * time.Hour) },
		},
	}

	// A fork comes while the records are read again a few blocks at a time, or when that is done.
	for before := range 7 {
		for _, utxo := range []bool{false, true} {
			name := fmt.Sprintf(
				"in a block that a fork takes after %d steps, of outputs: %t",
				before,
				utxo,
			)
			cases[name] = ending{
				utxo: utxo,
				sent: func(w *harness) { w.networks[0].mine(1) },
				read: func(w *harness) {
					w.steps(before)
					w.networks[0].fork(2, sim.ReturnToPool)
					w.steps(before % 3)
				},
			}
		}
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			violations := scenario{
				plan: Plan{UTXO: c.utxo, Tolerates: tolerated},
				play: func(w *harness) {
					symbol, amount := "SIM", sims(5)
					if c.utxo {
						symbol, amount = "SIMB", sims(5).Share(usdx(1), sims(1000))
					}

					w.paysOut(symbol, amount)
					w.play(Op{Kind: RestoreBackup})

					m := w.merchants[0]
					status := func() payout.Status { return w.oracle.records.payouts[m.payouts[0]].Status }

					for range 10 {
						w.steps(1)

						if status() == payout.Processing {
							break
						}
					}

					if status() != payout.Processing {
						t.Fatalf("the payout is %s", status())
					}

					c.sent(w)
					w.play(Op{Kind: RestoreBackup, A: 1})
					c.read(w)

					_, err := w.processes[0].alive().Payouts.Cancel(w.ctx, m.owner, m.payouts[0])
					if err == nil {
						t.Error("it was canceled")
					}

					w.passes(time.Minute)
				},
			}.run(t)

			for _, v := range violations {
				t.Error(v)
			}
		})
	}
}
