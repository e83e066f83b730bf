package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// A sweep of a token stands whose payment is gone: it took what another payment brought, and the settlement of that
// one shows what of it reached the master wallet.
func TestTokenSweepThatTookAnotherPayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit, small := w.deposit(1), dollars(100)
	first := w.until(w.pay("p1", deposit, "USDX", small, 100).ID, settlement.Released)

	w.lose("p1") // what its sweep took is the first half of the next payment
	w.chain.Pay(deposit.Address, "USDX", small)
	w.chain.Mine(3)

	next := w.open("p2", deposit, "USDX", small.Mul(2), 200)
	next = w.until(next.ID, settlement.Released)
	first = w.get(first.ID)

	w.check("released", *next.NetReleased, w.chain.Balance(w.master().Address, "USDX"))
	w.check("network fees", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})

	// Its payment comes back: that has not been swept.
	w.chain.Pay(deposit.Address, "USDX", small)
	w.chain.Mine(3)
	first = w.until(w.open("p1", deposit, "USDX", small, 100).ID, settlement.Released)
	w.check(
		"released of both",
		first.NetReleased.Add(*next.NetReleased),
		w.chain.Balance(w.master().Address, "USDX"),
	)
	w.check("network fees of both", first.NetworkFees.Add(next.NetworkFees), w.burnt())
	w.check("left with both", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
}

// A sweep of a token stands when its payment is gone, and when it is back with another amount: what it took of others
// is owed, neither more nor less. The next release bears it once.
func TestTokenSweepOfAPaymentThatChanges(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit, less := w.deposit(1), dollars(93)
	w.until(w.pay("p1", deposit, "USDX", dollars(100), 100).ID, settlement.Released)
	w.check("owed at first", w.owedToken(deposit, "USDX"), chain.Amount{})

	w.lose("p1")
	w.check("owed without the payment", w.owedToken(deposit, "USDX"), dollars(100))

	if s := w.open("p1", deposit, "USDX", less, 93); s.Status != settlement.Released || s.Gross != less {
		t.Errorf("back it is %s of %s", s.Status, s.Gross)
	}

	w.check("owed with the smaller payment", w.owedToken(deposit, "USDX"), dollars(7))

	w.chain.Pay(deposit.Address, "USDX", dollars(43)) // the harness paid 7 too much of the first
	w.chain.Mine(3)

	next := w.until(w.open("p2", deposit, "USDX", dollars(50), 50).ID, settlement.Released)
	w.check("owed in the end", w.owedToken(deposit, "USDX"), chain.Amount{})
	w.check("of the next, as the first has all that its sweep brought", *next.NetReleased, dollars(43))
	w.check("left", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
	w.check("all at the master wallet", w.chain.Balance(w.master().Address, "USDX"), dollars(143))

	last := w.until(w.pay("p3", deposit, "USDX", dollars(50), 50).ID, settlement.Released)
	w.check("not borne again", *last.NetReleased, dollars(50))
}

// A payment confirms again with less while its release is under way: what is swept is what arrived.
func TestTokenPaymentThatShrinksBeforeItsSweep(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	w.chain.Mine(50)

	deposit := w.deposit(1)
	s := w.pay("p1", deposit, "USDX", dollars(100), 100)
	w.run("the top-up is on its way", func() bool { return w.get(s.ID).TopUpTx != "" })

	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 700})
	w.chain.Fork(sim.Fork{Depth: 10, Fate: sim.ReturnToPool})
	w.chain.Mine(3)

	arrived := w.chain.Balance(deposit.Address, "USDX")
	w.check("arrived on the other branch", arrived, dollars(93))
	w.chain.SetToken("USDX", sim.TokenRules{})

	w.lose("p1")
	w.open("p1", deposit, "USDX", arrived, 93)

	s = w.until(s.ID, settlement.Released)
	w.check("released", *s.NetReleased, arrived)
	w.check("left", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
}

