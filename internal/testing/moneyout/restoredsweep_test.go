package moneyout_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A sweep that lost records made is not said to be that of a payment which came after it, although the sums are equal.
func TestSweepIsNotThatOfALaterPayment(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 0)

		first := w.deposited("USDX", dollars(400))

		dump()
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, first.ID))

		find := func(id string) (found settlement.Settlement) {
			for _, s := range w.settlements() {
				if s.ID == id {
					found = s
				}
			}

			return found
		}

		w.steps("it is released", func() bool { return find(first.ID).Status == settlement.Released })

		before := find(first.ID)

		restore()
		w.idle(time.Minute)

		for _, hash := range []string{before.TopUpTx, before.FeeTx, before.SweepTx} {
			if hash != "" {
				w.must(w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign))
			}
		}

		w.chain.Pay(first.Deposit.Address, "USDX", dollars(400))
		w.live("the second settlement opened", func() bool { return len(w.settlements()) == 2 })

		for _, s := range w.settlements() {
			if s.ID == first.ID {
				continue
			}

			wantFault(
				t,
				w.engine.Acknowledge(t.Context(), network, before.SweepTx, s.ID),
				fault.State,
				"transaction_mismatch",
			)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, before.SweepTx, first.ID))

		if got := find(first.ID); got.Status != settlement.Released || got.SweepTx != before.SweepTx {
			t.Errorf("released as %+v, before the restore as %+v", got, before)
		}

		if got := w.audited(); len(got) != 0 {
			t.Errorf("the audit finds %v", got)
		}
	})
}

// A token takes a part of what a lost sweep moved: what left the deposit address is what the settlement held, what
// arrived is what it released.
func TestSweepOfLostRecordsInATokenThatTakesAFee(t *testing.T) {
	for name, log := range map[string]sim.FeeLog{
		"net logs":         sim.LogNet,
		"gross, then fee":  sim.LogGrossThenFee,
		"gross logs alone": sim.LogGross,
	} {
		t.Run(name, func(t *testing.T) {
			settings := account.Settings{ManualRelease: true}
			onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
				w.fund(1, 0)
				w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 1000, Log: log})

				s := w.deposited("USDX", dollars(400))
				w.check("the payment", s.Gross, dollars(360))

				dump()
				w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))

				swept := func() settlement.Settlement { return w.settlements()[0] }

				w.steps("it is released", func() bool { return swept().Status == settlement.Released })

				before := swept()
				w.check("released", *before.NetReleased, dollars(324))

				restore()
				w.frozen()
				w.idle(time.Minute)

				for _, hash := range []string{before.TopUpTx, before.FeeTx} {
					if hash != "" {
						w.must(w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign))
					}
				}

				w.must(w.engine.Acknowledge(t.Context(), network, before.SweepTx, s.ID))
				w.idle(70 * time.Minute)

				after := swept()
				if after.Status != settlement.Released || after.SweepTx != before.SweepTx ||
					*after.NetReleased != *before.NetReleased {
					t.Errorf("released as %+v, before the restore as %+v", after, before)
				}

				w.thawed()

				if got := w.audited(); len(got) != 0 {
					t.Errorf("the audit finds %v", got)
				}
			})
		})
	}
}
