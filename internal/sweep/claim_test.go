package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// A settlement claimed what a sweep had brought, and a fork takes that sweep and both payments away. Both are back
// before the sweep is: it releases the first, and another one the second.
func TestClaimedSweepIsForkedAndBothPaymentsAreBack(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	second := w.until(w.open("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Released)

	w.forkAll(height)
	w.run("reverted", func() bool { return w.get(second.ID).NetReleased == nil })
	w.lose("p2")

	for _, payment := range []string{"p1", "p2"} {
		w.chain.Pay(deposit.Address, "SIM", coin(2))
		w.chain.Mine(1)
		w.open(payment, deposit, "SIM", coin(2), 4000)
	}

	second = w.until(second.ID, settlement.Released)
	first = w.until(first.ID, settlement.Released)

	if first.SweepTx == second.SweepTx {
		t.Error("both are released by one sweep")
	}

	w.atRest(deposit, first, second)
	w.costsAreOnChain("of both", first.ID, second.ID)
}

// What a first sweep brought is another release's by now. A payment of which a second sweep moved a part waits while
// fees are too high to send what is left.
func TestPaymentClaimsNothingThatIsClaimed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(10))

	deposit := w.deposit(1)
	arrive := func(amount uint64) {
		w.chain.Pay(deposit.Address, "USDX", dollars(amount))
		w.chain.Mine(3)
	}

	w.until(w.pay("p1", deposit, "USDX", dollars(9), 9).ID, settlement.Released)
	w.until(w.pay("p2", deposit, "USDX", dollars(3), 3).ID, settlement.Released)
	w.lose("p1")
	arrive(100)

	claims := w.until(w.open("p3", deposit, "USDX", dollars(109), 109).ID, settlement.Released)
	w.check("released with what the first brought", *claims.NetReleased, dollars(109))
	w.lose("p2")
	w.chain.SetFee(100_000*sim.DefaultBaseFee, sim.DefaultPriority)
	arrive(3)

	s := w.open("p4", deposit, "USDX", dollars(6), 6)
	w.run("it is held", func() bool { return w.get(s.ID).Status == settlement.Held })
	w.pass(10 * time.Minute)
	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)

	s = w.until(s.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(6))
	w.check("left", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "USDX"), dollars(115))
}

// The payment of a settlement that claimed a sweep is gone, and back, and gone: what the network took for that sweep is
// shown once.
func TestSettlementThatClaimsTwicePaysOnce(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"USDX": dollars(100), "SIM": coin(2)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(10))

			deposit := w.deposit(1)
			first := w.until(w.pay("p1", deposit, symbol, amount, 400).ID, settlement.Released)
			w.lose("p1")

			second := w.until(w.open("p2", deposit, symbol, amount, 400).ID, settlement.Released)
			w.lose("p2")
			w.open("p2", deposit, symbol, amount, 400)
			w.until(second.ID, settlement.Released)
			w.lose("p2")

			third := w.until(w.open("p3", deposit, symbol, amount, 400).ID, settlement.Released)
			w.costsAreOnChain("of the one sweep", first.ID, second.ID, third.ID)
		})
	}
}

// The payment of a settlement that left a sweep is gone once more before it is released: its address holds nothing, and
// the records say so. Whoever comes later is released.
func TestPaymentThatLeftASweepIsGoneAgain(t *testing.T) {
	for name, amount := range map[string]chain.Amount{"it is claimed": coin(2), "it is claimed with more": coin(4)} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
			w.lose("p1")

			if amount != coin(2) {
				w.chain.Pay(deposit.Address, "SIM", amount.Sub(coin(2)))
				w.chain.Mine(3)
			}

			w.until(w.open("p2", deposit, "SIM", amount, 4000).ID, settlement.Released)
			w.run("over", func() bool { return w.live(deposit) == 0 })

			before := w.residue(deposit)
			w.open("p1", deposit, "SIM", coin(2), 4000)
			w.lose("p1")
			w.check("residue", w.residue(deposit), before)
			w.lose("p2")
			w.until(w.open("p3", deposit, "SIM", amount, 4000).ID, settlement.Released)
		})
	}
}

