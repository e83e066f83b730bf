package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A token takes its fee from the receiver, with or without a log: released is what arrived at the master wallet.
func TestTokenFeeOfASweep(t *testing.T) {
	for name, log := range map[string]sim.FeeLog{
		"net":                 sim.LogNet,
		"gross":               sim.LogGross,
		"gross, then the fee": sim.LogGrossThenFee,
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			first, second := w.deposit(1), w.deposit(2)
			one := w.pay("p1", first, "USDX", dollars(400), 400)
			other := w.pay("p2", second, "USDX", dollars(200), 200)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: log})

			one, other = w.until(one.ID, settlement.Released), w.until(other.ID, settlement.Released)

			w.check("released", *one.NetReleased, dollars(396))
			w.check("released of the other", *other.NetReleased, dollars(198))
			w.check("arrived", w.chain.Balance(w.master().Address, "USDX"), dollars(594))
			w.check("left", w.chain.Balance(first.Address, "USDX"), chain.Amount{})
		})
	}
}

// A sweep whose block is too old for balances on every node does not wait for them: what its log says is released.
func TestSweepDoesNotWaitForBalancesThatAreGone(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	w.run("its sweep is signed", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBalances {
			return fault.New(fault.Unavailable, "block_too_old", "the balances of that block are gone")
		}

		return nil
	})

	swept := w.now
	w.check("released", *w.until(opened.ID, settlement.Released).NetReleased, dollars(400))

	if waited := w.now.Sub(swept); waited > 2*time.Minute {
		t.Errorf("it waited %s", waited)
	}
}

// While no node answers for the balances at the block of a sweep, its outcome waits, for ten minutes.
func TestSweepWaitsForTheBalancesOfItsBlock(t *testing.T) {
	for name, answers := range map[string]bool{"a node answers in time": true, "no node does": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
			w.run("its sweep is signed", func() bool { return w.get(opened.ID).SweepTx != "" })
			w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
				if m == sim.MethodBalances {
					return sim.Unavailable()
				}

				return nil
			})

			swept := w.now
			for w.now.Sub(swept) < 8*time.Minute {
				w.pass(30 * time.Second)
				w.work()
			}

			if s := w.get(opened.ID); s.Status != settlement.Releasing {
				t.Fatalf("it is %s of %v", s.Status, s.NetReleased)
			}

			want := dollars(400) // as the log says
			if answers {
				want = dollars(396)

				w.chain.SetIntercept(nil)
			}

			w.check("released", *w.until(opened.ID, settlement.Released).NetReleased, want)
		})
	}
}
