package sweep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// gasless is a simulated network that has the first sweeps reverted, and says why.
type gasless struct {
	*sim.Chain
	from, to chain.Address
	reverts  int
	ranOut   bool // of gas; else a contract refused them
	silent   int  // how often it does not say why
	sent     map[string]bool
	asked    int
}

func (g *gasless) Broadcast(ctx context.Context, tx chain.Signed) error {
	err := g.Chain.Broadcast(ctx, tx)
	if tx.From == g.from && !g.sent[tx.TxHash] {
		g.sent[tx.TxHash] = true
		g.Freeze(g.to, "USDX", len(g.sent) <= g.reverts)
	}

	return err
}

func (g *gasless) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	g.Freeze(g.to, "USDX", false)

	steps, err := g.Chain.PlanSweep(ctx, r)
	if err == nil && len(steps) == 1 { // what was topped up has to do
		held := g.Balance(r.Deposit.Address, "SIM")
		steps[0].Order.MaxFee = chaindata.Min(steps[0].Order.MaxFee, held)
	}

	return steps, err
}

func (g *gasless) RanOutOfGas(_ context.Context, tx chain.Signed) (bool, error) {
	if !g.sent[tx.TxHash] {
		return false, errors.New("asked for another transaction than the sweep")
	}

	if g.asked++; g.asked <= g.silent {
		return false, sim.Unavailable()
	}

	return g.ranOut, nil
}

// A sweep that ran out of gas moved nothing: its release is planned again, a few times, at what it costs. One that a
// contract refused is given up.
func TestSweepThatRanOutOfGasIsPlannedAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		reverts int
		ranOut  bool
		silent  int
		ends    settlement.Status
		sweeps  int
	}{
		{"once", 1, true, 0, settlement.Released, 2},
		{"twice", 2, true, 0, settlement.Released, 3},
		{"and the node says so later", 1, true, 2, settlement.Released, 2},
		{"each time", 9, true, 0, settlement.Failed, 3},
		{"refused by its contract", 1, false, 0, settlement.Failed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			deposit := w.deposit(1)
			w.driver = &gasless{
				Chain:   w.chain,
				from:    deposit.Address,
				to:      w.master().Address,
				reverts: c.reverts,
				ranOut:  c.ranOut,
				silent:  c.silent,
				sent:    map[string]bool{},
			}
			w.boot()
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
			s := w.until(opened.ID, c.ends)

			r, err := w.store.Sweep(t.Context(), s.SweepID)
			if err != nil {
				t.Fatal(err)
			}

			sweeps := 0

			var fees chain.Amount

			for _, step := range r.Steps {
				fees = fees.Add(step.NetworkFee)

				if step.Kind == chain.StepSweep {
					sweeps++

					if step.NetworkFee.IsZero() {
						t.Errorf("sweep %d cost nothing", sweeps)
					}
				}
			}

			if sweeps != c.sweeps || fees != s.NetworkFees {
				t.Errorf(
					"it took %d sweeps, want %d; they cost %s of %s",
					sweeps,
					c.sweeps,
					fees,
					s.NetworkFees,
				)
			}

			failures := 0
			if c.ends == settlement.Failed {
				failures = 1

				if s.Reason != settlement.TransactionFailed {
					t.Errorf("it failed for %s", s.Reason)
				}
			} else {
				w.check("net", *s.NetReleased, dollars(400))
			}

			if published := w.published(event.SettlementFailed); published != failures {
				t.Errorf("a failure was published %d times, want %d", published, failures)
			}

			w.check("the platform fee", w.chain.Balance(w.fee, "SIM"), s.FeePaid)
			left := w.chain.Balance(deposit.Address, "SIM")
			w.check(
				"native coin in all",
				w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left),
				coin(1),
			)

			b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
			if err != nil || !b.Reserved.IsZero() {
				t.Errorf("%s are still reserved (%v)", b.Reserved, err)
			}
		})
	}
}
