package sweep_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A node that lies or lags refuses to plan a release: before its first transaction, and after the fee. A settlement
// fails only when that lasts, and a second node, where there is one, is there to say so as well.
func TestRefusalHasToLast(t *testing.T) {
	const short, long = 10 * time.Minute, 20 * time.Minute

	for _, c := range []struct {
		name  string
		nodes int
		// one has the preferred node alone refuse, for ever; else all refuse for a time.
		one   bool
		lasts time.Duration
		// without has the second node not answer meanwhile.
		without bool
		want    settlement.Status
	}{
		{name: "one of two nodes, for ever", nodes: 2, one: true, want: settlement.Released},
		{name: "the only node, for a while", nodes: 1, lasts: short, want: settlement.Released},
		{name: "the only node, for long", nodes: 1, lasts: long, want: settlement.Failed},
		{name: "both nodes, for a while", nodes: 2, lasts: short, want: settlement.Released},
		{name: "both nodes, for long", nodes: 2, lasts: long, want: settlement.Failed},
		{name: "for long, without the other", nodes: 2, lasts: long, without: true, want: settlement.Released},
	} {
		for name, begun := range map[string]bool{"first step": false, "next step": true} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				w := newHarness(t, account.Settings{})
				w.chain = sim.New(sim.Config{Clock: func() time.Time { return w.now }, Nodes: c.nodes})
				w.connect()
				opened := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)

				if begun {
					goOn := w.stopPlanning(func() bool { return !w.get(opened.ID).FeePaid.IsZero() })
					w.run("the fee is paid", func() bool { return !w.get(opened.ID).FeePaid.IsZero() })
					goOn()
				}

				refusal := fault.New(fault.Invalid, "not_releasable", "execution reverted")

				if c.one {
					w.chain.FailNext(sim.MethodPlanSweep, refusal, 1000)
				} else {
					w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
						if m == sim.MethodPlanSweep {
							return refusal
						}

						return nil
					})
				}

				if c.without {
					w.chain.SetNode(1, sim.NodeFaults{Syncing: true})
				}

				for until := w.now.Add(c.lasts); w.now.Before(until); w.pass(15 * time.Second) {
					w.work()
				}

				w.chain.SetIntercept(nil)
				w.chain.SetNode(c.nodes-1, sim.NodeFaults{})

				if s := w.until(opened.ID, c.want); s.Status == settlement.Failed &&
					s.Reason != settlement.NotReleasable {
					t.Errorf("failed as %s", s.Reason)
				}
			})
		}
	}
}

// A release that is refused is named while it is planned again, and no longer once it is made.
func TestRefusedReleaseIsNamed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	opened := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	refusal := fault.New(fault.Invalid, "not_releasable", "the sender is on the black list")

	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanSweep {
			return refusal
		}

		return nil
	})

	for range 5 {
		w.work()
		w.pass(15 * time.Second)
	}

	named := w.sweeper.Waiting(w.chain.Network().Slug)
	if len(named) != 1 || !strings.Contains(named[0].Reason, "black list") {
		t.Errorf("while it is refused, %+v is named", named)
	}

	if s := w.get(opened.ID); !strings.Contains(s.ReasonMessage, "black list") || s.WaitingSince.IsZero() {
		t.Errorf("while it is refused, it waits since %s for %q", s.WaitingSince, s.ReasonMessage)
	}

	w.chain.SetIntercept(nil)
	w.until(opened.ID, settlement.Released)

	if named := w.sweeper.Waiting(w.chain.Network().Slug); len(named) > 0 {
		t.Errorf("once it is released, %+v is named", named)
	}
}

// disputing is a network whose nodes say different things of releases.
type disputing struct {
	*sim.Chain
	agree bool
}

func (d *disputing) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	if !d.agree {
		return nil, fault.New(fault.Unavailable, "nodes_disagree", "the nodes say different things")
	}

	return d.Chain.PlanSweep(ctx, r)
}

// A release of which nodes say different things waits, is named meanwhile, and is made once they agree.
func TestReleaseThatNodesDisagreeAboutIsNamed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	nodes := &disputing{Chain: w.chain}
	w.driver = nodes
	w.boot()
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)

	for range 5 {
		w.work()
		w.pass(5 * time.Minute)
	}

	named := w.sweeper.Waiting(network)
	if len(named) != 1 || named[0].Address != string(deposit.Address) ||
		named[0].AccountID != owner.AccountID ||
		w.get(opened.ID).Status != settlement.Pending {
		t.Errorf("%+v are named, the settlement is %s", named, w.get(opened.ID).Status)
	}

	nodes.agree = true

	w.until(opened.ID, settlement.Released)

	if named := w.sweeper.Waiting(network); len(named) != 0 {
		t.Errorf("%+v are named after the release", named)
	}
}
