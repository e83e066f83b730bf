package engine

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// nodeCase is what one of two nodes does, and what comes of it.
type nodeCase struct {
	faults sim.NodeFaults
	status invoice.Status // of an invoice that was paid deep enough
	named  chain.NodeTrouble
	waits  bool // the network's readiness names what waits
}

// While one of two nodes is gone, or says something else, payments are seen and do not confirm. The network says which
// node it is, since when and what waits, within 30 seconds, and goes on once the node is back.
func TestMissingNodeIsNamedWithWhatWaits(t *testing.T) {
	fork := map[uint64]chain.Block{}
	for height := uint64(1); height <= 20; height++ {
		fork[height] = chain.Block{}
	}

	for name, c := range map[string]nodeCase{
		"both are well":    {status: invoice.Paid},
		"one is dead":      {sim.NodeFaults{Syncing: true}, invoice.Pending, chain.NodeSilent, true},
		"one is foreign":   {sim.NodeFaults{OtherNetwork: true}, invoice.Pending, chain.NodeForeign, true},
		"two blocks late":  {sim.NodeFaults{Behind: 2}, invoice.Paid, chain.NodeBehind, false},
		"many blocks late": {sim.NodeFaults{Behind: 13}, invoice.Pending, chain.NodeBehind, true},
		"on another fork":  {sim.NodeFaults{Blocks: fork}, invoice.Pending, chain.NodeDisagrees, true},
	} {
		t.Run(name, func(t *testing.T) { checkNodeCase(t, c) })
	}
}

func checkNodeCase(t *testing.T, c nodeCase) {
	t.Helper()

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return at }
	network := sim.New(sim.Config{Clock: clock, Nodes: 2})
	e := newEngine(
		t, map[string]string{"SIM/USD": "1"},
		Config{Store: memory.New(), Drivers: []chain.Driver{network}, Now: clock},
	)

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	inv, err := e.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   event.Owner{AccountID: made.ID},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}

	work := func() {
		for range 6 {
			_, _ = e.Step(t.Context())
		}
	}

	work()
	network.SetNode(1, c.faults)

	broke := at

	network.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
	network.Mine(1)

	at = at.Add(2 * time.Minute)

	network.Mine(12)

	at = at.Add(15 * time.Second)

	work()

	inv, err = e.Invoices.Get(t.Context(), inv.Owner, inv.ID)
	if err != nil || inv.Status != c.status {
		t.Errorf("the invoice is %s, want %s: %v", inv.Status, c.status, err)
	}

	report, err := e.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	n := report.Networks[0]
	if len(n.Nodes) != 2 || n.Nodes[1].Trouble != string(c.named) {
		t.Errorf("the nodes are %+v, want the second named as %q", n.Nodes, c.named)
	}

	if c.named != "" &&
		(n.Nodes[1].Since.Before(broke) || n.Nodes[1].Since.After(at) || n.Nodes[1].Why == "") {
		t.Errorf("it is named since %s: %q", n.Nodes[1].Since, n.Nodes[1].Why)
	}

	if n.Ready() == c.waits || report.OK() == c.waits {
		t.Errorf("the network is ready: %t; it says %q", n.Ready(), n.Unagreed)
	}

	if c.waits && (n.WaitingPayments != 1 || !strings.Contains(n.Unagreed, "node 1 "+predicates[c.named]) ||
		!strings.Contains(n.Unagreed, "1 payments") || n.UnagreedSince.IsZero()) {
		t.Errorf("%d payments wait since %s: %q", n.WaitingPayments, n.UnagreedSince, n.Unagreed)
	}

	network.SetNode(1, sim.NodeFaults{})
	network.Mine(1)

	at = at.Add(15 * time.Second)

	work()

	inv, err = e.Invoices.Get(t.Context(), inv.Owner, inv.ID)
	if err != nil || inv.Status != invoice.Paid {
		t.Errorf("with the node back the invoice is %s: %v", inv.Status, err)
	}

	report, err = e.Health(t.Context())
	if err != nil || !report.Networks[0].Ready() || report.Networks[0].Nodes[1].Trouble != "" {
		t.Errorf("with the node back: %+v, %v", report.Networks[0], err)
	}
}

