package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// stakes is a network whose master wallets delegate for each release of a token. A delegation and its end are
// transfers of one unit to addresses that nobody else uses.
type stakes struct {
	*sim.Chain
	instead map[string]chain.Address // by asset id of the order
	lacks   bool                     // no stake is left when a delegation is signed
}

func (s *stakes) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	steps, err := s.Chain.PlanSweep(ctx, r)
	if err != nil || r.Asset.Kind == chain.Native || len(steps) == 0 ||
		slices.Contains(r.Done, chain.StepDelegate) {
		return steps, err
	}

	return slices.Insert(steps, len(steps)-1, chain.SweepStep{
		Kind:       chain.StepDelegate,
		NetworkFee: chain.Units(1),
		Order: chain.Order{
			From: r.Master,
			Outputs: []chain.Output{
				{To: r.Deposit.Address, AssetID: chaindata.DelegateEnergy, Amount: coin(500)},
			},
			MaxFee: milli(1),
		},
	}), nil
}

func (s *stakes) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	wanted := order.Outputs
	if chaindata.MovesCoin(wanted[0]) {
		return s.Chain.Build(ctx, order)
	}

	if s.lacks {
		return chain.Unsigned{}, errors.New("no stake is left")
	}

	native, _ := s.Network().Native()
	order.Outputs = []chain.Output{
		{To: s.instead[wanted[0].AssetID], AssetID: native.ID, Amount: chain.Units(1)},
	}

	unsigned, err := s.Chain.Build(ctx, order)
	unsigned.Outputs = wanted

	return unsigned, err
}

// stakingHarness is a harness on a network of stakes, with coin at the master wallet.
func stakingHarness(t *testing.T) (*harness, *stakes) {
	t.Helper()

	w := newHarness(t, account.Settings{})
	s := &stakes{
		Chain: w.chain,
		instead: map[string]chain.Address{
			chaindata.DelegateEnergy:   w.chain.NewAddress(),
			chaindata.UndelegateEnergy: w.chain.NewAddress(),
		},
	}
	w.driver = s
	w.boot()
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	return w, s
}

// ended returns the transactions of a kind, and whether all of them have ended.
func (w *harness) ended(kind wallet.Kind) (of []wallet.Transaction, all bool) {
	w.t.Helper()

	rows, err := w.store.Transactions(w.t.Context(), network, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}

	all = true

	for _, t := range rows {
		if t.Kind == kind {
			of = append(of, t)
			all = all && !walletstate.Live(t)
		}
	}

	return of, all
}

func (w *harness) untilUndelegated() {
	w.t.Helper()
	w.run("every delegation is taken back", func() bool {
		delegations, _ := w.ended(wallet.Delegate)
		ends, all := w.ended(wallet.Undelegate)

		return all && len(ends) == len(delegations)
	})
}

// What a release delegates is taken back once when it is over, at whatever moment a process dies. The settlement bears
// what both cost.
func TestDelegationIsTakenBackOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			for at := 1; ; at += 2 {
				w, _ := stakingHarness(t)
				opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
				w.process.Arm(at, after)

				w.until(opened.ID, settlement.Released)
				w.untilUndelegated()

				if w.processes == 2 { // the second is that of stakingHarness
					t.Logf("died at every other one of %d moments", at-1)
					return
				}

				s := w.get(opened.ID)
				w.onlyOnce(fmt.Sprintf("killed at call %d", at), w.deposit(1).Address, 5)
				w.check("network fees", s.NetworkFees, w.burnt())
				w.checkPublished(opened.ID)

				if t.Failed() {
					return
				}
			}
		})
	}
}

// A delegation that is refused, or that no stake is left for, ends no release: it goes on without one, and there is
// nothing to take back or left reserved.
func TestReleaseGoesOnWithoutADelegation(t *testing.T) {
	for _, refused := range []bool{true, false} {
		w, stake := stakingHarness(t)
		stake.lacks = !refused
		w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
			if refused && r.Intent.Kind == string(wallet.Delegate) {
				return chain.Refuse("policy")
			}

			return nil
		})
		w.boot()

		began := w.now
		s := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(400), 400).ID, settlement.Released)

		if waited := w.now.Sub(began); waited > 10*time.Minute {
			t.Errorf("the release waits %s for a delegation", waited)
		}

		if ends, _ := w.ended(wallet.Undelegate); len(ends) > 0 {
			t.Errorf("%d delegations are taken back", len(ends))
		}

		b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
		if err != nil || !b.Reserved.IsZero() {
			t.Errorf("%s are still reserved, %v", b.Reserved, err)
		}

		w.check("network fees", s.NetworkFees, w.burnt())
	}
}

// The end of a delegation that the signer refuses is tried again some hours later, once at a time, until it is signed.
func TestRefusedUndelegationIsTriedAgain(t *testing.T) {
	w, _ := stakingHarness(t)
	refuses := true
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if refuses && r.Intent.Kind == string(wallet.Undelegate) {
			return chain.Refuse("policy")
		}

		return nil
	})
	w.boot()

	w.until(w.pay("p1", w.deposit(1), "USDX", dollars(400), 400).ID, settlement.Released)

	ends := func(after time.Duration) int {
		for ; after > 0; after -= 10 * time.Minute {
			w.work()
			w.pass(10 * time.Minute)
		}

		all, _ := w.ended(wallet.Undelegate)

		return len(all)
	}

	if early, later := ends(time.Hour), ends(12*time.Hour); early != 2 || later < 3 || later > 4 {
		t.Errorf("%d tries within an hour, %d within thirteen", early, later)
	}

	refuses = false

	ends(7 * time.Hour)

	confirmed := 0

	all, over := w.ended(wallet.Undelegate)
	for _, end := range all {
		if end.State == wallet.Confirmed {
			confirmed++
		}
	}

	if !over || confirmed != 1 {
		t.Errorf("taken back %d times by %d tries, all over: %t", confirmed, len(all), over)
	}
}
