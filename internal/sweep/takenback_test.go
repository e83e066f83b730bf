package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
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
			name:    "fee of native coin",
			symbol:  "SIM",
			amount:  coin(1),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.FeePaid.IsZero() },
		},
		{
			name:    "sweep of native coin",
			symbol:  "SIM",
			amount:  coin(1),
			reached: func(_ *harness, s settlement.Settlement) bool { return s.Status == settlement.Released },
		},
		{
			name:    "top-up of a token",
			symbol:  "USDX",
			amount:  dollars(400),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.NetworkFees.IsZero() },
		},
		{
			name:    "fee of a token",
			symbol:  "USDX",
			amount:  dollars(400),
			reached: func(_ *harness, s settlement.Settlement) bool { return !s.FeePaid.IsZero() },
		},
		{
			name:    "sweep of a token",
			symbol:  "USDX",
			amount:  dollars(400),
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

// A cancel that displaced a sweep costs what its block says, and nothing once that is gone.
func TestCostOfACancelIsThatOfABlock(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)

			before := w.chain.MineEmpty(5).Height
			w.chain.Pay(w.master().Address, "SIM", coin(1))
			opened := w.pay("p1", deposit, symbol, amount, 400)
			w.run("the sweep is on its way", func() bool { return w.get(opened.ID).SweepTx != "" })
			w.chain.SetFee(40*sim.DefaultBaseFee, sim.DefaultPriority)

			if symbol == "USDX" {
				w.chain.Pay(deposit.Address, "SIM", milli(10)) // for the cancel
			}

			for range 100 {
				w.pass(5 * time.Minute)
				w.work()
			}

			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			w.until(opened.ID, settlement.Failed)
			w.costsAreOnChain("at first", opened.ID)

			w.forkAll(before)
			w.lose("p1")
			w.costsAreOnChain("after the fork", opened.ID)
		})
	}
}

// One of two payments is gone when the fee of both is confirmed, and a fork takes that away as well: nobody paid it.
// Both pay their own once it is back.
func TestFeeOfADetachedSettlementIsThatOfABlock(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			deposit := w.deposit(1)
			a := w.pay("p1", deposit, symbol, amount, 400)
			b := w.pay("p2", deposit, symbol, amount, 400)
			goOn := w.stopPlanning(func() bool { return !w.get(a.ID).FeePaid.IsZero() })
			w.run("the fee is on its way", func() bool { return w.get(a.ID).FeeTx != "" })
			height := w.chain.MineEmpty(1).Height
			w.lose("p2")
			w.run("the fee is paid", func() bool { return !w.get(a.ID).FeePaid.IsZero() })
			w.costsAreOnChain("at first", a.ID, b.ID)

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
			w.read()
			w.costsAreOnChain("after the fork", a.ID, b.ID)

			// Its price is another one when the payment is back; the fee that is under way stays as it is.
			w.openAs(sweep.OpenParams{
				Owner:       owner,
				PaymentID:   "p2",
				Network:     network,
				Asset:       w.asset(symbol),
				Deposit:     deposit,
				Gross:       amount,
				USDValue:    decimal.NewFromInt(400),
				NativePrice: price.Mul(price),
				ConfirmedAt: w.now,
			})

			goOn()
			w.until(a.ID, settlement.Released)
			w.until(b.ID, settlement.Released)
			w.costsAreOnChain("in the end", a.ID, b.ID)
		})
	}
}

// The master wallet's fee transaction leaves the chain, and the sweep of the token stands. The fee is not paid, and not
// left to a later release, until it is clear that it never will be.
func TestFeeThatLeavesItsSweepBehind(t *testing.T) {
	for name, back := range map[string]bool{"it comes back": true, "it is displaced": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			deposit := w.deposit(1)
			s := w.until(w.pay("p1", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{
				Depth:  tip - 4,
				Length: tip - 3,
				Fate:   sim.Reinclude,
				Each:   map[string]sim.OrphanFate{s.FeeTx: sim.DropOrphan},
			})
			w.read()
			w.costsAreOnChain("after the fork", s.ID)

			if !back {
				w.chain.CancelNonce(w.master().Address)
			}

			w.now = w.now.Add(2 * time.Minute)
			w.run("it is over", func() bool { return w.live(deposit) == 0 })
			w.pass(time.Minute)
			w.acknowledge()

			s = w.until(s.ID, settlement.Released)
			next := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
			w.check("paid at the fee address", s.FeePaid.Add(next.FeePaid), w.chain.Balance(w.fee, "SIM"))
			w.check("all fees", w.chain.Balance(w.fee, "SIM"), s.FeeNative.Add(next.FeeNative))

			b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
			if err != nil {
				t.Fatal(err)
			}

			w.check("reserved in the end", b.Reserved, chain.Amount{})
		})
	}
}

