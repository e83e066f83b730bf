package sim_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func tokenRelease(t *testing.T, c *sim.Chain) chain.SweepRequest {
	t.Helper()

	s := sim.NewSigner(1, nil)
	r := chain.SweepRequest{
		Asset:      asset(t, c, "USDX"),
		Deposit:    s.Party(chain.RoleDeposit, 0, c),
		Master:     s.Party(chain.RoleMaster, 0, c),
		FeeAddress: c.NewAddress(),
		Amount:     dollars(100),
		Fee:        chaindata.BPS(coin(1), 1),
	}
	c.Pay(r.Deposit.Address, "USDX", r.Amount)
	c.Fund(r.Master.Address, "SIM", coin(1))
	c.Mine(1)

	return r
}

func plan(t *testing.T, c *sim.Chain, r chain.SweepRequest) []chain.SweepStep {
	t.Helper()

	steps, err := c.PlanSweep(t.Context(), r)
	if err != nil {
		t.Fatalf("PlanSweep: %v", err)
	}

	return steps
}

func wantKinds(t *testing.T, steps []chain.SweepStep, want ...chain.StepKind) {
	t.Helper()

	if len(steps) != len(want) {
		t.Fatalf("%d steps %+v, want %v", len(steps), steps, want)
	}

	for i, s := range steps {
		if s.Kind != want[i] {
			t.Fatalf("step %d is %s, want %v", i, s.Kind, want)
		}
	}
}

func TestTopUpIsTheMissingGas(t *testing.T) {
	c := newChain(t)
	r := tokenRelease(t, c)
	steps := plan(t, c, r)
	wantKinds(t, steps, chain.StepTopUp, chain.StepFee, chain.StepSweep)

	gas := steps[2].Order.MaxFee
	if got := steps[0].Order.Outputs[0].Amount; got != gas {
		t.Errorf("top-up %s, the sweep may cost %s", got, gas)
	}

	r.Residue = chain.Units(1)
	if got := plan(t, c, r)[0].Order.Outputs[0].Amount; got != gas.Sub(chain.Units(1)) {
		t.Errorf("top-up %s beside a residue of 1, want one less than %s", got, gas)
	}
}

func TestTopUpIsRepeatedOnlyWhenPricesRose(t *testing.T) {
	c := newChain(t)
	r := tokenRelease(t, c)
	given := plan(t, c, r)[0].Order.Outputs[0].Amount
	c.Fund(r.Deposit.Address, "SIM", given)
	r.Done = []chain.StepKind{chain.StepTopUp}
	wantKinds(t, plan(t, c, r), chain.StepFee, chain.StepSweep)
	c.SetFee(10*sim.DefaultBaseFee, sim.DefaultPriority)
	steps := plan(t, c, r)
	wantKinds(t, steps, chain.StepTopUp, chain.StepFee, chain.StepSweep)

	if got := steps[0].Order.Outputs[0].Amount; got != steps[2].Order.MaxFee.Sub(given) {
		t.Errorf("the second top-up is %s, want what is missing beside the %s there", got, given)
	}
}

func TestReleaseRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *sim.Chain, r *chain.SweepRequest)
		kind   error
		code   string
	}{
		{
			"a master wallet that the token refuses",
			func(c *sim.Chain, r *chain.SweepRequest) {
				c.Freeze(r.Master.Address, "USDX", true)
			},
			fault.Invalid,
			"not_releasable",
		},
		{
			"a fee address that is none",
			func(_ *sim.Chain, r *chain.SweepRequest) { r.FeeAddress = "nowhere" },
			fault.Invalid,
			"not_releasable",
		},
		{
			"tokens that are gone",
			func(_ *sim.Chain, r *chain.SweepRequest) { r.Amount = dollars(101) },
			fault.State,
			"funds_missing",
		},
		{
			"coins that are gone",
			func(c *sim.Chain, r *chain.SweepRequest) {
				r.Asset, _ = c.Network().Asset("SIM")
			},
			fault.State,
			"funds_missing",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newChain(t)
			r := tokenRelease(t, c)
			test.change(c, &r)
			steps, err := c.PlanSweep(t.Context(), r)
			wantFault(t, err, test.kind, test.code)

			if len(steps) != 0 {
				t.Errorf("a plan beside the error: %+v", steps)
			}
		})
	}
}