// A release failed after its fee was paid, and its settlement is retried as its payment goes: what arrived in its place
// paid that fee. Once it is back, its own deposit is whole.
func TestRetriedSettlementWhosePaymentIsGone(t *testing.T) {
	for _, planned := range []bool{false, true} {
		t.Run(fmt.Sprintf("planned again %t", planned), func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			answer, left := chain.Refuse("policy"), 1 // signatures until it answers so
			w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
				if left--; left < 0 {
					return answer
				}

				return nil
			})
			w.boot()

			deposit := w.deposit(1)
			first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Failed)
			w.check("paid", first.FeePaid, first.FeeNative)

			answer = errors.New("the HSM is away")

			if _, err := w.service.Retry(t.Context(), owner, first.ID); err != nil {
				t.Fatal(err)
			}

			if planned {
				w.run("it is planned", func() bool { return w.get(first.ID).SweepID != "" })
			}

			w.lose("p1")

			answer = nil
			next := w.until(w.open("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
			w.pay("p1", deposit, "SIM", coin(2), 4000)

			first = w.until(first.ID, settlement.Released)
			w.run("over", func() bool { return w.live(deposit) == 0 })
			w.atRest(deposit, first, next)
			w.costsAreOnChain("of both", first.ID, next.ID)
		})
	}
}

// A fork takes a swept payment away, the sweep stands, and as much arrives by another transaction: the sweep moved
// that, so nothing is left to send, and it is released with what that brought. The first payment is back: another sweep
// releases it.
func TestPaymentThatASweepMoved(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"USDX": dollars(100), "SIM": coin(2)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			deposit := w.deposit(1)
			first := w.until(w.pay("p1", deposit, symbol, amount, 100).ID, settlement.Released)

			w.lose("p1")

			next := w.until(w.open("p2", deposit, symbol, amount, 100).ID, settlement.Released)
			w.check("released", *next.NetReleased, *first.NetReleased)
			w.costsAreOnChain("of the one sweep", first.ID, next.ID)

			if next.SweepTx != first.SweepTx {
				t.Errorf("released by %q, not by %q", next.SweepTx, first.SweepTx)
			}

			w.pay("p1", deposit, symbol, amount, 100)
			first = w.until(first.ID, settlement.Released)

			if first.SweepTx == next.SweepTx {
				t.Error("the first payment is back, and released by a sweep that moved another")
			}

			w.atRest(deposit, first, next)
			w.costsAreOnChain("of both", first.ID, next.ID)
			w.check("platform fees", w.chain.Balance(w.fee, "SIM"), first.FeeNative.Add(next.FeeNative))

			if symbol == "USDX" {
				sum := first.NetReleased.Add(*next.NetReleased)
				w.check("released of both", sum, w.chain.Balance(w.master().Address, symbol))
			}

			w.check("token left", w.chain.Balance(deposit.Address, "USDX"), w.owedToken(deposit, "USDX"))
		})
	}
}

// A settlement claimed what a sweep had brought, and a fork takes that away: it is reverted. It claims it again where
// the sweep is in a block again, else it is released by its own.
func TestSweepThatIsClaimedIsTakenBack(t *testing.T) {
	for _, paid := range []uint64{100, 90} { // the sweep takes 100
		w := newHarness(t, account.Settings{})
		w.chain.Fund(w.master().Address, "SIM", coin(1))

		deposit := w.deposit(1)
		height := w.chain.MineEmpty(5).Height
		first := w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)

		w.lose("p1")

		next := w.until(w.open("p2", deposit, "USDX", dollars(paid), int64(paid)).ID, settlement.Released)
		w.check("released", *next.NetReleased, dollars(paid))

		w.forkAll(height)
		w.run("it is reverted", func() bool { return w.get(next.ID).NetReleased == nil })

		w.chain.Pay(w.master().Address, "SIM", coin(1))
		w.chain.Pay(deposit.Address, "USDX", dollars(paid))
		w.chain.Mine(3)

		next = w.until(next.ID, settlement.Released)
		w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))

		if (next.SweepTx == first.SweepTx) != (paid == 100) {
			t.Errorf("of %d: released by %q, the first sweep is %q", paid, next.SweepTx, first.SweepTx)
		}

		w.run("all is over", func() bool { return w.live(deposit) == 0 })
		w.costsAreOnChain("in the end", first.ID, next.ID)
		w.check("token left", w.chain.Balance(deposit.Address, "USDX"), w.owedToken(deposit, "USDX"))
	}
}

