package settlement_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// The sweep leaves the chain after it was final, and comes back by the same bytes.
func TestReorganisationAfterTheRelease(t *testing.T) {
	w := newWorld(t, account.Settings{})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	before := s
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	s = w.until(s.ID, settlement.Reverted)
	if s.NetReleased != nil || !s.ReleasedAt.IsZero() || s.Resource().Reason != "" {
		t.Errorf("reverted as %+v", s)
	}
	s = w.until(s.ID, settlement.Released)
	if s.SweepTx != before.SweepTx || *s.NetReleased != *before.NetReleased || s.NetworkFees != before.NetworkFees || s.FeePaid != before.FeePaid {
		t.Errorf("released again as %+v, before as %+v", s, before)
	}
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	if w.told(event.SettlementReverted) != 1 || w.told(event.SettlementReleased) != 2 || s.Sequence != 3 {
		t.Errorf("told %d reverted, %d released, sequence %d", w.told(event.SettlementReverted), w.told(event.SettlementReleased), s.Sequence)
	}
}

// Payment and sweep leave the chain; the payment comes back, and so does the sweep of the same bytes.
func TestPaymentLostAfterTheReleaseAndBack(t *testing.T) {
	w := newWorld(t, account.Settings{})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	w.lose("p1")
	if s = w.get(s.ID); s.Status != settlement.Reverted {
		t.Fatalf("without its payment it is %s", s.Status)
	}
	if s = w.open("p1", w.deposit(1), "SIM", coin(1), 2000); s.Status != settlement.Released {
		t.Fatalf("its sweep stands, its payment is back, and it is %s", s.Status)
	}
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	w.lose("p1")
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
	if s = w.open("p1", w.deposit(1), "SIM", coin(1), 2000); s.Status != settlement.Releasing {
		t.Fatalf("its sweep is on its way again, and it is %s", s.Status)
	}
	s = w.until(s.ID, settlement.Released)
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
}

// All of a release is in other blocks after a reorganisation below finality: it is booked once.
func TestReorganisationDoesNotBookTwice(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	before := w.until(opened.ID, settlement.Released)
	tip := w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
	s := w.get(opened.ID)
	if s.Status != settlement.Released || s.FeePaid != before.FeePaid || s.NetworkFees != before.NetworkFees || w.told(event.SettlementReverted) != 1 {
		t.Errorf("afterwards %+v", s)
	}
	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}

// A carried fee is carried once, however often the sweep comes and goes.
func TestReorganisationDoesNotCarryTwice(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	w.until(first.ID, settlement.Reverted)
	w.until(first.ID, settlement.Released)
	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", second.CarriedIn, first.FeeNative)
}
