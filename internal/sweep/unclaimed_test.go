package sweep_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/settlement"
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

// A fork takes a swept payment away, the sweep stands, and as much arrives by another transaction: the sweep moved
// that, so nothing is left to send, and that sweep releases it. The first payment is back: another one releases it.
func TestPaymentThatASweepMovedJoinsIt(t *testing.T) {
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

// A settlement joined a sweep, and a fork takes that away: it is reverted. It is released by the same sweep where that
// is in a block again, else by its own.
func TestSweepThatWasJoinedIsTakenBack(t *testing.T) {
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
func TestPaymentThatASweepMovedInPartIsNotJoined(t *testing.T) {
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
