package sweep_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A settlement joined a sweep, and a fork takes that sweep and both payments away. Both are back before the sweep is:
// it releases the one that had joined it, and another one the first.
func TestJoinedSweepIsForkedAndBothPaymentsAreBack(t *testing.T) {
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

// What a first sweep brought is another release's by now. A payment of which a second sweep moved a part is not
// released by the first, while fees are too high to send what is left.
func TestPaymentJoinsNoSweepThatIsClaimed(t *testing.T) {
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

// The payment of a settlement that joined a sweep is gone, and back, and gone: what the network took for that sweep is
// shown once.
func TestSettlementThatJoinsTwicePaysOnce(t *testing.T) {
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
	for name, amount := range map[string]chain.Amount{"it was joined": coin(2), "it was claimed": coin(4)} {
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
