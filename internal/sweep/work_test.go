package sweep_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A release of native coin is stalled, and one of a token goes on at its address. A second of that token waits for the
// first: none counts on the native coin of another.
func TestStalledReleaseLetsOneOtherGoOn(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Releasing)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
	w.chain.Pay(w.master().Address, "SIM", coin(1))
	w.chain.Mine(3)
	w.read()
	w.lose("p1")
	w.now = w.now.Add(20 * time.Minute)

	first := w.pay("p2", deposit, "USDX", dollars(100), 100)
	goOn := w.stopPlanning(func() bool { return w.get(first.ID).TopUpTx != "" })
	w.run("it is topped up", func() bool { return w.get(first.ID).TopUpTx != "" })

	second := w.pay("p3", deposit, "USDX", dollars(100), 100)

	goOn()

	w.run("the first is released", func() bool {
		w.check("releases under way", chain.Units(uint64(min(w.live(deposit), 3))), chain.Units(2))
		w.pass(time.Minute)

		return w.get(first.ID).Status == settlement.Released
	})
	w.until(second.ID, settlement.Released)
}