// A sweep took a part of a payment for one that is gone, and fees are high for a while: it waits for them to fall, and
// nothing of it is left behind.
func TestPaymentThatASweepMovedInPart(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(10))

	deposit := w.deposit(1)
	w.until(w.pay("p1", deposit, "USDX", dollars(6), 6).ID, settlement.Released)
	w.lose("p1")
	w.chain.SetFee(100_000*sim.DefaultBaseFee, sim.DefaultPriority)
	w.chain.Pay(deposit.Address, "USDX", dollars(3))
	w.chain.Mine(3)

	next := w.until(w.open("p2", deposit, "USDX", dollars(9), 9).ID, settlement.Held)
	if next.Reason != settlement.Uneconomic {
		t.Fatalf("held for %s", next.Reason)
	}

	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, dollars(9))
}

// Two sweeps moved what a payment brought, each for one that is gone: it is released with what both brought, and
// reverted when a fork takes one of them away.
func TestPaymentThatTwoSweepsMoved(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	height := w.chain.MineEmpty(1).Height
	second := w.until(w.pay("p2", deposit, "USDX", dollars(100), 100).ID, settlement.Released)

	w.lose("p1")
	w.lose("p2")

	both := w.until(w.open("p3", deposit, "USDX", dollars(200), 200).ID, settlement.Released)
	w.check("released", *both.NetReleased, dollars(200))
	w.costsAreOnChain("of the two sweeps", first.ID, second.ID, both.ID)

	if both.SweepTx != second.SweepTx {
		t.Errorf("released by %q, the newest sweep is %q", both.SweepTx, second.SweepTx)
	}

	w.forkAll(height)
	w.run("it is reverted", func() bool { return w.get(both.ID).NetReleased == nil })
	w.chain.Pay(deposit.Address, "USDX", dollars(100))
	w.chain.Mine(3)

	both = w.until(both.ID, settlement.Released)
	w.check("released again", *both.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
	w.checkPublished(both.ID)
}

// Two payments share what a sweep brought, and the payment of one is gone: the other stays released.
func TestPaymentsThatShareASweep(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.lose("p1")

	large := w.until(w.open("p2", deposit, "USDX", dollars(60), 60).ID, settlement.Released)
	small := w.until(w.open("p3", deposit, "USDX", dollars(40), 40).ID, settlement.Released)
	w.lose("p2")
	w.check("released of the small one", *w.get(small.ID).NetReleased, dollars(40))

	third := w.until(w.open("p4", deposit, "USDX", dollars(60), 60).ID, settlement.Released)
	w.check("released of what is in place of the large one", *third.NetReleased, dollars(60))
	w.check("owed", w.owedToken(deposit, "USDX"), chain.Amount{})

	if large = w.get(large.ID); large.NetReleased != nil {
		t.Errorf("%s is %s without its payment", large.ID, large.Status)
	}
}

// The fee of a release is signed, its payment is gone for a long time, and its address is empty: nobody pays for it.
// What needs no transaction does not wait for it; what does, waits.
func TestClaimDoesNotWaitForAReleaseThatIsStalled(t *testing.T) {
	for _, reached := range []settlement.Status{settlement.Releasing, settlement.Released} {
		t.Run(string(reached), func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
			w.run("over", func() bool { return w.live(deposit) == 0 })

			height := w.chain.MineEmpty(30).Height
			w.until(w.pay("p2", deposit, "SIM", coin(2), 4000).ID, reached)

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
			w.chain.Mine(3)
			w.read()
			w.lose("p2")
			w.lose("p1")

			next := w.open("p3", deposit, "SIM", coin(2), 4000) // the first sweep moved it
			w.pay("p4", deposit, "SIM", milli(1), 2)            // too little for what is signed
			w.run("it is released", func() bool {
				w.pass(time.Minute)
				return w.get(next.ID).Status == settlement.Released
			})
			w.check("released", *w.get(next.ID).NetReleased, *first.NetReleased)
			w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), *first.NetReleased)
			w.check("releases under way", chain.Units(uint64(w.live(deposit))), chain.Units(1))
		})
	}
}

