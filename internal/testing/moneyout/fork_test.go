package moneyout_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A fork takes a payment and its sweep out of their blocks. The payment is confirmed again while
// the node shows nothing of the sweep: the settlement is released once the sweep is final as well,
// and not before.
func TestPaymentIsBackBeforeItsSweep(t *testing.T) {
	for _, fate := range []sim.OrphanFate{sim.Reinclude, sim.ReturnToPool, sim.DropOrphan} {
		t.Run("its sweep is "+fateName[fate], func(t *testing.T) {
			inTime(t, account.Settings{}, sim.Config{NoFinality: true}, func(t *testing.T, w *harness) {
				s := w.deposited("SIM", coin(1))
				w.live(
					"it is released",
					func() bool { s = w.settlements()[0]; return s.Status == settlement.Released },
				)

				payment := func() invoice.Payment {
					p, err := internal.Of(w.engine).Store().PaymentByID(t.Context(), s.PaymentID)
					w.must(err)

					return p
				}
				head, err := w.chain.Head(t.Context())
				w.must(err)

				w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
					if m == sim.MethodStatus {
						return sim.Unavailable()
					}

					return nil
				})

				paid := payment()
				w.chain.Fork(
					sim.Fork{
						Depth: head.Tip.Height - paid.Block.Height + 1,
						Fate:  fate,
						Each:  map[string]sim.OrphanFate{paid.TxHash: sim.ReturnToPool},
					},
				)

				lost := false

				w.live("the payment is confirmed again", func() bool {
					now := payment()

					lost = lost || now.Status != invoice.Confirmed
					if got := w.settlements()[0]; lost && got.Status == settlement.Released {
						t.Fatalf("without its sweep it is %+v", got)
					}

					return lost && now.Status == invoice.Confirmed
				})

				if got := w.settlements()[0]; got.Status != settlement.Releasing {
					t.Errorf("its payment is back, its sweep is not, and it is %s", got.Status)
				}

				w.chain.SetIntercept(nil)
				w.live(
					"it is released again",
					func() bool { return w.settlements()[0].Status == settlement.Released },
				)

				if got := w.settlements()[0]; got.SweepTx != s.SweepTx {
					t.Errorf("swept by %s and now by %s", s.SweepTx, got.SweepTx)
				}

				w.check(
					"at the master wallet", w.chain.Balance(w.master(), "SIM"),
					*w.settlements()[0].NetReleased,
				)
				w.clean(0, 0)
			})
		})
	}
}

// Where releases are left to a person, a settlement whose payment a fork took away and brought back waits
// again: nothing is swept that nobody asked for.
func TestReopenedSettlementWaitsForAPerson(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	inTime(t, settings, sim.Config{NoFinality: true}, func(t *testing.T, w *harness) {
		s := w.deposited("SIM", coin(1))

		payment, err := internal.Of(w.engine).Store().PaymentByID(t.Context(), s.PaymentID)
		w.must(err)

		head, err := w.chain.Head(t.Context())
		w.must(err)
		w.chain.Fork(sim.Fork{Depth: head.Tip.Height - payment.Block.Height + 1, Fate: sim.ReturnToPool})

		status := func(want settlement.Status) func() bool {
			return func() bool { return w.settlements()[0].Status == want }
		}
		w.live("its payment is lost", status(settlement.Failed))
		w.live("its payment is back", status(settlement.Pending))

		back := time.Now()

		w.live("time passes", func() bool { return time.Since(back) > 20*time.Minute })

		if got := w.settlements()[0]; got.Status != settlement.Pending || got.SweepID != "" {
			t.Errorf("it is %s, in the sweep %q", got.Status, got.SweepID)
		}

		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))
		w.live("it is released when a person says so", status(settlement.Released))
	})
}
