package simulation

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// no payout that lost records sent fails, wherever its bytes are when the backup from before it is
// restored, and whoever ends it.
func TestNothingIsEndedThatLostRecordsSent(t *testing.T) {
	for name, c := range map[string]struct {
		utxo bool
		// sent is what happens to the bytes before the backup is restored, read what happens after it.
		sent, read func(w *harness)
	}{
		"in the pool":             {sent: func(*harness) {}, read: func(*harness) {}},
		"in the pool, of outputs": {utxo: true, sent: func(*harness) {}, read: func(*harness) {}},
		"in a block":              {sent: func(w *harness) { w.networks[0].mine(1) }, read: func(*harness) {}},
		"in a block, of outputs": {
			utxo: true,
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(*harness) {},
		},
		"in a block that was read": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(w *harness) { w.steps(2) },
		},
		"in a block that a fork returns to the pool": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(w *harness) {
				w.steps(2)
				w.networks[0].fork(2, sim.ReturnToPool)
				w.steps(2)
			},
		},
		"older than its deadline": {
			sent: func(w *harness) { w.networks[0].mine(1) },
			read: func(w *harness) { w.clock.advance(3 * time.Hour) },
		},
	} {
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
					w.steps(2)

					m := w.merchants[0]
					if p := w.oracle.records.payouts[m.payouts[0]]; p.Status != payout.Processing {
						t.Fatalf("the payout is %s", p.Status)
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
