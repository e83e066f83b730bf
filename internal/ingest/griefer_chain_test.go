package ingest_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// griefs are what anybody can do, at no or little cost, to the addresses of others.
var griefs = map[string]func(w *harness, to chain.Address){
	"logs of 0 out of an address": func(w *harness, to chain.Address) {
		w.chain.TransferFrom(to, w.chain.NewAddress(), "USDX", chain.Amount{})
		w.chain.TransferFrom(w.chain.NewAddress(), to, "USDX", chain.Amount{})
	},
	"dust": func(w *harness, to chain.Address) {
		w.chain.Pay(to, "USDX", chain.Units(1))
		w.chain.Pay(to, "SIM", chain.Units(1))
		w.chain.Pay(to, "USDY", chain.Units(1))
	},
	"reverted transfers": func(w *harness, to chain.Address) {
		w.chain.PayFailing(to, "USDX", dollars(2_500_000))
		w.chain.PayFailing(to, "SIM", coin(2_500_000))
	},
	"transfers that are replaced": func(w *harness, to chain.Address) {
		w.chain.Replace(w.chain.Pay(to, "USDX", dollars(2_500_000)))
	},
	"unknown transaction types": func(w *harness, to chain.Address) {
		w.chain.PayUnknownType(to, "USDX", chain.Amount{})
		w.chain.PayUnknownType(w.chain.NewAddress(), "SIM", coin(1))
	},
	"unknown header fields": func(w *harness, _ chain.Address) {
		w.chain.SetNode(0, sim.NodeFaults{UnknownHeader: true})
	},
}

// course is at which heights honest money moved.
type course struct {
	invoice, deposit, other, payout uint64
}

// Whatever a griefer sends to every address that there is, honest payments confirm and payouts leave at the
// same block as without it, and nothing is frozen, stopped or waiting afterwards.
func TestGrieferDelaysNobody(t *testing.T) {
	t.Run("one node", func(t *testing.T) { testGriefer(t, 1) })
	t.Run("two nodes", func(t *testing.T) { testGriefer(t, 2) })
}

func testGriefer(t *testing.T, nodes int) {
	t.Helper()

	quiet := honestCourse(t, nodes, nil)
	if quiet.invoice == 0 || quiet.deposit == 0 || quiet.other == 0 || quiet.payout == 0 {
		t.Fatalf("without a griefer: %+v", quiet)
	}

	names := slices.Sorted(maps.Keys(griefs))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if got := honestCourse(t, nodes, []string{name}); got != quiet {
				t.Errorf("heights %+v, without a griefer %+v", got, quiet)
			}
		})
	}

	t.Run("all together", func(t *testing.T) {
		if got := honestCourse(t, nodes, names); got != quiet {
			t.Errorf("heights %+v, without a griefer %+v", got, quiet)
		}
	})
}

// honestCourse plays honest payments and a payout beside griefs, made before every block.
func honestCourse(t *testing.T, nodes int, names []string) (c course) {
	t.Helper()

	w := newHarness(t, sim.Config{Network: tiered(), Nodes: nodes})
	inv, other, d := w.sell("USDX", dollars(100)), w.sell("SIM", coin(1)), w.deposit()
	master, err := internal.Of(w.engine).Transactions.MasterWallet(t.Context(), network, 0)
	w.must(err)
	w.chain.Fund(master.Address, "SIM", coin(5))
	w.chain.Fund(master.Address, "USDX", dollars(500))

	all := []chain.Address{addressOf(inv), addressOf(other), d.Address, master.Address}
	grieve := func() {
		for _, name := range names {
			for _, to := range all {
				griefs[name](w, to)
			}
		}

		w.work()
	}

	var out payout.Payout

	for i := range 12 {
		switch i {
		case 1:
			w.chain.Pay(addressOf(inv), "USDX", dollars(100))
			w.chain.Pay(d.Address, "USDX", dollars(5))
		case 3:
			w.chain.Pay(addressOf(other), "SIM", coin(1))
		case 4:
			out, err = w.engine.Payouts.Create(t.Context(), payout.Params{
				Owner:       w.owner,
				Network:     network,
				Asset:       "USDX",
				Amount:      dollars(100),
				Destination: string(w.chain.NewAddress()),
				RequestedBy: payout.Requester{Type: "user", ID: "test"},
			})
			w.must(err)
		}

		if i < 6 {
			grieve()
		}

		w.mine(1)
		w.note(&c, inv, other, d, out)
	}

	h, err := w.engine.Health(t.Context())
	w.must(err)

	if len(h.Wallets) > 0 {
		t.Errorf("wallets are in Health: %+v", h.Wallets)
	}

	if h.Networks[0].Stopped != "" || h.Networks[0].Behind != 0 {
		t.Errorf("the network is %q, %d blocks behind", h.Networks[0].Stopped, h.Networks[0].Behind)
	}

	return c
}

// note writes down the height at which each honest transfer was first seen done.
func (w *harness) note(
	c *course,
	inv, other invoice.Invoice,
	d invoice.DepositAddress,
	out payout.Payout,
) {
	w.t.Helper()

	head, err := w.chain.Head(w.t.Context())
	w.must(err)

	first := func(at *uint64, done bool) {
		if *at == 0 && done {
			*at = head.Tip.Height
		}
	}

	first(&c.invoice, w.get(inv).Status == invoice.Paid)
	first(&c.other, w.get(other).Status == invoice.Paid)

	for _, p := range w.payments(d.ID) {
		first(&c.deposit, p.Amount == dollars(5) && p.Status == invoice.Confirmed)
	}

	if out.ID != "" {
		out, err = w.engine.Payouts.Get(w.t.Context(), w.owner, out.ID)
		w.must(err)
		first(&c.payout, out.Status == payout.Confirmed)
	}
}