// A failed settlement follows its payment to another branch, where that brought less, also while its fee is under way
// again. No other transaction is said to have released it then. Seed 9 of the simulation.
func TestFailedSettlementFollowsItsPaymentWhileItsFeeIsUnderWay(t *testing.T) {
	w := newHarness(t, account.Settings{})
	refuse := false
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
		if refuse {
			return chain.Refuse("policy")
		}

		return nil
	})
	w.boot()

	deposit, less := w.deposit(1), coin(1).Sub(milli(1))

	before := w.chain.MineEmpty(5).Height
	paid := w.chain.Pay(deposit.Address, "SIM", coin(1))
	w.chain.Mine(3)
	opened := w.open("p1", deposit, "SIM", coin(1), 400)
	w.run("the fee is paid", func() bool {
		refuse = refuse || w.get(opened.ID).FeeTx != ""
		return !w.get(opened.ID).FeePaid.IsZero()
	})

	failed := w.until(opened.ID, settlement.Failed)
	if failed.Reason != settlement.TransactionFailed {
		t.Fatalf("failed as %s", failed.Reason)
	}

	// On the other branch it brought less, and the fee waits in the pool.
	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{
		Depth:  tip - before,
		Length: tip - before + 1,
		Each:   map[string]sim.OrphanFate{paid: sim.DropOrphan},
	})
	w.chain.Drop(failed.FeeTx)
	w.chain.Pay(deposit.Address, "SIM", less)
	w.read()
	w.lose("p1")
	w.costsAreOnChain("after the fork", opened.ID)

	if s := w.open("p1", deposit, "SIM", less, 400); s.Gross != less || s.Status != settlement.Failed {
		t.Errorf("its payment is back with %s, and it is %s with %s", less, s.Status, s.Gross)
	}

	if err := w.fulfill(deposit, 9, "SIM", milli(990), opened.ID); fault.Code(err) != "settlement_state" {
		t.Errorf("released by another transaction while its fee is under way: %v", err)
	}

	refuse = false

	w.run("the fee has an outcome, and it is retried", func() bool {
		_, err := w.service.Retry(t.Context(), owner, opened.ID)
		return err == nil
	})

	s := w.until(opened.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	w.costsAreOnChain("in the end", opened.ID)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
}

// A settlement has failed, and a fork takes its payment. Until that is back nobody retries it, which would release what
// others brought to the address; of that the address owes what the release had cost. Seed 238 of the simulation.
func TestFailedSettlementIsNotRetriedWithoutItsPayment(t *testing.T) {
	for _, c := range []struct {
		symbol string
		amount chain.Amount
		usd    int64
	}{{"SIM", coin(1), 2000}, {"USDX", dollars(400), 400}} {
		t.Run(c.symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			refuse := false
			w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
				if refuse {
					return chain.Refuse("policy")
				}

				return nil
			})
			w.boot()

			deposit := w.deposit(1)
			before := w.chain.MineEmpty(5).Height
			paid := w.chain.Pay(deposit.Address, c.symbol, c.amount)
			w.chain.Mine(3)

			first := w.open("p1", deposit, c.symbol, c.amount, c.usd)
			w.run("the fee is paid", func() bool {
				refuse = refuse || w.get(first.ID).FeeTx != ""
				return !w.get(first.ID).FeePaid.IsZero()
			})
			w.until(first.ID, settlement.Failed)

			refuse = false
			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{
				Depth:  tip - before,
				Length: tip - before + 1,
				Each:   map[string]sim.OrphanFate{paid: sim.DropOrphan},
			})
			w.chain.Pay(deposit.Address, c.symbol, c.amount)
			w.chain.Mine(3)
			w.read()
			w.run("the fee is in a block again", func() bool { return !w.get(first.ID).FeePaid.IsZero() })
			w.pass(time.Minute)
			w.lose("p1")

			if _, err := w.service.Retry(t.Context(), owner, first.ID); !errors.Is(err, fault.State) {
				t.Errorf("retried without its payment: %v", err)
			}

			second := w.until(w.open("p2", deposit, c.symbol, c.amount, c.usd).ID, settlement.Released)
			w.atRest(deposit, first, second)

			if _, err := w.service.Retry(t.Context(), owner, first.ID); !errors.Is(err, fault.State) {
				t.Errorf("retried without its payment: %v", err)
			}

			w.chain.Pay(deposit.Address, c.symbol, c.amount)
			w.chain.Mine(3)

			again := w.open("p1", deposit, c.symbol, c.amount, c.usd)
			if again.Status != settlement.Failed || again.Reason != settlement.TransactionFailed {
				t.Errorf("with its payment back it is %s as %s", again.Status, again.Reason)
			}

			if _, err := w.service.Retry(t.Context(), owner, first.ID); err != nil {
				t.Fatal(err)
			}

			w.until(first.ID, settlement.Released)
			w.atRest(deposit, first, second)
			w.check("of the asset left", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
		})
	}
}

