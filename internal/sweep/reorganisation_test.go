package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// The sweep leaves the chain after it was final, and comes back by the same bytes.
func TestReorganisationAfterTheRelease(t *testing.T) {
	w := newHarness(t, account.Settings{})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	before := s

	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})

	s = w.until(s.ID, settlement.Reverted)
	if s.NetReleased != nil || !s.ReleasedAt.IsZero() || s.Resource().Reason != "" {
		t.Errorf("reverted as %+v", s)
	}

	s = w.until(s.ID, settlement.Released)
	if s.SweepTx != before.SweepTx || *s.NetReleased != *before.NetReleased ||
		s.NetworkFees != before.NetworkFees ||
		s.FeePaid != before.FeePaid {
		t.Errorf("released again as %+v, before as %+v", s, before)
	}

	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)

	if w.published(event.SettlementReverted) != 1 || w.published(event.SettlementReleased) != 2 ||
		s.Sequence != 3 {
		t.Errorf(
			"published %d reverted, %d released, sequence %d",
			w.published(event.SettlementReverted), w.published(event.SettlementReleased), s.Sequence,
		)
	}
}

// Payment and sweep leave the chain; the payment comes back, and so does the sweep of the same bytes.
func TestPaymentLostAfterTheReleaseAndBack(t *testing.T) {
	w := newHarness(t, account.Settings{})
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
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
	w.now = w.now.Add(2 * time.Minute)
	w.work()

	if s = w.open("p1", w.deposit(1), "SIM", coin(1), 2000); s.Status != settlement.Releasing {
		t.Fatalf("its sweep is on its way again, and it is %s", s.Status)
	}

	s = w.until(s.ID, settlement.Released)
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
}

// The sweep and the fee are in other blocks after a fork, and cost less there: the rest is left at
// the address, and the records say so. What the sweep brought counts as well when the payment goes
// and is back.
func TestReorganisationThatIsCheaper(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			deposit := w.deposit(1)
			w.chain.SetFee(4*sim.DefaultBaseFee, sim.DefaultPriority)
			opened := w.pay("p1", deposit, symbol, amount, 400)
			before := w.until(opened.ID, settlement.Released)
			left := w.residue(deposit)
			tip := w.chain.Mine(1)
			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
			w.now = w.now.Add(2 * time.Minute)
			w.work()

			s := w.until(opened.ID, settlement.Released)
			if !s.NetworkFees.Less(before.NetworkFees) || !left.Less(w.residue(deposit)) {
				t.Errorf(
					"the fees were %s and are %s, %s and now %s are left",
					before.NetworkFees, s.NetworkFees, left, w.residue(deposit),
				)
			}

			w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
			w.lose("p1")

			if s = w.open(
				"p1", deposit, symbol, amount, 400,
			); s.Status != settlement.Released ||
				*s.NetReleased != *before.NetReleased {
				t.Errorf(
					"its payment is back, and it is %s with %s, before %s",
					s.Status, s.NetReleased, before.NetReleased,
				)
			}
		})
	}
}

// All of a release is in other blocks after a reorganisation below finality: it is counted once.
func TestReorganisationIsCountedOnce(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	before := w.until(opened.ID, settlement.Released)
	tip := w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.now = w.now.Add(2 * time.Minute)
	w.work()

	s := w.get(opened.ID)
	if s.Status != settlement.Released || s.FeePaid != before.FeePaid ||
		s.NetworkFees != before.NetworkFees ||
		w.published(event.SettlementReverted) != 1 {
		t.Errorf("afterwards %+v", s)
	}

	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}

// A carried fee is carried once, however often the sweep comes and goes.
func TestReorganisationDoesNotCarryTwice(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
	w.until(first.ID, settlement.Reverted)
	w.until(first.ID, settlement.Released)
	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", second.CarriedIn, first.FeeNative)
}

// The top-up is undone after it was final: what it had brought is not counted on when the release
// is made again.
func TestTopUpThatIsUndone(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	w.chain.Mine(4)
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the top-up is on its way", func() bool { return w.get(opened.ID).TopUpTx != "" })
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep {
			return sim.Unavailable()
		}

		return nil
	})
	w.run("it is booked", func() bool { return !w.residue(deposit).IsZero() })
	w.chain.SetIntercept(nil)
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
	w.chain.CancelNonce(w.master().Address)
	w.chain.Mine(1)
	w.until(opened.ID, settlement.Failed)
	w.check("booked at the address", w.residue(deposit), chain.Amount{})
	w.acknowledge()

	if _, err := w.service.Retry(t.Context(), owner, opened.ID); err != nil {
		t.Fatal(err)
	}

	s := w.until(opened.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(400))
	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}