// A payment may claim what a sweep brought, so it does not wait for the release that is stalled at its address. The
// sweep's own payment is back before it does: nothing is left to claim, and it waits.
func TestPaymentWaitsBehindAStalledReleaseOnceNothingIsUnclaimed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })

	height := w.chain.MineEmpty(30).Height
	w.until(w.pay("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Releasing)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
	w.read()
	w.lose("p2")
	w.lose("p1")
	w.run("it is stalled", func() bool { w.pass(time.Minute); return w.now.Sub(start) > time.Hour })

	w.planning = func() { w.open("p1", deposit, "SIM", coin(2), 4000) }
	next := w.pay("p3", deposit, "SIM", milli(10), 20) // too little for what is signed
	w.work()
	w.check("releases under way", chain.Units(uint64(w.live(deposit))), chain.Units(1))
	w.until(first.ID, settlement.Released)

	if next = w.get(next.ID); next.Status != settlement.Pending {
		t.Errorf("%s is %s", next.ID, next.Status)
	}
}

// An earlier sweep took nearly all of a payment, and what it left is less than the platform fee: it is sent without
// that, which is carried.
func TestRestOfAPaymentPaysNoFee(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "SIM", milli(5))
	w.chain.Mine(3)

	next := w.until(w.open("p2", deposit, "SIM", coin(2).Add(milli(5)), 4010).ID, settlement.Released)
	w.check("platform fee paid", next.FeePaid, chain.Amount{})
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "SIM"))
}