// atRest compares what lies at a deposit's address, and what settlements cost, with the chain.
func (w *harness) atRest(deposit chain.Party, settlements ...settlement.Settlement) {
	w.t.Helper()

	var fees chain.Amount
	for _, s := range settlements {
		fees = fees.Add(w.get(s.ID).NetworkFees)
	}

	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed", w.owed(deposit), chain.Amount{})
	w.check("network fees", fees, w.burnt())
}

// A fork drops a payment in the middle of its release, and its address is paid again. What was paid does not wait for
// what may come back, and neither is lost when it does.
func TestNextPaymentDoesNotWaitForOneThatIsGone(t *testing.T) {
	amounts := map[string]chain.Amount{"SIM": coin(1), "USDX": dollars(400)}

	for _, c := range []struct {
		name, first, second string
		// fee is set when the first fee is confirmed before the fork; else it is under way.
		fee bool
		// A nonce that no coin pays for is given up after Config.CancelAfter of the outbox.
		within time.Duration
	}{
		{"coin after coin", "SIM", "SIM", true, 20 * time.Minute},
		{"coin after coin whose fee is under way", "SIM", "SIM", false, 20 * time.Minute},
		{"token after coin", "SIM", "USDX", true, 7 * time.Hour},
		{"token after coin whose fee is under way", "SIM", "USDX", false, 7 * time.Hour},
		{"token after token", "USDX", "USDX", true, 20 * time.Minute},
		{"coin after token", "USDX", "SIM", true, 20 * time.Minute},
	} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/it comes back: %t", c.name, back), func(t *testing.T) {
				w := newHarness(t, account.Settings{})
				w.chain.Fund(w.master().Address, "SIM", coin(1))

				deposit := w.deposit(1)

				before := w.chain.MineEmpty(5).Height
				opened := w.pay("p1", deposit, c.first, amounts[c.first], 400)
				reached := func() bool {
					s := w.get(opened.ID)
					return c.fee && !s.FeePaid.IsZero() || !c.fee && s.FeeTx != ""
				}
				goOn := w.stopPlanning(reached)
				w.run("its release is under way", reached)
				goOn()
				w.forkAll(before)
				w.lose("p1")

				next := w.pay("p2", deposit, c.second, amounts[c.second].Mul(2), 800)
				for until := w.now.Add(c.within); w.now.Before(until); w.pass(30 * time.Second) {
					w.work()
				}

				if next = w.get(next.ID); next.Status != settlement.Released {
					t.Fatalf("after %s the next payment is %s", c.within, next.Status)
				}

				w.costsAreOnChain("with the next", opened.ID, next.ID)

				if !back {
					return
				}

				w.pay("p1", deposit, c.first, amounts[c.first], 400)

				s := w.until(opened.ID, settlement.Released)
				w.costsAreOnChain("with both", s.ID, next.ID)
				w.check("left with both", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
			})
		}
	}
}

// A released payment leaves the chain with its sweep, which nothing pays for any more, and a cancel displaces that:
// what it costs, and a fee that a later release has paid, were no payment's that is there. The next one at the
// address bears it, and the address has it again when the first payment is back.
func TestCostOfAReleaseWhosePaymentIsGone(t *testing.T) {
	for name, c := range map[string]struct{ amount, usd uint64 }{
		"it paid its fee":              {1000, 2000},
		"a later release pays its fee": {3, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			height := w.chain.MineEmpty(5).Height
			first := w.until(
				w.pay("p1", deposit, "SIM", milli(c.amount), int64(c.usd)).ID,
				settlement.Released,
			)
			second := w.until(w.pay("p2", w.deposit(2), "SIM", coin(1), 2000).ID, settlement.Released)

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
			w.chain.Pay(w.deposit(2).Address, "SIM", coin(1))
			w.chain.Pay(deposit.Address, "SIM", milli(2)) // pays the cancel, and not the sweep
			w.chain.Mine(3)
			w.read()
			w.lose("p1")

			for range 200 {
				w.pass(5 * time.Minute)
				w.work()
			}

			burnt := func() chain.Amount {
				return w.get(first.ID).NetworkFees.Add(w.get(second.ID).NetworkFees)
			}

			third := w.until(w.open("p3", deposit, "SIM", milli(2), 4).ID, settlement.Released)
			w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
			w.check("owed", w.owed(deposit), chain.Amount{})
			w.check("network fees", burnt().Add(third.NetworkFees), w.burnt())

			w.chain.Pay(deposit.Address, "SIM", milli(c.amount))
			w.chain.Mine(3)
			w.open("p1", deposit, "SIM", milli(c.amount), int64(c.usd))
			w.until(first.ID, settlement.Released)
			w.check("left with the payment", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
			w.check("owed with the payment", w.owed(deposit), chain.Amount{})
			w.check("network fees with the payment", burnt().Add(third.NetworkFees), w.burnt())
		})
	}
}