// A release of a token that is given up hands back what it bore.
func TestTokenReleaseThatIsGivenUpBearsNothing(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit, small := w.deposit(1), dollars(100)
	w.until(w.pay("p1", deposit, "USDX", small, 100).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "USDX", small)
	w.chain.Mine(3)
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error { return chain.Refuse("policy") })
	w.boot()

	next := w.open("p2", deposit, "USDX", small.Mul(2), 200)
	w.until(next.ID, settlement.Failed)
	w.check("owed again", w.owedToken(deposit, "USDX"), small)
}

// All that a release holds was taken by an earlier sweep, between two of its transactions: it ends, so that it does
// not block its address, and what it was for is released by that sweep.
func TestReleaseThatHoldsNothingAnyMoreEnds(t *testing.T) {
	for symbol, unit := range map[string]chain.Amount{"USDX": dollars(100), "SIM": coin(1)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			if symbol != "SIM" { // native coin pays its own way
				w.chain.Fund(w.master().Address, "SIM", coin(1))
			}

			deposit := w.deposit(1)
			first := w.until(w.pay("p1", deposit, symbol, unit, 2000).ID, settlement.Released)

			second := w.pay("p2", deposit, symbol, unit, 2000)
			w.run("its fee is on its way", func() bool { return w.get(second.ID).FeeTx != "" })
			w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
				if m == sim.MethodPlanSweep {
					return sim.Unavailable()
				}

				return nil
			})
			w.run("its fee is paid", func() bool { return !w.get(second.ID).FeePaid.IsZero() })
			w.lose("p1")
			w.chain.SetIntercept(nil)

			second = w.until(second.ID, settlement.Released)
			w.check("released", *second.NetReleased, w.chain.Balance(w.master().Address, symbol))

			third := w.open("p3", deposit, symbol, unit, 2000) // its money is what the harness did not take
			third = w.until(third.ID, settlement.Released)
			sum := second.NetReleased.Add(*third.NetReleased)
			w.check("released of both", sum, w.chain.Balance(w.master().Address, symbol))
			w.atRest(deposit, first, second, third)
			w.costsAreOnChain("of all", first.ID, second.ID, third.ID)
		})
	}
}

// A fork takes the top-up and the fee of a release, other transactions have their nonces, and nothing pays for its
// sweep. It is given up, whichever of the two fails last: the next payment is topped up, and brings what that needs.
func TestTokenSweepWithoutItsTopUpAndFee(t *testing.T) {
	for name, gone := range map[string]bool{"its payment is gone": true, "its payment is there": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(10))

			deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
			paid := w.chain.Pay(deposit.Address, "USDX", dollars(400))
			w.chain.Mine(3)

			first := w.until(w.open("p1", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
			each := map[string]sim.OrphanFate{paid: sim.Reinclude}

			if gone {
				each[paid] = sim.DropOrphan
			}

			tip := w.chain.MineEmpty(1).Height
			w.chain.Fork(
				sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan, Each: each},
			)

			for range 2 {
				w.chain.CancelNonce(w.master().Address)
				w.chain.Mine(3)
			}

			w.read()

			if gone {
				w.lose("p1")
			}

			w.work()
			w.acknowledge()

			next := w.pay("p2", deposit, "USDX", dollars(100), 100)
			for until := w.now.Add(24 * time.Hour); w.now.Before(until); w.pass(5 * time.Minute) {
				w.work()
			}

			if next = w.get(next.ID); next.Status != settlement.Released {
				t.Errorf("the next payment is %s", next.Status)
			}

			if first = w.get(first.ID); !gone && first.Status != settlement.Released {
				t.Errorf("the first payment is %s", first.Status)
			}
		})
	}
}

// owedToken is what transactions took of a token at an address beyond its deposits, in base units.
func (w *harness) owedToken(of chain.Party, symbol string) (amount chain.Amount) {
	w.t.Helper()

	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		r, _, err := tx.Residue(ctx, network, of.Address)
		for _, token := range r.Tokens {
			if token.AssetID == w.asset(symbol).ID {
				amount = token.Owed
			}
		}

		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return amount
}