// Two settlements claimed what two sweeps had brought, and a fork takes the second sweep away: one of them is reverted,
// and the other stays released. So does that of another asset.
func TestForkOfOneSweepRevertsOneClaim(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	w.until(w.pay("coin", deposit, "SIM", coin(2), 400).ID, settlement.Released)
	w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	height := w.chain.MineEmpty(1).Height
	w.until(w.pay("p2", deposit, "USDX", dollars(100), 100).ID, settlement.Released)

	for _, payment := range []string{"coin", "p1", "p2"} {
		w.lose(payment)
	}

	older := w.until(w.open("p3", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	newer := w.until(w.open("p4", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	other := w.until(w.open("another", deposit, "SIM", coin(1), 200).ID, settlement.Released)

	w.forkAll(height)
	w.run("the newer is reverted", func() bool { return w.get(newer.ID).NetReleased == nil })

	for _, s := range []settlement.Settlement{older, other} {
		if now := w.get(s.ID); now.Status != settlement.Released {
			t.Errorf("of %s: %s is %s", s.Asset, s.PaymentID, now.Status)
		}
	}
}

// What a sweep had brought was claimed, and its payment is gone: a release with transactions claims it next, and keeps
// that while a fork has the sweep under way again.
func TestClaimThatWasReturnedIsNotRevertedAgain(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.lose("p1")
	gone := w.until(w.open("p2", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.lose("p2")
	w.chain.Pay(deposit.Address, "USDX", dollars(80))
	w.chain.Mine(3)

	next := w.open("p3", deposit, "USDX", dollars(180), 180)
	goOn := w.stopPlanning(func() bool { return w.get(next.ID).FeeTx != "" })
	w.run("the next claims", func() bool { return w.get(next.ID).FeeTx != "" })

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	goOn()

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, dollars(180))
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "USDX"), dollars(180))

	if gone = w.get(gone.ID); gone.Status != settlement.Reverted {
		t.Errorf("the one whose payment is gone is %s", gone.Status)
	}
}

// A settlement that left a sweep claims it after all, as what had claimed it is gone, and its payment is gone and back:
// the records of its address say what is there.
func TestSettlementThatLeftASweepClaimsIt(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.lose("p1")
	w.until(w.open("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Released)

	goOn := w.stopPlanning(func() bool { return true })
	w.open("p1", deposit, "SIM", coin(2), 4000)
	w.lose("p2")
	goOn()

	for range 2 {
		again := w.until(first.ID, settlement.Released)
		w.check("released", *again.NetReleased, *first.NetReleased)
		w.check("owed", w.owed(deposit), chain.Amount{})
		w.check("residue", w.residue(deposit), chain.Amount{})
		w.lose("p1")
		w.open("p1", deposit, "SIM", coin(2), 4000)
	}
}

// A release with transactions claimed what a sweep had brought, and a fork takes that sweep and both payments away.
// Both are back before the sweep is: the first leaves it, and nobody bears what it costs in its new block. The records
// of its address say what is there.
func TestSweepThatAllLeftWhileItWasUnderWay(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "SIM", coin(2))
	w.chain.Mine(3)
	second := w.until(w.open("p2", deposit, "SIM", coin(4), 4000).ID, settlement.Released)

	w.forkAll(height)
	w.run("reverted", func() bool { return w.get(second.ID).NetReleased == nil })
	w.lose("p2")

	for i, payment := range []string{"p1", "p2"} {
		amount := coin(2).Mul(uint64(i + 1))
		w.chain.Pay(deposit.Address, "SIM", amount)
		w.chain.Mine(1)
		w.open(payment, deposit, "SIM", amount, 4000)
	}

	first, second = w.until(first.ID, settlement.Released), w.until(second.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed", w.owed(deposit), chain.Amount{})
	w.check(
		"released of both",
		first.NetReleased.Add(*second.NetReleased),
		w.chain.Balance(w.master().Address, "SIM"),
	)
}

// A settlement left a sweep that another one has claimed, and a fork has that sweep in another block: what it cost is
// counted once.
func TestForkOfASweepThatAllLeft(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	first := w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	second := w.until(w.open("p2", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.pay("p1", deposit, "SIM", coin(2), 4000)
	w.until(first.ID, settlement.Released)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.Reinclude})
	w.read()
	w.run("it is reverted", func() bool { return w.get(second.ID).NetReleased == nil })

	w.until(first.ID, settlement.Released)
	w.until(second.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.atRest(deposit, first, second)
}

// A person asked for the release of a payment, which claimed what a sweep had brought, and the payment is gone and
// back: nobody has to ask once more.
func TestClaimOfAManualReleaseIsAskedForOnce(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	release := func(id string) {
		if err := w.service.ReleaseNow(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}

		w.until(id, settlement.Released)
	}

	release(w.pay("p1", deposit, "USDX", dollars(100), 100).ID)
	w.lose("p1")

	next := w.open("p2", deposit, "USDX", dollars(100), 100)
	release(next.ID)
	w.lose("p2")
	w.open("p2", deposit, "USDX", dollars(100), 100)
	w.until(next.ID, settlement.Released)
}

// signedClaim is a sweep of native coin whose payment is gone, and another release that claims what it brought and has
// signed its fee. goOn has that planned on.
func (w *harness) signedClaim() (deposit chain.Party, height uint64, first, second settlement.Settlement, goOn func()) {
	w.t.Helper()

	deposit, height = w.deposit(1), w.chain.MineEmpty(5).Height
	first = w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "SIM", coin(2))
	w.chain.Mine(3)

	second = w.open("p2", deposit, "SIM", coin(4), 8000)
	goOn = w.stopPlanning(func() bool { return w.get(second.ID).FeeTx != "" })
	w.run("the second claims", func() bool { return w.get(second.ID).FeeTx != "" })

	return deposit, height, first, w.get(second.ID), goOn
}

// A settlement left a sweep that a fork has under way again, and its payment is gone once more. What that sweep pays of
// its platform fee in its new block was paid by what others brought: the address owes it.
func TestFeeOfASettlementThatLeftAndIsGone(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height, first, second, goOn := w.signedClaim()

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.read()
	w.open("p1", deposit, "SIM", coin(2), 4000)
	w.lose("p1")
	w.check("fee of the first, while no block has it", w.get(first.ID).FeePaid, chain.Amount{})
	w.chain.Mine(3)
	goOn()

	second = w.until(second.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.check("fee of the first", w.get(first.ID).FeePaid, first.FeeNative)
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed", w.owed(deposit), chain.Amount{})
	w.check("released", *second.NetReleased, w.chain.Balance(w.master().Address, "SIM"))
}

// A settlement left a sweep that a fork has under way again, and that sweep is seen in its new block before the fee of
// its release is. The settlement bears the fee, and the address does not; nor what is gone once more.
func TestFeeThatIsSeenAfterTheSweepThatASettlementLeft(t *testing.T) {
	for name, gone := range map[string]bool{"its payment is there": false, "its payment is gone again": true} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit, height, first, second, goOn := w.signedClaim()

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
			w.read()
			w.lose("p2")
			w.open("p1", deposit, "SIM", coin(2), 4000)

			if gone {
				w.lose("p1")
				w.open("p2", deposit, "SIM", coin(4), 8000)
			} else {
				w.open("p2", deposit, "SIM", coin(2), 4000)
			}

			w.chain.Mine(4)
			w.look(wallet.Sweep)
			w.check("fee of the first, not seen yet", w.get(first.ID).FeePaid, chain.Amount{})
			goOn()

			if !gone {
				first = w.until(first.ID, settlement.Released)
			}

			second = w.until(second.ID, settlement.Released)
			w.run("over", func() bool { return w.live(deposit) == 0 })
			w.check("fee of the first", w.get(first.ID).FeePaid, first.FeeNative)
			w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
			w.check("owed", w.owed(deposit), chain.Amount{})

			released := *second.NetReleased
			if !gone {
				released = released.Add(*first.NetReleased)
			}

			w.check("released", released, w.chain.Balance(w.master().Address, "SIM"))
		})
	}
}

// A settlement left a sweep and was released by another one, and a fork has all of that in other blocks: both sweeps
// are seen there before the fee that the first release paid for it.
func TestFeeThatIsSeenAfterTheSweepOfTheNextRelease(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height, first, second, goOn := w.signedClaim()
	fork := func() {
		tip := w.chain.MineEmpty(1).Height
		w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
		w.read()
	}

	fork()
	w.lose("p2")
	w.chain.Pay(deposit.Address, "SIM", coin(1))
	w.open("p1", deposit, "SIM", coin(3), 4000)
	w.open("p2", deposit, "SIM", coin(2), 4000) // claims what the first sweep brings
	goOn()
	w.until(first.ID, settlement.Released)
	w.until(second.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })

	fork()
	w.run("it is reverted", func() bool { return w.get(first.ID).NetReleased == nil })
	w.chain.Mine(6)
	w.look(wallet.Sweep)
	w.check("fee of the first, not seen yet", w.get(first.ID).FeePaid, chain.Amount{})

	first, second = w.until(first.ID, settlement.Released), w.until(second.ID, settlement.Released)
	w.run("over again", func() bool { return w.live(deposit) == 0 })
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
	w.check("owed", w.owed(deposit), chain.Amount{})
	w.check(
		"released",
		first.NetReleased.Add(*second.NetReleased),
		w.chain.Balance(w.master().Address, "SIM"),
	)
}

// look has the transactions of a kind seen in their blocks, and not the others yet.
func (w *harness) look(kind wallet.Kind) {
	w.t.Helper()

	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		all, err := tx.Transactions(ctx, network, "", 100)

		for _, t := range all {
			if t.Kind != kind && !t.DueAt.IsZero() {
				t.DueAt = w.now.Add(time.Minute)
				err = errors.Join(err, tx.PutTransaction(ctx, &t))
			}
		}

		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	for range 10 {
		if _, err := w.outbox.Step(w.t.Context(), network); err != nil {
			w.t.Fatal(err)
		}
	}
}

// The same, and fees rise: cancels displace that sweep and the fee of the other release. What the first cost that
// nobody bears is owed as well.
func TestCancelOfASweepThatAllLeft(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height, first, second, goOn := w.signedClaim()

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{
		Depth:  tip - height,
		Length: tip - height + 1,
		Fate:   sim.Reinclude,
		Each: map[string]sim.OrphanFate{
			first.SweepTx: sim.ReturnToPool,
			second.FeeTx:  sim.ReturnToPool,
		},
	})
	w.chain.SetFee(40*sim.DefaultBaseFee, sim.DefaultPriority)
	w.read()
	w.open("p1", deposit, "SIM", coin(2), 4000)
	w.lose("p1")

	w.run("both are given up", func() bool {
		w.pass(5 * time.Minute)
		return w.get(second.ID).Status == settlement.Failed && w.live(deposit) == 0
	})
	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
	goOn()

	owed := coin(4).Sub(w.get(second.ID).NetworkFees).Sub(w.chain.Balance(deposit.Address, "SIM"))
	w.check("owed", w.owed(deposit), owed)

	if _, err := w.service.Retry(t.Context(), owner, second.ID); err != nil {
		t.Fatal(err)
	}

	second = w.until(second.ID, settlement.Released)
	w.check("released", *second.NetReleased, w.chain.Balance(w.master().Address, "SIM"))
}
