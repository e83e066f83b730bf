package sweep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

func TestPaymentLostBeforeTheRelease(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
	s := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	w.lose("p1")
	w.lose("p1")

	if s = w.get(s.ID); s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
		t.Fatalf("without its payment it is %s %s", s.Status, s.Reason)
	}

	if _, err := w.service.Retry(t.Context(), owner, s.ID); !errors.Is(err, fault.State) {
		t.Errorf("retrying without a payment: %v", err)
	}

	if again := w.open(
		"p1", w.deposit(1), "SIM", coin(1), 2000,
	); again.ID != s.ID ||
		again.Status != settlement.Pending {
		t.Errorf("with its payment it is %s", again.Status)
	}

	if err := w.service.ReleaseNow(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	w.until(s.ID, settlement.Released)

	if n := w.published(event.SettlementFailed); n != 1 {
		t.Errorf("published %d times", n)
	}
}

// The payment goes away while the release waits for its signature; the other deposit of the address
// is released all the same.
func TestPaymentLostWhileItsReleaseIsQueued(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	w.chain.Pay(deposit.Address, "USDX", dollars(400))
	w.chain.Mine(3)
	a := w.open("p1", deposit, "USDX", dollars(400), 400)

	b := w.open("p2", deposit, "USDX", dollars(300), 300) // its money will not be there
	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	// The node does not show 700 yet, so nothing was planned; the second payment turns out to be gone.
	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(400))

	if lost := w.get(b.ID); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned {
		t.Errorf("the lost one is %s %s", lost.Status, lost.Reason)
	}
}

func TestPaymentLostFromAQueuedRelease(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)

	b := w.pay("p2", deposit, "USDX", dollars(300), 300)
	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if s := w.get(a.ID); s.SweepID == "" || s.Status != settlement.Pending {
		t.Fatalf("planned as %+v", s)
	}

	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(400))
	w.check("paid", s.FeePaid, s.FeeNative)

	if lost := w.get(
		b.ID,
	); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned ||
		lost.SweepID != "" {
		t.Errorf("the lost one is %+v", lost)
	}

	w.open("p2", deposit, "USDX", dollars(300), 300)
	w.until(b.ID, settlement.Released)
	w.check("in all", w.chain.Balance(w.master().Address, "USDX"), dollars(700))
}

// What is queued pays the fee of both: it is canceled, and the release planned again.
func TestPaymentLostFromAQueuedNativeRelease(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "SIM", coin(1), 2000)

	b := w.pay("p2", deposit, "SIM", coin(2), 4000)
	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("paid", s.FeePaid, s.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("left for the other", w.chain.Balance(deposit.Address, "SIM"), coin(2))
	w.open("p2", deposit, "SIM", coin(2), 4000)
	s = w.until(b.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(2))
}

// The payment goes away between the plan and its transaction.
func TestPaymentLostWhileTheReleaseIsPlannedOn(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.pay("p2", deposit, "USDX", dollars(300), 300)
	w.run("the fee is on its way", func() bool { return w.get(a.ID).FeeTx != "" })

	lost := false

	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep && !lost {
			lost = true

			w.lose("p2")
		}

		return nil
	})
	s := w.until(a.ID, settlement.Released)

	if !lost {
		t.Fatal("it was never planned on")
	}

	w.check("released", *s.NetReleased, dollars(400))
	w.check("left for the other", w.chain.Balance(deposit.Address, "USDX"), dollars(300))
}

// The fee of a native deposit is signed when its payment leaves the chain, and is included when the
// payment is back: what it took out of the deposit counts, and nothing is swept before the payment
// stands.
func TestPaymentLostAfterTheFeeIsSigned(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	s := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.run("the fee is signed", func() bool { return w.get(s.ID).FeeTx != "" })
	w.lose("p1")
	w.run("the fee is paid all the same", func() bool { return !w.get(s.ID).FeePaid.IsZero() })

	for range 20 {
		w.pass(time.Minute)
		w.work()
	}

	if lost := w.get(
		s.ID,
	); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned ||
		lost.SweepTx != "" {
		t.Fatalf("without its payment it is %+v", lost)
	}

	if again := w.open(
		"p1", deposit, "SIM", coin(1), 2000,
	); again.ID != s.ID ||
		again.Status != settlement.Releasing {
		t.Fatalf("with its payment it is %+v", again)
	}

	s = w.until(s.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(1))
	w.check("the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
	w.check("left at the address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})

	if n := w.published(event.SettlementReleased); n != 1 {
		t.Errorf("%d settlement.released", n)
	}
}

// The payment goes away while the platform fee of both is on its way: it is paid for the lost one
// too, which owes nothing more when it is back.
func TestPaymentLostWhileItsFeeIsOnItsWay(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			deposit := w.deposit(1)
			a := w.pay("p1", deposit, symbol, amount, 400)
			b := w.pay("p2", deposit, symbol, amount, 400)
			w.run("the fee is on its way", func() bool { return w.get(a.ID).FeeTx != "" })
			w.lose("p2")

			w.check("paid before its block", w.get(b.ID).FeePaid, chain.Amount{})

			a = w.until(a.ID, settlement.Released)
			w.check("paid in its block", w.get(b.ID).FeePaid, b.FeeNative)
			w.open("p2", deposit, symbol, amount, 400)

			b = w.until(b.ID, settlement.Released)
			for _, s := range []settlement.Settlement{a, b} {
				w.check("paid", s.FeePaid, s.FeeNative)
			}

			if symbol == "SIM" { // the other one bore what was owed for the lost one, and that is left now
				var sum chain.Amount
				for _, s := range []settlement.Settlement{a, b} {
					sum = sum.Add(*s.NetReleased).Add(s.FeePaid).Add(s.NetworkFees)
				}

				w.check("the sum", sum.Add(w.residue(deposit)), a.Gross.Add(b.Gross))
			}

			w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), a.FeeNative.Add(b.FeeNative))
			w.check(
				"left at the deposit address", w.chain.Balance(deposit.Address, "SIM"),
				w.residue(deposit),
			)
		})
	}
}