// reportingDriver is a driver that knows of its nodes what the test says.
type reportingDriver struct {
	*sim.Chain
	seen []chain.NodeState
}

func (d reportingDriver) Nodes() []chain.NodeState { return d.seen }

// Health shows all that a driver knows of each of its nodes.
func TestHealthReportsTheNodes(t *testing.T) {
	since := time.Unix(1, 0)
	seen := []chain.NodeState{
		{Name: "a", Tip: 7, Alone: true, Version: "/Satoshi:31.0.0/", Warnings: []string{"w"}},
		{Name: "b", Trouble: chain.NodeForked, Why: "it lacks the work", Since: since},
	}

	e := newEngine(t, map[string]string{"SIM/USD": "1"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{reportingDriver{sim.New(sim.Config{}), seen}},
	})

	report, err := e.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if want := []health.Node{
		{Name: "a", Tip: 7, Alone: true, Version: "/Satoshi:31.0.0/", Warnings: []string{"w"}},
		{Name: "b", Trouble: "forked", Why: "it lacks the work", Since: since},
	}; !reflect.DeepEqual(report.Networks[0].Nodes, want) {
		t.Errorf("%+v", report.Networks[0].Nodes)
	}
}

// A payment of which one node alone has the block waits, and is named within 30 seconds with its block and why, though
// all else confirms. It is not named any more once it is confirmed.
func TestPaymentInABlockThatOneNodeHasIsNamed(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return at }
	network := sim.New(sim.Config{Clock: clock, Nodes: 2})
	e := newEngine(
		t, map[string]string{"SIM/USD": "1"},
		Config{Store: memory.New(), Drivers: []chain.Driver{network}, Now: clock},
	)

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	create := func() invoice.Invoice {
		t.Helper()

		inv, err := e.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   event.Owner{AccountID: made.ID},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		return inv
	}
	pay := func(inv invoice.Invoice) {
		network.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
		network.Mine(13)
	}
	wants := func(inv invoice.Invoice, status invoice.Status) {
		t.Helper()

		if got, err := e.Invoices.Get(t.Context(), inv.Owner, inv.ID); err != nil || got.Status != status {
			t.Errorf("the invoice is %s, want %s: %v", got.Status, status, err)
		}
	}
	work := func(within time.Duration) health.Network {
		t.Helper()

		for end := at.Add(within); at.Before(end); at = at.Add(time.Second) {
			network.Mine(1)

			for range 4 {
				_, _ = e.Step(t.Context())
			}
		}

		report, err := e.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		return report.Networks[0]
	}

	// The service is down while it is paid, and one node is restored meanwhile.
	first, second := create(), create()

	work(5 * time.Second)
	pay(first)

	head, err := network.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	network.SetNode(1, sim.NodeFaults{PrunedBelow: head.Tip.Height - 5})

	n := work(30 * time.Second)
	block := strconv.FormatUint(head.Tip.Height-12, 10)

	if n.WaitingPayments != 1 || n.Ready() || n.UnagreedSince.IsZero() ||
		!strings.Contains(n.Unagreed, "simnet") || !strings.Contains(n.Unagreed, "block "+block) {
		t.Errorf("%d payments wait since %s: %q", n.WaitingPayments, n.UnagreedSince, n.Unagreed)
	}

	wants(first, invoice.Pending)

	pay(second)
	work(5 * time.Second)
	wants(second, invoice.Paid)

	network.SetNode(1, sim.NodeFaults{})

	if n = work(30 * time.Second); n.WaitingPayments != 0 || !n.Ready() || n.Unagreed != "" {
		t.Errorf("with the block at both nodes %d payments wait: %q", n.WaitingPayments, n.Unagreed)
	}

	wants(first, invoice.Paid)
}
