package moneyout_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/internal/crashtest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// deathEverywhere runs a story once in peace, counting the updates of the store and the calls of
// the node, and then again and again, killing the process at each of them, before it and after it
// took effect. begin prepares in peace; what story does is counted.
func deathEverywhere(
	t *testing.T,
	settings account.Settings,
	begin func(w *world),
	story func(t *testing.T, w *world),
) {
	t.Helper()
	deathEverywhereOn(t, sim.Config{}, settings, begin, story)
}

func deathEverywhereOn(
	t *testing.T,
	network sim.Config,
	settings account.Settings,
	begin func(w *world),
	story func(t *testing.T, w *world),
) {
	t.Helper()

	calls := 0
	run := func(at int, after bool) {
		inTime(t, settings, network, func(t *testing.T, w *world) {
			begin(w)
			boots := w.boots
			w.process.Arm(at, after)
			story(t, w)

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

	deaths := 0

	for _, after := range []bool{false, true} {
		for at := 1; at <= calls; at++ {
			run(at, after)

			deaths++
		}
	}

	t.Logf(
		"an undisturbed run makes %d updates and calls; killed before and after each of them: %d deaths survived",
		calls,
		deaths,
	)

	if deaths != 2*calls {
		t.Errorf("%d deaths, want %d", deaths, 2*calls)
	}
}

// retry does what a client with an idempotency key does: when the process died, it asks again, and
// gets what was stored.
func (w *world) retry(do func() error, stored func() bool) {
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

// Pitfall 13. Whatever the moment of death, the payout is sent once.
func TestPayoutSurvivesDeathAtEveryStep(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		t.Run(symbol, func(t *testing.T) {
			deathEverywhere(
				t,
				account.Settings{},
				func(w *world) { w.fund(1, 100) },
				func(t *testing.T, w *world) {
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

func (w *world) payouts() []payout.Payout {
	w.t.Helper()
	all, _, err := w.engine.Payouts.List(w.t.Context(), payout.Filter{Owner: w.owner, Limit: 100})
	w.must(err)

	return all
}

// outgoing checks how many transfers the master wallet made in all.
func (w *world) outgoing(want int) {
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
func (w *world) deposited(symbol string, amount chain.Amount) settlement.Settlement {
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

func (w *world) settlements() []settlement.Settlement {
	w.t.Helper()
	all, _, err := w.engine.Settlements.List(w.t.Context(), settlement.Filter{Owner: w.owner, Limit: 100})
	w.must(err)

	return all
}

// A token settlement has a top-up, a fee and a sweep: each happens once, whatever the moment of death.
func TestReleaseSurvivesDeathAtEveryStep(t *testing.T) {
	for _, story := range []struct {
		symbol   string
		amount   chain.Amount
		outgoing int // transfers of the master wallet: top-up and fee
	}{{"USDX", dollars(400), 2}, {"SIM", milli(500), 0}} {
		t.Run(fmt.Sprint(story.symbol), func(t *testing.T) {
			begin := func(w *world) {
				w.fund(1, 0)
				w.deposited(story.symbol, story.amount)
			}
			deathEverywhere(t, account.Settings{ManualRelease: true}, begin, func(t *testing.T, w *world) {
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
					w.outgoing(story.outgoing)
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
