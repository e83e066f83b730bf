package moneyout_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A fork takes a payment and its sweep out of the chain. The payment is confirmed again while the node tells nothing of the
// sweep: the settlement is released once the sweep is back as well, and not before.
func TestPaymentIsBackBeforeItsSweep(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{NoFinality: true}, func(t *testing.T, w *world) {
		s := w.deposited("SIM", coin(1))
		w.live("it is released", func() bool { s = w.settlements()[0]; return s.Status == settlement.Released })
		paid, err := w.engine.Store().PaymentByID(t.Context(), s.PaymentID)
		w.must(err)
		head, err := w.chain.Head(t.Context())
		w.must(err)

		w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
			if m == sim.MethodStatus {
				return sim.Unavailable()
			}
			return nil
		})
		w.chain.Fork(sim.Fork{Depth: head.Tip.Height - paid.Block.Height + 1, Fate: sim.Forget, Each: map[string]sim.Fate{paid.TxHash: sim.ReturnToPool}})
		returned := false
		w.live("the payment is confirmed again", func() bool {
			if got := w.settlements()[0]; got.Status == settlement.Released && returned {
				t.Errorf("without its sweep it is %+v", got)
			}
			now, err := w.engine.Store().PaymentByID(t.Context(), s.PaymentID)
			w.must(err)
			returned = returned || now.Status != invoice.Confirmed
			return returned && now.Status == invoice.Confirmed
		})
		if got := w.settlements()[0]; got.Status != settlement.Releasing {
			t.Errorf("its payment is back, its sweep is not, and it is %s", got.Status)
		}
		w.chain.SetIntercept(nil)
		w.live("it is released again", func() bool { return w.settlements()[0].Status == settlement.Released })
		if got := w.settlements()[0]; got.SweepTx != s.SweepTx {
			t.Errorf("swept by %s and now by %s", s.SweepTx, got.SweepTx)
		}
		w.check("at the master wallet", w.chain.Balance(w.master(), "SIM"), *w.settlements()[0].NetReleased)
		w.clean(0, 0)
	})
}
