package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// stopPlanning keeps releases from going on, until the function that it returns is called.
func (w *harness) stopPlanning(when func() bool) (goOn func()) {
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep && when() {
			return sim.Unavailable()
		}

		return nil
	})

	return func() { w.chain.SetIntercept(nil) }
}

// forkAll takes every block above a height away, with all that they held.
func (w *harness) forkAll(above uint64) {
	w.t.Helper()

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - above, Length: tip - above + 1, Fate: sim.DropOrphan})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
}

// costsAreOnChain compares what settlements show with the transactions that are in a block now.
func (w *harness) costsAreOnChain(when string, ids ...string) {
	w.t.Helper()

	var paid, burnt chain.Amount
	for _, id := range ids {
		s := w.get(id)
		paid, burnt = paid.Add(s.FeePaid), burnt.Add(s.NetworkFees)
	}

	w.check("platform fees "+when, paid, w.chain.Balance(w.fee, "SIM"))
	w.check("network fees "+when, burnt, w.burnt())
}

// Each transaction of a release is confirmed, and a fork takes it away with all that it needs: nothing can include it
// any more. What it cost and paid is on no settlement then, and is again once it is back in a block.
func TestCostsAreThoseOfABlock(t *testing.T) {
	for _, c := range []struct {
		name, symbol string
		amount       chain.Amount
		// reached says how far the release is when the fork comes.
		reached func(w *harness, s settlement.Settlement) bool
	}{
		{
			name: "fee of native coin", symbol: "SIM", amount: coin(1),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.FeePaid.IsZero() },
		},
		{
			name: "sweep of native coin", symbol: "SIM", amount: coin(1),
			reached: func(_ *harness, s settlement.Settlement) bool { return s.Status == settlement.Released },
		},
		{
			name: "top-up of a token", symbol: "USDX", amount: dollars(400),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.NetworkFees.IsZero() },
		},
		{
			name: "fee of a token", symbol: "USDX", amount: dollars(400),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.FeePaid.IsZero() },
		},
		{
			name: "sweep of a token", symbol: "USDX", amount: dollars(400),
			reached: func(_ *harness, s settlement.Settlement) bool { return s.Status == settlement.Released },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)

			before := w.chain.MineEmpty(5).Height
			w.chain.Pay(w.master().Address, "SIM", coin(1))
			opened := w.pay("p1", deposit, c.symbol, c.amount, 400)
			goOn := w.stopPlanning(func() bool { return c.reached(w, w.get(opened.ID)) })
			w.run("it is reached", func() bool { return c.reached(w, w.get(opened.ID)) })
			w.costsAreOnChain("at first", opened.ID)

			w.forkAll(before)
			w.lose("p1")
			w.costsAreOnChain("after the fork", opened.ID)
			w.now = w.now.Add(13 * time.Hour)
			w.run("a while later", func() bool { w.pass(time.Minute); return true })
			w.costsAreOnChain("a while later", opened.ID)
			goOn()

			// The money is there again, by other transactions.
			w.chain.Pay(w.master().Address, "SIM", coin(1))
			more := c.amount.Mul(2) // the old bytes may take a half of it
			w.chain.Pay(deposit.Address, c.symbol, more)
			w.chain.Mine(3)
			next := w.until(w.open("p2", deposit, c.symbol, more, 800).ID, settlement.Released)
			w.run("the first is over", func() bool { return w.live(deposit) == 0 })
			w.costsAreOnChain("in the end", opened.ID, next.ID)
			w.check("booked at the address", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
		})
	}
}