// A release was given up as its payment was gone, and another one bore what it took. A fork has the first under way
// again, its payment is back, and that of the other is gone: what the other took is owed at once, and not after it has
// waited for its payment.
func TestReleaseDoesNotCountOnWhatAnotherTook(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height

	first := w.pay("p1", deposit, "SIM", coin(2), 4000)
	goOn := w.stopPlanning(func() bool { return w.get(first.ID).FeeTx != "" })
	w.run("the first fee is paid", func() bool { return !w.get(first.ID).FeePaid.IsZero() })
	w.lose("p1")
	goOn()

	second := w.open("p2", deposit, "SIM", coin(2), 4000)
	goOn = w.stopPlanning(func() bool { return w.get(second.ID).FeeTx != "" })
	w.run("the second fee is paid", func() bool { return !w.get(second.ID).FeePaid.IsZero() })

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.Reinclude})
	w.read()
	w.lose("p2")
	w.open("p1", deposit, "SIM", coin(2), 4000)
	goOn()

	w.until(first.ID, settlement.Released)
	w.run("both are over", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("of both", first.ID, second.ID)
}

// One of two payments of a sweep is gone, another one is released with what it brought, and once it is back a sweep of
// its own takes it. A fork has the first sweep leave its block, and it is in one again: what it brought is released
// once, and nobody gets more than its deposit.
func TestSweepThatASettlementLeftIsForked(t *testing.T) {
	for _, c := range []struct {
		name, symbol string
		unit         chain.Amount
		// third is what the other payment brings, in units of which the first sweep brings 2 for it.
		third uint64
	}{
		{"coin that is claimed", "SIM", coin(1), 2},
		{"coin that is claimed in a release", "SIM", coin(1), 4},
		{"token that is claimed", "USDX", dollars(2000), 2},
		{"token that is claimed in a release", "USDX", dollars(2000), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(10))

			deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
			before := w.chain.Balance(w.master().Address, c.symbol)
			pay := func(units uint64) {
				w.chain.Pay(deposit.Address, c.symbol, c.unit.Mul(units))
				w.chain.Mine(3)
			}
			open := func(payment string, units uint64) string {
				return w.open(payment, deposit, c.symbol, c.unit.Mul(units), 4000).ID
			}

			pay(4)

			first, second := open("p1", 2), open("p2", 2)
			w.until(first, settlement.Released)
			w.until(second, settlement.Released)
			w.lose("p2")

			if c.third > 2 {
				pay(c.third - 2)
			}

			third := open("p3", c.third)
			w.until(third, settlement.Released)
			pay(2)
			w.until(open("p2", 2), settlement.Released)

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
			w.run(
				"the first sweep is forked",
				func() bool { return w.get(first).Status != settlement.Released },
			)

			var sum chain.Amount

			for _, id := range []string{first, second, third} {
				s := w.until(id, settlement.Released)
				sum = sum.Add(*s.NetReleased)

				if s.Gross.Less(*s.NetReleased) {
					t.Errorf("%s released %s of %s", s.PaymentID, s.NetReleased, s.Gross)
				}
			}

			w.check("released", before.Add(sum), w.chain.Balance(w.master().Address, c.symbol))
		})
	}
}

