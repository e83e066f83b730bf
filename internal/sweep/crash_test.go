package sweep_test

import (
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Pitfall 13. A process dies at every update and every call of its node, before it and after it
// took effect; others take over what is stored. Whatever the moment, there is exactly one transfer
// of each kind.
func TestReleaseSurvivesACrashAtEveryStep(t *testing.T) {
	scenarios := map[string]struct {
		symbol string
		amount chain.Amount
		usd    int64
		steps  int
	}{
		"token":  {"USDX", dollars(400), 400, 3},
		"native": {"SIM", coin(1), 2000, 2},
	}
	for name, scenario := range scenarios {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s after=%v", name, after), func(t *testing.T) {
				for at := 1; ; at++ {
					w := newHarness(t, account.Settings{})
					w.chain.Fund(w.master().Address, "SIM", coin(1))
					deposit := w.deposit(1)
					opened := w.pay("p1", deposit, scenario.symbol, scenario.amount, scenario.usd)
					w.process.Arm(at, after)

					s := w.until(opened.ID, settlement.Released)
					if w.processes == 1 {
						if at < 20 {
							t.Fatalf("only %d calls were counted", at)
						}

						t.Logf("died at %d moments", at-1)

						return
					}

					where := fmt.Sprintf("killed at call %d", at)
					w.onlyOnce(where, deposit.Address, scenario.steps)
					w.check(where+": at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
					w.check(where+": fee paid", s.FeePaid, s.FeeNative)

					if scenario.symbol == "USDX" {
						w.check(
							where+": tokens at the master wallet",
							w.chain.Balance(w.master().Address, "USDX"), scenario.amount,
						)
						left := w.chain.Balance(deposit.Address, "SIM")
						w.check(
							where+": native coin in all",
							w.chain.Balance(w.master().Address, "SIM").
								Add(s.FeePaid).
								Add(s.NetworkFees).
								Add(left),
							coin(1),
						)
					} else {
						w.check(where+": the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
					}

					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

// onlyOnce checks that the chain holds as many transactions of ours as a release has steps.
func (w *harness) onlyOnce(where string, deposit chain.Address, steps int) {
	w.t.Helper()

	tip, err := w.chain.Head(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}

	blocks, err := w.chain.Blocks(w.t.Context(), 0, tip.Tip.Height)
	if err != nil {
		w.t.Fatal(err)
	}

	ours := map[string]int{}
	n := 0

	for _, b := range blocks {
		for _, m := range b.Transfers {
			if m.From == deposit || m.From == w.master().Address {
				ours[string(m.From)+" to "+string(m.To)+" of "+m.AssetID]++
				n++
			}
		}
	}

	for what, times := range ours {
		if times != 1 {
			w.t.Errorf("%s: %d transfers from %s", where, times, what)
		}
	}

	if n != steps {
		w.t.Errorf("%s: %d transfers of ours, want %d", where, n, steps)
	}
}
