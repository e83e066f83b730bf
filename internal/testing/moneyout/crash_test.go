package moneyout_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// crashEverywhere runs a scenario once in peace, counting the updates of the store and the calls of
// the node, and then again and again, killing the process at each of them, before it and after it
// took effect. begin prepares in peace; what scenario does is counted.
func crashEverywhere(
	t *testing.T,
	settings account.Settings,
	begin func(w *harness),
	scenario func(t *testing.T, w *harness),
) {
	t.Helper()
	crashEverywhereOn(t, sim.Config{}, settings, begin, scenario)
}

func crashEverywhereOn(
	t *testing.T,
	network sim.Config,
	settings account.Settings,
	begin func(w *harness),
	scenario func(t *testing.T, w *harness),
) {
	t.Helper()

	calls := 0
	run := func(at int, after bool) {
		inTime(t, settings, network, func(t *testing.T, w *harness) {
			begin(w)
			boots := w.boots
			w.process.Arm(at, after)
			scenario(t, w)

			n := len(w.process.Disarm())
			switch {
			case at == 0:
				calls = n
			case w.boots != boots+1:
				t.Errorf("the process was started %d times more, want once", w.boots-boots)
			}
		})

		if t.Failed() {
			t.Fatalf("killed at call %d of %d (after it took effect: %v)", at, calls, after)
		}
	}
	run(0, false)

	if calls < 10 {
		t.Fatalf("only %d calls were counted", calls)
	}

	raced.Skip(t) // after the run in peace: a process does one thing at a time, until it dies

	crashes := 0

	for _, after := range []bool{false, true} {
		for at := 1; at <= calls; at++ {
			run(at, after)

			crashes++
		}
	}

	t.Logf(
		"an undisturbed run makes %d updates and calls; killed before and after each of them: %d crashes survived",
		calls,
		crashes,
	)

	if crashes != 2*calls {
		t.Errorf("%d crashes, want %d", crashes, 2*calls)
	}
}

// retry does what a client with an idempotency key does: when the process crashed, it asks again, and
// gets what was stored.
func (w *harness) retry(do func() error, stored func() bool) {
	w.t.Helper()

	for {
		err := do()
		if !w.process.Dead() {
			w.must(err)
			return
		}

		if err != nil && !errors.Is(err, crashtest.ErrKilled) {
			w.t.Logf("the dying process said %v", err)
		}

		w.engine = w.boot()

		if stored() {
			return
		}
	}
}

// Pitfall 13. Whatever the moment of crash, the payout is sent once.
func TestPayoutSurvivesCrashAtEveryStep(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		t.Run(symbol, func(t *testing.T) {
			crashEverywhere(
				t,
				account.Settings{},
				func(w *harness) { w.fund(1, 100) },
				func(t *testing.T, w *harness) {
					params := w.params(symbol, dollars(30))
					w.retry(
						func() error { _, err := w.engine.Payouts.Create(t.Context(), params); return err },
						func() bool { return len(w.payouts()) > 0 },
					)

					all := w.payouts()
					if len(all) != 1 {
						t.Fatalf("%d payouts were created", len(all))
					}

					p := w.becomes(all[0].ID, payout.Confirmed)
					w.process.Aside(func() {
						w.arrived(p)
						w.once(p)
						w.outgoing(1)
						w.clean(1, 100)
					})
				},
			)
		})
	}
}

func (w *harness) payouts() []payout.Payout {
	w.t.Helper()
	all, _, err := w.engine.Payouts.List(w.t.Context(), payout.Filter{Owner: w.owner, Limit: 100})
	w.must(err)

	return all
}

// outgoing checks how many transfers the master wallet made in all.
func (w *harness) outgoing(want int) {
	w.t.Helper()

	n := 0

	for _, m := range w.transfers() {
		if m.From == w.master() {
			n++
		}
	}

	if n != want {
		w.t.Errorf("the master wallet made %d transfers, want %d", n, want)
	}
}

// deposited is a confirmed payment to a deposit address whose settlement waits for Settlements.ReleaseNow.
func (w *harness) deposited(symbol string, amount chain.Amount) settlement.Settlement {
	w.t.Helper()
	d, err := w.engine.Invoices.CreateDeposit(
		w.t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
	)
	w.must(err)
	w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })
	w.chain.Pay(d.Address, symbol, amount)

	var s settlement.Settlement

	w.live("the settlement opened", func() bool {
		all := w.settlements()
		if len(all) == 1 {
			s = all[0]
		}

		return len(all) == 1
	})

	return s
}

func (w *harness) settlements() []settlement.Settlement {
	w.t.Helper()
	all, _, err := w.engine.Settlements.List(w.t.Context(), settlement.Filter{Owner: w.owner, Limit: 100})
	w.must(err)

	return all
}

// A token settlement has a top-up, a fee and a sweep: each happens once, whatever the moment of crash.
func TestSweepSurvivesCrashAtEveryStep(t *testing.T) {
	for _, scenario := range []struct {
		symbol   string
		amount   chain.Amount
		outgoing int // transfers of the master wallet: top-up and fee
	}{{"USDX", dollars(400), 2}, {"SIM", milli(500), 0}} {
		t.Run(fmt.Sprint(scenario.symbol), func(t *testing.T) {
			begin := func(w *harness) {
				w.fund(1, 0)
				w.deposited(scenario.symbol, scenario.amount)
			}
			crashEverywhere(t, account.Settings{ManualRelease: true}, begin, func(t *testing.T, w *harness) {
				s := w.settlements()[0]
				w.retry(
					func() error { return w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID) },
					func() bool { return false },
				)
				w.until(
					"the settlement is released",
					func() bool { s = w.settlements()[0]; return s.Status == settlement.Released },
				)
				w.process.Aside(func() {
					w.outgoing(scenario.outgoing)
					w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)

					if s.FeePaid != s.FeeNative || s.NetReleased == nil {
						t.Errorf("released as %+v", s)
					}

					w.clean(1, 0)
				})
			})
		})
	}
}
