package sweep_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A sweep that has expired, and for which the money is missing now, is planned again: the settlement is released
// without an operator, and all native coin is accounted for.
func TestExpiredSweepWithoutMoneyIsPlannedAgain(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain = sim.New(sim.Config{Clock: func() time.Time { return w.now }, ValidBlocks: 5})
	w.fee = w.chain.NewAddress()
	w.interceptCalls()
	w.connect()

	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })

	first := w.get(opened.ID).SweepID
	missing := fault.New(fault.State, "insufficient_funds", "the gas is missing")

	w.chain.Drop(w.get(opened.ID).SweepTx)
	w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 20)
	w.chain.FailNext(sim.MethodBuild, missing, 1)

	s := w.until(opened.ID, settlement.Released)
	if s.SweepID == first {
		t.Error("it was released by the release that was planned first")
	}

	w.check("net", *s.NetReleased, dollars(400))
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeePaid)
	w.check(
		"native coin in all",
		w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).
			Add(w.chain.Balance(deposit.Address, "SIM")),
		coin(1),
	)
	w.check("owed at the address", w.owed(deposit), chain.Amount{})
}
