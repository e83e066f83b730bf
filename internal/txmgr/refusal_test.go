package txmgr_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// One node refuses to build a transaction, because it lies or lags: the other one's word counts. Nothing fails while
// that one is not there to say so too, and a step of a release waits for what a fork may have taken.
func TestRefusalOfOneNodeFailsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		kind wallet.Kind
		// both has the second node refuse too, for a time; without it, that is not there for as long.
		both, without bool
		lasts         time.Duration
		want          wallet.State
	}{
		"payout, one node, for ever": {
			kind: wallet.Payout,
			want: wallet.Confirmed,
		},
		"payout, both nodes": {
			kind:  wallet.Payout,
			both:  true,
			lasts: time.Hour,
			want:  wallet.Failed,
		},
		"payout, the other is not there": {
			kind:    wallet.Payout,
			both:    true,
			without: true,
			lasts:   time.Hour,
			want:    wallet.Confirmed,
		},
		"sweep, one node, for ever": {
			kind: wallet.Sweep,
			want: wallet.Confirmed,
		},
		"sweep, both nodes, for a while": {
			kind:  wallet.Sweep,
			both:  true,
			lasts: 10 * time.Minute,
			want:  wallet.Confirmed,
		},
		"sweep, both nodes, for long": {
			kind:  wallet.Sweep,
			both:  true,
			lasts: time.Hour,
			want:  wallet.Failed,
		},
		"top-up, both nodes, for a while": {
			kind:  wallet.TopUp,
			both:  true,
			lasts: 10 * time.Minute,
			want:  wallet.Confirmed,
		},
		"top-up, both nodes, for long": {
			kind:  wallet.TopUp,
			both:  true,
			lasts: time.Hour,
			want:  wallet.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{Nodes: 2})
			refusal := fault.New(fault.Invalid, "destination_not_payable", "execution reverted")
			refuses := true

			if c.both {
				w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
					if m == sim.MethodBuild && refuses {
						return refusal
					}

					return nil
				})
			} else {
				w.chain.FailNext(sim.MethodBuild, refusal, 1000)
			}

			if c.without {
				w.chain.SetNode(1, sim.NodeFaults{Syncing: true})
			}

			made := w.enqueue(wallet.Transaction{
				Owner:    owner,
				Network:  network,
				Kind:     c.kind,
				ObjectID: "o",
				GiveUpAt: w.now.Add(24 * time.Hour),
				Order: chain.Order{
					From: w.master(),
					Outputs: []chain.Output{
						{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)},
					},
					MaxFee: milli(10),
				},
			})

			for until := w.now.Add(c.lasts); w.now.Before(until); w.pass(15 * time.Second) {
				w.work()
			}

			refuses = false

			w.chain.SetNode(1, sim.NodeFaults{})

			got := w.until(made.ID, c.want)
			if got.State == wallet.Failed && got.Failure != wallet.FailNotPayable {
				t.Errorf("failed as %s", got.Failure)
			}
		})
	}
}

// A sweep whose bytes have expired, and for which the money is missing now, goes back to be planned: what it was
// planned by, as a top-up that was not needed, holds no more. Other kinds wait for their money.
func TestExpiredSweepWithoutMoneyIsGivenBack(t *testing.T) {
	for kind, want := range map[wallet.Kind]wallet.State{
		wallet.Sweep:  wallet.Failed,
		wallet.Payout: wallet.Broadcast,
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newHarness(t, sim.Config{ValidBlocks: 5})
			made := w.enqueue(wallet.Transaction{
				Owner:    owner,
				Network:  network,
				Kind:     kind,
				ObjectID: "o",
				GiveUpAt: w.now.Add(24 * time.Hour),
				Order: chain.Order{
					From: w.master(),
					Outputs: []chain.Output{
						{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: coin(1)},
					},
					MaxFee: milli(10),
				},
			})

			w.work()
			w.chain.Drop(w.get(made.ID).TxHash)
			w.chain.FailNext(
				sim.MethodBuild, fault.New(fault.State, "insufficient_funds", "the gas is missing"), 1000,
			)
			w.chain.FailNext(sim.MethodBroadcast, sim.Unavailable(), 1000)

			for range 12 {
				w.now = w.now.Add(5 * time.Second)
				w.chain.MineEmpty(1)
				w.work()
			}

			got := w.get(made.ID)
			if got.State != want || want == wallet.Failed && got.Failure != wallet.FailInsufficientFunds {
				t.Errorf("it is %s %s", got.State, got.Failure)
			}
		})
	}
}
