package engine_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// namedWithin is how soon a node's trouble is named.
const namedWithin = 30 * time.Second

// trouble is what one of two nodes does, and what comes of it.
type trouble struct {
	faults func(tip uint64) sim.NodeFaults
	// second is set where the simulated driver reads its preferred node alone, which others pass over.
	second bool
	// goesOn is set where payments and payouts confirm, and what they release is released.
	goesOn bool
	named  chain.NodeTrouble
}

// troubles are those of the table in docs/going-live.md.
func troubles() map[string]trouble {
	always := func(faults sim.NodeFaults) func(uint64) sim.NodeFaults {
		return func(uint64) sim.NodeFaults { return faults }
	}
	fork := func(tip uint64) sim.NodeFaults {
		blocks := map[uint64]chain.Block{}
		for height := tip; height <= tip+1000; height++ {
			blocks[height] = chain.Block{}
		}

		return sim.NodeFaults{Blocks: blocks}
	}

	return map[string]trouble{
		"well":            {faults: always(sim.NodeFaults{}), goesOn: true},
		"dead":            {faults: always(sim.NodeFaults{Syncing: true}), named: chain.NodeSilent},
		"another network": {faults: always(sim.NodeFaults{OtherNetwork: true}), named: chain.NodeForeign},
		"two blocks behind": {
			faults: always(sim.NodeFaults{Behind: 2}),
			goesOn: true,
			named:  chain.NodeBehind,
		},
		"an hour behind": {
			faults: always(sim.NodeFaults{Behind: 1800}),
			second: true,
			named:  chain.NodeBehind,
		},
		"another fork": {faults: fork, second: true, named: chain.NodeDisagrees},
	}
}

// What goes on while one of two nodes is in trouble, and what is named after how long; -v prints the table. Whichever
// node it is, payments are seen; what confirms, ends or is released waits where no two agree, and goes on after it.
func TestWhatOneOfTwoNodesStops(t *testing.T) {
	t.Logf("%-18s %-6s | %-8s %-9s %-7s %-9s %-8s | %-10s %-8s %-8s %-8s", "one of two nodes", "node",
		"detected", "confirmed", "signed", "paid out", "released", "named", "Health", "/readyz", "metrics")

	all := troubles()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]

		for _, index := range []int{0, 1} {
			if c.second && index == 0 {
				continue
			}

			s := newTwoNodes(t)
			s.goOn(time.Minute)

			first := s.payOut()
			s.until("a wallet pays", func() bool { return s.payout(first).Status == payout.Confirmed })

			swept := s.sell()
			s.pay(swept)
			s.until("an invoice is paid", func() bool { return s.status(swept) == invoice.Paid })

			s.network.SetNode(index, c.faults(s.tip()))
			s.broke = s.now

			paid := s.sell()
			s.pay(paid)
			out := s.payOut()
			s.goOn(3 * time.Minute)

			detected := s.status(paid) == invoice.Pending || s.status(paid) == invoice.Paid
			confirmed, sent := s.status(paid) == invoice.Paid, s.payout(out)
			released := s.released(swept) && s.released(paid) == confirmed

			t.Logf("%-18s %-6d | %-8t %-9t %-7t %-9t %-8t | %-10s %-8s %-8s %-8s", name, index,
				detected, confirmed, sent.TxHash != "", sent.Status == payout.Confirmed, released,
				s.trouble, s.after(s.inHealth), s.after(s.inReadyz), s.after(s.inMetrics))

			if !detected {
				t.Errorf("%s, node %d: the payment is not seen", name, index)
			}

			if confirmed != c.goesOn || (sent.Status == payout.Confirmed) != c.goesOn ||
				released != c.goesOn {
				t.Errorf(
					"%s, node %d: the invoice is %s, the payout %s; released: %t",
					name,
					index,
					s.status(paid),
					sent.Status,
					released,
				)
			}

			s.checkNamed(t, name, index, c)

			s.network.SetNode(index, sim.NodeFaults{})
			s.until("all ends once the node is back", func() bool {
				return s.status(paid) == invoice.Paid && s.payout(out).Status == payout.Confirmed &&
					s.released(swept) && s.released(paid)
			})
		}
	}
}

// twoNodes is a service whose network has two nodes, and what it said of them.
type twoNodes struct {
	t       *testing.T
	now     time.Time
	network *sim.Chain
	engine  *payments.Engine
	owner   event.Owner

	broke time.Time
	// trouble is what Health named of the node, and these are when it and the others were first seen to.
	trouble                       string
	ready                         bool
	inHealth, inReadyz, inMetrics time.Time
}

func newTwoNodes(t *testing.T) *twoNodes {
	t.Helper()

	s := &twoNodes{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.network = sim.New(sim.Config{Nodes: 2, Clock: func() time.Time { return s.now }})

	config := config(t, s.network)
	config.Now = func() time.Time { return s.now }

	var err error
	if s.engine, err = payments.New(config); err != nil {
		t.Fatal(err)
	}

	made, err := s.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	s.owner = event.Owner{AccountID: made.ID}

	party, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), "simnet", made.Index)
	if err != nil {
		t.Fatal(err)
	}

	s.network.Fund(party.Address, "SIM", chain.Pow10(20))

	return s
}