// A settlement left a release that had paid its fee, and is in the next one. A fork takes the fee out of its block as
// that next release loses a payment: what is under way is not paid a second time.
func TestFeeUnderWayIsNotPaidByTheNextReleaseThatLosesAPayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	stays := w.pay("p1", deposit, "USDX", dollars(100), 100)
	leaves := w.pay("p2", deposit, "USDX", dollars(400), 400)

	goOn := w.stopPlanning(func() bool { return !w.get(stays.ID).FeePaid.IsZero() })
	w.run("the fee is on its way", func() bool { return w.get(stays.ID).FeeTx != "" })
	height := w.chain.MineEmpty(1).Height
	w.lose("p2")
	goOn()
	w.until(stays.ID, settlement.Released)

	w.open("p2", deposit, "USDX", dollars(400), 400)
	gone := w.pay("p3", deposit, "USDX", dollars(200), 200)
	goOn = w.stopPlanning(func() bool { return w.get(gone.ID).TopUpTx != "" })
	w.run("the next is topped up", func() bool { return !w.get(gone.ID).NetworkFees.IsZero() })

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.read()
	w.lose("p3")
	goOn()

	w.until(stays.ID, settlement.Released)
	w.until(leaves.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", stays.ID, leaves.ID, gone.ID)
}

// A release of two payments ends as one of them is gone, and the other is to be planned anew. A fork has its fee under
// way again as that payment is back: the release goes on, and its sweep releases both.
func TestReleaseThatComesBackReleasesWhatWasToBePlannedAnew(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	w.chain.Pay(deposit.Address, "SIM", coin(1))
	stays := w.pay("p1", deposit, "SIM", coin(1), 2000)
	goes := w.open("p2", deposit, "SIM", coin(1), 2000)

	goOn := w.stopPlanning(func() bool { return w.get(stays.ID).FeeTx != "" })
	w.run("the fee is on its way", func() bool { return w.get(stays.ID).FeeTx != "" })
	height := w.chain.MineEmpty(1).Height
	w.run("the fee is paid", func() bool { return !w.get(stays.ID).FeePaid.IsZero() })
	w.lose("p2")
	w.now = w.now.Add(time.Minute)

	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	if s := w.get(stays.ID); s.Reason != settlement.Replanning {
		t.Fatalf("%s is %s as %q", s.ID, s.Status, s.Reason)
	}

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.read()
	w.open("p2", deposit, "SIM", coin(1), 2000)
	goOn()

	stays, goes = w.until(stays.ID, settlement.Released), w.until(goes.ID, settlement.Released)
	w.costsAreOnChain("in the end", stays.ID, goes.ID)
	w.check("released", stays.NetReleased.Add(*goes.NetReleased), w.chain.Balance(w.master().Address, "SIM"))
}

// A payment comes back with less than its release swept for it, and a fork has that release in other blocks: its
// network fees are split by what is there, and nobody keeps a part of what is taken back.
func TestNetworkFeesFollowAnAmountThatChanged(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	w.chain.Pay(deposit.Address, "USDX", dollars(100))
	first := w.pay("p1", deposit, "USDX", dollars(100), 100)
	second := w.open("p2", deposit, "USDX", dollars(100), 100)
	w.until(first.ID, settlement.Released)
	w.lose("p2")
	w.open("p2", deposit, "USDX", dollars(30), 30)
	w.costsAreOnChain("of another amount", first.ID, second.ID)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.read()
	w.costsAreOnChain("in no block", first.ID, second.ID)

	w.until(first.ID, settlement.Released)
	w.until(second.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", first.ID, second.ID)
}

// Of two that shared a fee, one lost its payment and the other was swept by a release of its own. The payment is back
// with another amount: what the swept one bears of the fee changes, and so what its sweep left.
func TestAmountThatChangedChangesWhatALaterReleaseLeft(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	w.chain.Pay(deposit.Address, "SIM", coin(2))
	stays := w.pay("p1", deposit, "SIM", coin(1), 2000)
	goes := w.open("p2", deposit, "SIM", coin(1), 2000)

	goOn := w.stopPlanning(func() bool { return w.get(stays.ID).FeeTx != "" })
	w.run("the fee is paid", func() bool { return !w.get(stays.ID).FeePaid.IsZero() })
	w.lose("p2")
	goOn()

	stays = w.until(stays.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.open("p2", deposit, "SIM", coin(2), 4000)

	if bears := w.get(stays.ID).NetworkFees; !bears.Less(stays.NetworkFees) {
		t.Errorf("%s bears %s of the fees, before %s", stays.ID, bears, stays.NetworkFees)
	}

	stays, goes = w.get(stays.ID), w.until(goes.ID, settlement.Released)
	w.run("over again", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", stays.ID, goes.ID)
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed", w.owed(deposit), chain.Amount{})
	w.check("released", stays.NetReleased.Add(*goes.NetReleased), w.chain.Balance(w.master().Address, "SIM"))
}
