package sweep_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// unclaimedSweep is a token sweep that stands for a payment that is gone, and another release that is under way at its
// address: its top-up is confirmed, and goOn has it planned on. Then everything is gone but the bytes.
func (w *harness) unclaimedSweep(
	claims bool,
) (deposit chain.Party, first, next settlement.Settlement, goOn func()) {
	w.t.Helper()
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit = w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	first = w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)

	next = w.pay("p2", deposit, "USDX", dollars(180), 180)
	goOn = w.stopPlanning(func() bool { return w.get(next.ID).TopUpTx != "" })
	w.run("the next is topped up", func() bool { return !w.get(next.ID).NetworkFees.IsZero() })
	w.lose("p1")

	if claims {
		goOn()
		w.run("the next claims", func() bool { return w.get(next.ID).FeeTx != "" })
		goOn = w.stopPlanning(func() bool { return w.get(next.ID).FeeTx != "" })
	}

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
	w.chain.Pay(w.master().Address, "SIM", coin(1))

	return deposit, first, next, goOn
}

// A sweep stands whose payment is gone, and a fork takes it out of its block: nothing of it is at the master wallet, so
// a release that is under way at its address claims none of it.
func TestSweepOutOfItsBlockIsNotClaimed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, first, next, goOn := w.unclaimedSweep(false)

	w.lose("p2") // it is back with less than the first sweep takes: that is reverted
	w.chain.Pay(deposit.Address, "USDX", dollars(80))
	w.chain.Mine(3)
	w.open("p2", deposit, "USDX", dollars(80), 80)
	goOn()

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
	w.run("the first is over", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", first.ID, next.ID)
	w.check("left", w.chain.Balance(deposit.Address, "USDX"), w.owedToken(deposit, "USDX"))
}

// A release claimed what a sweep had brought, and a fork takes that sweep away. It is reverted then: what it brought is
// claimed by nobody.
func TestClaimOfASweepThatFails(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, _, next, goOn := w.unclaimedSweep(true)

	w.run("the first sweep has failed", func() bool { return w.live(deposit) == 1 })
	w.chain.Pay(deposit.Address, "USDX", dollars(180))
	w.chain.Mine(3)
	goOn()

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
}

// A release claimed what two sweeps had brought, and on another branch the first of them is reverted: what the second
// brought stays claimed.
func TestClaimOfTwoSweepsOfWhichOneFails(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	paid := w.chain.Pay(deposit.Address, "USDX", dollars(100))
	w.chain.Mine(3)
	w.until(w.open("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.until(w.pay("p2", deposit, "USDX", dollars(50), 50).ID, settlement.Released)
	w.lose("p1")
	w.lose("p2")

	w.chain.Pay(deposit.Address, "USDX", dollars(30))
	w.chain.Mine(3)
	next := w.open("p3", deposit, "USDX", dollars(180), 180)
	goOn := w.stopPlanning(func() bool { return w.get(next.ID).FeeTx != "" })
	w.run("it claims", func() bool { return w.get(next.ID).FeeTx != "" })
	w.check("borne", w.borne(w.get(next.ID)), chain.Amount{})

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{
		Depth:  tip - height,
		Length: tip - height + 1,
		Fate:   sim.Reinclude,
		Each:   map[string]sim.OrphanFate{paid: sim.DropOrphan},
	})
	w.run("only the next is under way", func() bool { return w.live(deposit) == 1 })
	goOn()

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, dollars(80))
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "USDX"), dollars(80))
}

// A release claimed what a sweep had brought, and a fork has that sweep under way again when its payment comes back.
// The sweep stands for the release: the payment is released by another one.
func TestPaymentOfAClaimedSweepIsBackBeforeIt(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, first, next, goOn := w.unclaimedSweep(true)

	w.chain.Pay(deposit.Address, "USDX", dollars(100))
	w.chain.Pay(deposit.Address, "USDX", dollars(180))
	w.work()
	w.open("p1", deposit, "USDX", dollars(100), 100)
	w.chain.Mine(3)
	goOn()

	first, next = w.until(first.ID, settlement.Released), w.until(next.ID, settlement.Released)
	w.check(
		"released of both",
		first.NetReleased.Add(*next.NetReleased),
		w.chain.Balance(w.master().Address, "USDX"),
	)
}

// A release that claimed what a sweep had brought is given up: the next one claims it.
func TestClaimOfAReleaseThatIsGivenUp(t *testing.T) {
	w := newHarness(t, account.Settings{})
	refuse := false
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if refuse && r.Intent.Kind == string(wallet.Sweep) {
			return chain.Refuse("policy")
		}

		return nil
	})
	w.boot()
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "USDX", dollars(80))
	w.chain.Mine(3)

	refuse = true
	next := w.until(w.open("p2", deposit, "USDX", dollars(180), 180).ID, settlement.Failed)
	refuse = false

	w.check("borne by the one that is given up", w.borne(next), chain.Amount{})

	if _, err := w.service.Retry(t.Context(), owner, next.ID); err != nil {
		t.Fatal(err)
	}

	next = w.until(next.ID, settlement.Released)
	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
}

// A sweep stands for two payments of which one is gone, and another release claims what that one brought. A fork has
// all of it in other blocks, where the network costs less: the payment that is there has more of the sweep, and the
// other release claims as much less.
func TestClaimOfASweepThatCostsLessInAnotherBlock(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	w.chain.Pay(deposit.Address, "SIM", coin(2))
	gone := w.pay("p1", deposit, "SIM", coin(2), 4000)
	stays := w.open("p2", deposit, "SIM", coin(2), 4000)
	w.until(gone.ID, settlement.Released)
	w.lose("p1")

	w.chain.Pay(deposit.Address, "SIM", coin(2))
	w.chain.Mine(3)

	next := w.open("p3", deposit, "SIM", coin(4), 8000)
	goOn := w.stopPlanning(func() bool { return w.get(next.ID).FeeTx != "" })
	w.run("the next claims", func() bool { return w.get(next.ID).FeeTx != "" })

	before := w.until(stays.ID, settlement.Released)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.ReturnToPool})
	w.read()
	w.chain.SetFee(sim.DefaultBaseFee*9/10, sim.DefaultPriority)
	goOn()

	next, stays = w.until(next.ID, settlement.Released), w.until(stays.ID, settlement.Released)
	w.run("over", func() bool { return w.live(deposit) == 0 })

	if !before.NetReleased.Less(*stays.NetReleased) {
		t.Errorf(
			"%s was released of the payment that is there, and %s before",
			stays.NetReleased,
			before.NetReleased,
		)
	}

	w.check("released", next.NetReleased.Add(*stays.NetReleased), w.chain.Balance(w.master().Address, "SIM"))
	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
}

// A release claimed what a sweep had brought, and was swept. Its payment is gone as well, and a fork takes both sweeps
// out of their blocks: nothing is at the master wallet, and nothing is unclaimed.
func TestNothingIsUnclaimedOfSweepsThatAreGone(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "SIM", coin(18))
	w.chain.Mine(3)
	w.until(w.open("p2", deposit, "SIM", coin(20), 40000).ID, settlement.Released)

	w.lose("p2")
	w.forkAll(height)

	err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		row, _, err := tx.Residue(ctx, network, deposit.Address)
		if len(row.Unclaimed) > 0 {
			t.Errorf("%v is unclaimed", row.Unclaimed)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
