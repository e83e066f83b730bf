package sweep_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

func TestFeeTooSmallIsCarriedToTheNextRelease(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	// 0.5 % of 1 USD is 0.005 USD = 2.5e-6 coins; a transfer costs 2.3e-5.
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)
	if !first.FeePaid.IsZero() || first.FeeCarried != first.FeeNative || first.FeeTx != "" {
		t.Fatalf("the fee of a small deposit: %+v", first)
	}

	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), chain.Amount{})
	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", second.CarriedIn, first.FeeNative)
	w.check("paid", second.FeePaid, first.FeeNative.Add(second.FeeNative))
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), second.FeePaid)
	third := w.until(w.pay("p3", w.deposit(3), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in a second time", third.CarriedIn, chain.Amount{})
}

func TestCarriedFeeOfAFailedReleaseIsCarriedOn(t *testing.T) {
	w := newHarness(t, account.Settings{})
	refuse := true
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if refuse && r.Intent.Kind == string(wallet.Fee) {
			return chain.Refuse("policy")
		}

		return nil
	})
	w.boot()
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)

	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Failed)
	if second.TopUpTx == "" {
		t.Error("it failed before anything was signed")
	}

	w.check("still carried in", second.CarriedIn, chain.Amount{})
	w.check("still to be paid", second.FeeCarried, second.FeeNative)

	refuse = false
	third := w.until(w.pay("p3", w.deposit(3), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", third.CarriedIn, first.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), first.FeeNative.Add(third.FeeNative))
}

// A release ends as its payment is gone, and the next at its address pays what it carried. A fork has its top-up
// under way again as the payment comes back: it goes on, and pays its own fee alone.
func TestCarriedFeeOfAReleaseThatComesBackIsPaidOnce(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)

	deposit, height := w.deposit(2), w.chain.MineEmpty(1).Height
	second := w.pay("p2", deposit, "USDX", dollars(400), 400)
	goOn := w.stopPlanning(func() bool { return w.get(second.ID).TopUpTx != "" })
	w.run("the second is topped up", func() bool { return !w.get(second.ID).NetworkFees.IsZero() })
	w.lose("p2")
	goOn()

	third := w.until(w.pay("p3", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", third.CarriedIn, first.FeeNative)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1})
	w.work()
	w.open("p2", deposit, "USDX", dollars(400), 400)
	second, third = w.until(second.ID, settlement.Released), w.until(third.ID, settlement.Released)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), second.FeePaid.Add(third.FeePaid))
}

func TestWithoutAFeeAddressTheFeeIsCarried(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.fee = ""
	w.boot()

	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	if !s.FeePaid.IsZero() || s.FeeCarried != milli(5) || s.FeeTx != "" {
		t.Errorf("released as %+v", s)
	}
}

func TestWithoutAFeeThereIsNoFeeTransaction(t *testing.T) {
	zero := 0
	w := newHarness(t, account.Settings{FeeBPS: &zero})

	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	if s.FeeTx != "" || !s.FeePaid.IsZero() || !s.FeeCarried.IsZero() {
		t.Errorf("released as %+v", s)
	}
}

// A settlement leaves a release that was topped up, as its payment is gone, and a fork takes the top-up away: what that
// costs in another block is shown by those that stayed.
func TestWhoLeavesBearsNothingThatAForkTakesBack(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	stays := w.pay("p1", deposit, "USDX", dollars(100), 100)
	leaves := w.pay("p2", deposit, "USDX", dollars(40), 40)

	goOn := w.stopPlanning(func() bool { return w.get(stays.ID).TopUpTx != "" })
	w.run("it is topped up", func() bool { return !w.get(stays.ID).NetworkFees.IsZero() })
	w.lose("p2")
	w.costsAreOnChain("of the top-up", stays.ID, leaves.ID)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.run("it is taken back", func() bool { return w.get(stays.ID).NetworkFees.IsZero() })
	goOn()

	w.until(stays.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", stays.ID, leaves.ID)
}