// The fee of a release is dearer after a fork, and its sweep takes the rest out of another deposit
// of the address: the release of that one bears it, and moves what is left.
func TestReorganisationThatIsDearer(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.chain.Pay(deposit.Address, "SIM", coin(1))
	tip := w.chain.Mine(3)
	w.chain.SetFee(sim.DefaultBaseFee*9/8, sim.DefaultPriority) // as much as the sweep can bear
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
	again := w.until(first.ID, settlement.Released)

	dearer := again.NetworkFees.SubFloor(first.NetworkFees)
	if dearer.IsZero() || w.chain.Balance(deposit.Address, "SIM") != coin(1).Sub(dearer) {
		t.Fatalf(
			"the fees were %s and are %s, %s are left of the other deposit",
			first.NetworkFees, again.NetworkFees, w.chain.Balance(deposit.Address, "SIM"),
		)
	}

	s := w.open("p2", deposit, "SIM", coin(1), 2000)
	s = w.until(s.ID, settlement.Released)
	w.check("borne", w.borne(s), dearer)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees).Add(dearer), s.Gross)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
	third := w.until(w.pay("p3", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("borne by the next", w.borne(third), chain.Amount{})
	w.check("all network fees", again.NetworkFees.Add(s.NetworkFees).Add(third.NetworkFees), w.burnt())
	w.check("the sum", third.NetReleased.Add(third.FeePaid).Add(third.NetworkFees), third.Gross)
}

// The same while the release of the other deposit is under way.
func TestReorganisationThatIsDearerForAReleaseUnderWay(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	opened := w.pay("p2", deposit, "SIM", coin(1), 2000)
	w.run("its fee is on its way", func() bool { return w.get(opened.ID).FeeTx != "" })
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep {
			return sim.Unavailable()
		}

		return nil
	})
	w.run("its fee is paid", func() bool { return !w.get(opened.ID).FeePaid.IsZero() })
	tip := w.chain.Mine(1)
	w.chain.SetFee(sim.DefaultBaseFee*9/8, sim.DefaultPriority)
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.run("the first is dearer", func() bool { return first.NetworkFees.Less(w.get(first.ID).NetworkFees) })
	w.chain.SetIntercept(nil)
	s := w.until(opened.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees).Add(w.borne(s)), s.Gross)
	w.check("all network fees", w.get(first.ID).NetworkFees.Add(s.NetworkFees), w.burnt())
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
}