// The fee of both never comes about, or is undone after it was final: the lost one owes it again.
func TestPaymentLostWithAFeeThatFails(t *testing.T) {
	for name, undo := range map[string]func(w *harness, a settlement.Settlement){
		"on its way": func(w *harness, a settlement.Settlement) {
			w.lose("p2")
			w.chain.Replace(a.FeeTx)
		},
		"final": func(w *harness, a settlement.Settlement) {
			w.chain.FailNext(sim.MethodPlanSweep, sim.Unavailable(), 1000) // no sweep is planned
			w.run("it is booked", func() bool { return !w.get(a.ID).FeePaid.IsZero() })
			w.lose("p2")
			w.chain.Fork(sim.Fork{Depth: 4, Fate: sim.DropOrphan})
			w.chain.CancelNonce(a.Deposit.Address)
			w.chain.Mine(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			a := w.pay("p1", deposit, "SIM", coin(1), 2000)
			b := w.pay("p2", deposit, "SIM", coin(1), 2000)
			w.run("the fee is on its way", func() bool { return w.get(a.ID).FeeTx != "" })
			undo(w, w.get(a.ID))

			a = w.until(a.ID, settlement.Failed)
			w.check("live at the address", chain.Units(uint64(w.live(a.Deposit))), chain.Amount{})
			w.check("paid", a.FeePaid, chain.Amount{})
			w.check("paid of the lost one", w.get(b.ID).FeePaid, chain.Amount{})
			w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), chain.Amount{})
		})
	}
}

// A fork has the fee of a token's release under way again, and its sweep is displaced: the release is not over before
// that fee has an outcome, and the fee is not paid once more.
func TestReleaseThatIsGivenUpWhileItsFeeIsUnderWay(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep is on its way", func() bool { return w.get(opened.ID).SweepTx != "" })

	s, tip := w.get(opened.ID), w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{
		Depth:  tip - 4,
		Length: tip - 3,
		Fate:   sim.Reinclude,
		Each:   map[string]sim.OrphanFate{s.FeeTx: sim.DropOrphan},
	})
	w.read()
	w.chain.Replace(s.SweepTx)
	w.run("it has failed", func() bool {
		w.chain.Drop(s.FeeTx) // it comes back later

		return w.get(s.ID).Status == settlement.Failed
	})
	w.check("under way", chain.Units(uint64(w.live(deposit))), chain.Units(1))
	w.acknowledge()
	w.run("its fee has an outcome", func() bool { return w.live(deposit) == 0 })

	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}

	s = w.until(s.ID, settlement.Released)
	w.check("paid", s.FeePaid, s.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
}

// A settlement failed after its fee was paid, and once more when it was retried. A fork takes its payment and that fee
// away: its address owes nothing then, as nothing was taken there.
func TestFeeOfAnEarlierReleaseIsGoneWithItsPayment(t *testing.T) {
	for name, again := range map[string]bool{"it failed again": true, "it waits": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			refuse := false
			w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
				if refuse {
					return chain.Refuse("policy")
				}

				return nil
			})
			w.boot()

			deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
			s := w.pay("p1", deposit, "SIM", coin(1), 2000)
			w.run("the fee is paid", func() bool {
				refuse = refuse || w.get(s.ID).FeeTx != ""
				return !w.get(s.ID).FeePaid.IsZero()
			})
			w.until(s.ID, settlement.Failed)

			if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
				t.Fatal(err)
			}

			if again {
				w.until(s.ID, settlement.Failed)
			}

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
			w.read()
			w.lose("p1")
			w.now = w.now.Add(2 * time.Minute)
			w.run("the fee is in no block", func() bool { return w.get(s.ID).FeePaid.IsZero() })
			w.check("owed", w.owed(deposit), chain.Amount{})
			w.check("left", w.residue(deposit), chain.Amount{})

			refuse = false

			w.chain.Pay(deposit.Address, "SIM", coin(2)) // pays that fee
			w.chain.Mine(3)
			w.now = w.now.Add(10 * time.Minute)

			next := w.until(w.open("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
			w.run("over", func() bool { return w.live(deposit) == 0 })
			w.check("left with the next", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
			w.check("owed with the next", w.owed(deposit), chain.Amount{})
			w.costsAreOnChain("with the next", s.ID, next.ID)
		})
	}
}
