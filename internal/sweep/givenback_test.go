package sweep_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
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

// A sweep could not be paid for after a fork, was canceled, and a later release has its settlement. A second fork takes
// all of it: what the cancel costs goes with the later sweep and comes with the cancel, and is residue of neither.
func TestCancelThatALaterSweepBoreIsForked(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	paid := w.chain.Pay(deposit.Address, "SIM", coin(2))
	w.chain.Mine(3)

	s := w.until(w.open("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	fork := func(fate sim.OrphanFate) {
		tip := w.chain.MineEmpty(1).Height
		w.chain.Fork(sim.Fork{
			Depth:  tip - height,
			Length: tip - height + 1,
			Fate:   fate,
			Each:   map[string]sim.OrphanFate{paid: sim.Reinclude},
		})
	}

	fork(sim.DropOrphan)

	for range 60 { // the fee is replaced by one that pays more, and nothing is left for the sweep
		w.now = w.now.Add(time.Minute)
		w.chain.MineEmpty(1)
		w.work()
	}

	for until := w.now.Add(10 * time.Hour); w.now.Before(until); w.pass(5 * time.Minute) {
		w.work()
	}

	first := s.SweepTx
	if s = w.until(s.ID, settlement.Released); s.SweepTx == first {
		t.Fatal("it is released by the sweep of the other branch")
	}

	for range 2 {
		fork(sim.ReturnToPool)

		for until := w.now.Add(10 * time.Hour); w.now.Before(until); w.pass(5 * time.Minute) {
			w.work()
		}

		w.until(s.ID, settlement.Released)
		w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
		w.check("owed", w.owed(deposit), chain.Amount{})
		w.costsAreOnChain("after a fork", s.ID)
	}
}