// The platform fee of a small deposit was carried, and a later release paid it, when the small one's sweep leaves
// the chain and comes back: nobody pays for what never left its address.
func TestFeeThatALaterReleasePaid(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "SIM", chain.Pow10(12).Mul(3030), 6).ID, settlement.Released)
	w.check("paid at first", first.FeePaid, chain.Amount{})

	second := w.until(w.pay("p2", w.deposit(2), "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("carried", second.CarriedIn, first.FeeNative)

	tip := w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.now = w.now.Add(2 * time.Minute)
	w.work()

	again := w.until(first.ID, settlement.Released)
	w.check("arrived again", *again.NetReleased, *first.NetReleased)

	third := w.until(w.pay("p3", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("the sum", third.NetReleased.Add(third.FeePaid).Add(third.NetworkFees), third.Gross)
	w.check("the network fees of the next", third.NetworkFees, second.NetworkFees)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
}

// A sweep stands when its payment is gone, and when it is back with another amount: what it took of others is
// owed, neither more nor less.
func TestSweepOfAPaymentThatChanges(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, less := w.deposit(1), coin(1).Sub(chain.Units(7))
	w.until(w.pay("p1", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("owed at first", w.owed(deposit), chain.Amount{})

	w.lose("p1")
	w.check("owed without the payment", w.owed(deposit), coin(1))

	if s := w.open("p1", deposit, "SIM", less, 2000); s.Status != settlement.Released || s.Gross != less {
		t.Errorf("back it is %s of %s", s.Status, s.Gross)
	}

	w.check("owed with the smaller payment", w.owed(deposit), chain.Units(7))

	next := w.pay("p2", deposit, "SIM", coin(1), 2000)
	w.chain.Pay(deposit.Address, "SIM", chain.Units(7)) // as the harness paid all of the first
	next = w.until(next.ID, settlement.Released)
	w.check("borne", w.borne(next), chain.Units(7))
	w.check(
		"the sum",
		next.NetReleased.Add(next.FeePaid).Add(next.NetworkFees).Add(chain.Units(7)),
		next.Gross,
	)
	w.check("owed in the end", w.owed(deposit), chain.Amount{})
}

// What a foreign transaction took from an address is borne by the next release there, once.
func TestForeignTransactionIsBorneOnce(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	usual := w.until(w.pay("p1", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.foreign(deposit, chain.Units(5_000))

	bears := w.until(w.pay("p2", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("borne by the next", w.borne(bears), chain.Units(5_000))
	w.check("its network fees", bears.NetworkFees, usual.NetworkFees)

	last := w.until(w.pay("p3", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("not borne again", w.borne(last), chain.Amount{})
}

// A sweep stands whose payment is gone: it took what another payment brought, and the settlement of that one shows
// what of it reached the master wallet. Each network fee is shown once.
func TestSweepThatTookAnotherPayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, small := w.deposit(1), coin(1)
	first := w.until(w.pay("p1", deposit, "SIM", small, 2000).ID, settlement.Released)

	w.lose("p1") // what its sweep took is the first half of the next payment
	w.chain.Pay(deposit.Address, "SIM", small)
	w.chain.Mine(3)
	next := w.open("p2", deposit, "SIM", small.Mul(2), 4000)
	next = w.until(next.ID, settlement.Released)
	first = w.get(first.ID)

	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "SIM"))
	w.check("network fees", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("platform fees", first.FeePaid.Add(next.FeePaid), w.chain.Balance(w.fee, "SIM"))
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})

	// Its payment comes back: that has not been swept.
	w.chain.Pay(deposit.Address, "SIM", small)
	w.chain.Mine(3)
	first = w.until(w.open("p1", deposit, "SIM", small, 2000).ID, settlement.Released)
	w.check(
		"released of both",
		first.NetReleased.Add(*next.NetReleased),
		w.chain.Balance(w.master().Address, "SIM"),
	)
	w.check("network fees of both", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("left with both", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
}

// The fee transaction of a deposit whose payment is gone took what another payment brought: the settlement of that
// one bears it, and the first settlement pays nothing again when its payment is back.
func TestFeeThatTookAnotherPayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep && !w.get(first.ID).FeePaid.IsZero() {
			return sim.Unavailable()
		}

		return nil
	})
	w.run("its fee is paid", func() bool { return !w.get(first.ID).FeePaid.IsZero() })
	w.lose("p1") // what is at the address is another payment's from now on
	w.chain.SetIntercept(nil)
	w.now = w.now.Add(13 * time.Hour)
	w.work()

	first = w.get(first.ID)
	took := first.FeePaid.Add(first.NetworkFees)
	w.check("owed at the address", w.owed(deposit), took)

	next := w.until(w.open("p2", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("borne", w.borne(next), took)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
	w.check("network fees", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "SIM"))

	// Its payment comes back, whole: what the fee took was another's.
	w.chain.Pay(deposit.Address, "SIM", coin(1))
	w.chain.Mine(3)
	first = w.until(w.open("p1", deposit, "SIM", coin(1), 2000).ID, settlement.Released)
	w.check("left with both", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("network fees of both", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("platform fees", first.FeePaid.Add(next.FeePaid), w.chain.Balance(w.fee, "SIM"))
}

// A payment is gone before the fee transaction of its release was mined, and no coin is left to pay that. What else
// arrives at the address is released all the same: its top-up pays for the nonce too.
func TestReleaseBehindAFeeThatNothingPays(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.run("its fee is on its way", func() bool { return w.get(first.ID).FeeTx != "" })

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip, Length: tip + 1, Fate: sim.DropOrphan})
	w.lose("p1")
	w.check("left of the payment", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
	w.chain.Pay(w.master().Address, "SIM", coin(5))
	w.chain.Mine(3)
	w.now = w.now.Add(13 * time.Hour)

	next := w.until(w.pay("p2", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
	w.run("the first is over", func() bool { return w.live(deposit) == 0 })
	w.check("network fees", w.get(first.ID).NetworkFees.Add(w.get(next.ID).NetworkFees), w.burnt())
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed at the deposit address", w.owed(deposit), chain.Amount{})
}

// A fork takes all of a native release of two deposits, and its sweep is confirmed again before its fee is: in the end
// each settlement shows as released what it did before. Seed 2000001 of the simulation, with 1,000 steps.
func TestFeeThatIsConfirmedAfterItsSweep(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)

	w.chain.Pay(deposit.Address, "SIM", coin(1))
	w.chain.Pay(deposit.Address, "SIM", coin(2))

	first := w.open("p1", deposit, "SIM", coin(1), 400)
	second := w.open("p2", deposit, "SIM", coin(2), 400)
	w.chain.Mine(3)
	w.until(first.ID, settlement.Released)

	before := []settlement.Settlement{w.get(first.ID), w.get(second.ID)}
	if before[0].SweepID != before[1].SweepID {
		t.Fatal("they have no common release")
	}

	r, err := w.store.Sweep(t.Context(), before[0].SweepID)
	if err != nil {
		t.Fatal(err)
	}

	move := func(step settlement.Step, state wallet.State) {
		t.Helper()

		moved, err := w.store.Transaction(t.Context(), step.TransactionID)
		if err != nil {
			t.Fatal(err)
		}

		moved.State = state

		if err := w.update(t.Context(), w.services, func(ctx context.Context, tx store.Tx) error {
			return tx.AppendEvents(ctx, event.Event{Type: event.TransactionMoved, Payload: moved})
		}); err != nil {
			t.Fatal(err)
		}
	}

	for _, step := range r.Steps {
		move(step, wallet.Broadcast)
	}

	for i := range r.Steps {
		move(r.Steps[len(r.Steps)-1-i], wallet.Confirmed)
	}

	for i, id := range []string{first.ID, second.ID} {
		if s := w.get(id); s.Status != settlement.Released || *s.NetReleased != *before[i].NetReleased {
			t.Errorf("%s shows %s as released, and had shown %s", id, s.NetReleased, before[i].NetReleased)
		}

		w.checkPublished(id)
	}
}