// goOn lets a time pass, with a block every two seconds, and has the service do what is due each second.
func (s *twoNodes) goOn(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)

		if s.now.Second()%2 == 0 {
			s.network.Mine(1)
		}

		for range 6 {
			_, _ = s.engine.Step(s.t.Context()) // a node may fail
		}

		if !s.broke.IsZero() {
			s.look()
		}
	}
}

func (s *twoNodes) tip() uint64 {
	head, err := s.network.Head(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	return head.Tip.Height
}

func (s *twoNodes) until(what string, done func() bool) {
	s.t.Helper()

	for end := s.now.Add(15 * time.Minute); !done(); {
		if s.now.After(end) {
			s.t.Fatalf("never: %s", what)
		}

		s.goOn(5 * time.Second)
	}
}

// look notes what Health, /readyz and the metrics name.
func (s *twoNodes) look() {
	report, err := s.engine.Health(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	for _, node := range report.Networks[0].Nodes {
		if node.Trouble != "" && s.inHealth.IsZero() {
			s.inHealth, s.trouble = s.now, node.Trouble
		}
	}

	var body struct {
		Ready struct{ Networks map[string]bool }
	}

	ready := s.get(httpapi.HealthHandler(s.engine), "/readyz")
	if err := json.Unmarshal([]byte(ready), &body); err != nil {
		s.t.Fatal(err)
	}

	if s.ready = body.Ready.Networks["simnet"]; !s.ready && s.inReadyz.IsZero() {
		s.inReadyz = s.now
	}

	metrics := s.get(httpapi.MetricsHandler(s.engine), "/metrics")
	if s.inMetrics.IsZero() && strings.Contains(metrics, "payments_node_ok{") {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "payments_node_ok{") && strings.HasSuffix(line, " 0\n") {
				s.inMetrics = s.now
			}
		}
	}
}

func (s *twoNodes) get(handler http.Handler, path string) string {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))

	return w.Body.String()
}

// after says how long after the node's trouble began something was seen.
func (s *twoNodes) after(seen time.Time) string {
	if seen.IsZero() {
		return "–"
	}

	return seen.Sub(s.broke).String()
}

func (s *twoNodes) checkNamed(t *testing.T, name string, index int, c trouble) {
	t.Helper()

	if s.trouble != string(c.named) {
		t.Errorf("%s, node %d: it is named %q, want %q", name, index, s.trouble, c.named)
	}

	if c.named != "" && (s.inHealth.IsZero() || s.inHealth.Sub(s.broke) > namedWithin ||
		s.inMetrics.IsZero() || s.inMetrics.Sub(s.broke) > namedWithin) {
		t.Errorf("%s, node %d: named in Health after %s, in metrics after %s", name, index,
			s.after(s.inHealth), s.after(s.inMetrics))
	}

	if s.ready != c.goesOn || s.ready && s.inReadyz.Sub(s.broke) > namedWithin {
		t.Errorf("%s, node %d: the network is ready: %t; /readyz named it after %s", name, index, s.ready,
			s.after(s.inReadyz))
	}
}

func (s *twoNodes) sell() string {
	s.t.Helper()

	inv, err := s.engine.Invoices.Create(s.t.Context(), invoice.CreateParams{
		Owner:     s.owner,
		ExpiresIn: time.Hour,
		Options:   []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return inv.ID
}

func (s *twoNodes) pay(id string) {
	inv := s.invoice(id)
	s.network.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
}

func (s *twoNodes) invoice(id string) invoice.Invoice {
	s.t.Helper()

	inv, err := s.engine.Invoices.Get(s.t.Context(), s.owner, id)
	if err != nil {
		s.t.Fatal(err)
	}

	return inv
}

func (s *twoNodes) status(id string) invoice.Status { return s.invoice(id).Status }

func (s *twoNodes) payOut() string {
	s.t.Helper()

	made, err := s.engine.Payouts.Create(s.t.Context(), payout.Params{
		Owner:       s.owner,
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(s.network.NewAddress()),
		RequestedBy: payout.Requester{Type: "user", ID: "test"},
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return made.ID
}

func (s *twoNodes) payout(id string) payout.Payout {
	s.t.Helper()

	p, err := s.engine.Payouts.Get(s.t.Context(), s.owner, id)
	if err != nil {
		s.t.Fatal(err)
	}

	return p
}

// released reports whether all that was settled of an invoice is released.
func (s *twoNodes) released(id string) bool {
	s.t.Helper()

	all, _, err := s.engine.Settlements.List(s.t.Context(), settlement.Filter{Owner: s.owner, Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}

	released := 0

	for _, of := range all {
		if of.InvoiceID != id {
			continue
		}

		if of.Status != settlement.Released {
			return false
		}

		released++
	}

	return released > 0
}
