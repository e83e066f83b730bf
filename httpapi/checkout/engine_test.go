package checkout_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// payer is somebody at a browser without scripts.
type payer struct {
	t    *testing.T
	base string // of the invoice's page
}

func (p payer) state() checkout.State {
	p.t.Helper()

	resp, err := http.Get(p.base + "/state.json")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()

	var s checkout.State
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("state: %s, %v", resp.Status, err)
	}

	return s
}

// send sends a form and returns the page that the browser is led to.
func (p payer) send(action string, form url.Values) string {
	p.t.Helper()

	resp, err := http.PostForm(p.base+"/"+action, form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Request.Method != http.MethodGet {
		p.t.Fatalf("%s leads to %s %s: %v", action, resp.Request.Method, resp.Status, err)
	}

	return string(body)
}

func (p payer) until(what string, ready func(checkout.State) bool) checkout.State {
	p.t.Helper()

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		s := p.state()
		if ready(s) {
			return s
		}

		if time.Now().After(deadline) {
			p.t.Fatalf("never happened: %s; the page says %+v", what, s)
		}
	}
}

// A payer chooses, sends the amount that the page shows to the address that it shows, and sees it
// confirm, over the real engine and a simulated network.
func TestPayerPays(t *testing.T) {
	network := sim.New(sim.Config{})
	shop := openShop(t, network, nil)
	create := func() payer { return payer{t, shop.server.URL + shop.path(shop.order("49.90"))} }

	p := create()

	s := p.state()
	if s.Phase != "choose" || len(s.Options) != 2 || s.Options[0].EstimateText == "" {
		t.Fatalf("a new invoice: %+v", s)
	}

	var token checkout.Choice

	for _, o := range s.Options {
		if o.Asset == "USDX" {
			token = o
		}
	}

	page := p.send("select", url.Values{"option": {token.ID}})

	s = p.state()
	if s.Phase != "pay" || s.Payment.Asset != "USDX" ||
		!strings.Contains(page, string(s.Payment.Address)) ||
		!strings.Contains(page, s.Payment.MissingText) {
		t.Fatalf("after choosing: %+v %+v", s, s.Payment)
	}

	if s.Payment.MissingText != token.EstimateText {
		t.Errorf("estimated at %s, quoted at %s at the same price", token.EstimateText, s.Payment.MissingText)
	}

	// A transaction that pays somebody else is not taken for a payment, an unknown one neither.
	foreign := network.Pay(network.NewAddress(), "USDX", chain.Units(1_000_000))
	if page := p.send(
		"hint", url.Values{"tx_hash": {foreign}},
	); !strings.Contains(
		page, "does not pay this invoice",
	) {
		t.Error("a foreign transaction is not said to be one")
	}

	if page := p.send(
		"hint", url.Values{"tx_hash": {"0x" + strings.Repeat("00", 32)}},
	); !strings.Contains(
		page, "does not know this transaction",
	) {
		t.Error("an unknown transaction is not said to be one")
	}

	failing := network.PayFailing(s.Payment.Address, "USDX", chain.MustAmount(s.Payment.AmountMissing))
	network.Mine(1)

	if page := p.send(
		"hint", url.Values{"tx_hash": {failing}},
	); !strings.Contains(
		page, "This transaction failed on the network",
	) {
		t.Error("a transaction that failed is not said to have failed")
	}

	// A part, then the rest: exactly the amounts that the page shows.
	network.Pay(s.Payment.Address, "USDX", chain.Units(20_000_000))

	s = p.until("the part is seen", func(s checkout.State) bool { return s.Phase == "underpaid" })
	if s.Payment.ReceivedText != "20" || s.Outstanding == "" {
		t.Errorf("after a part: %+v, outstanding %q", s.Payment, s.Outstanding)
	}

	hash := network.Pay(s.Payment.Address, "USDX", chain.MustAmount(s.Payment.AmountMissing))
	if page := p.send(
		"hint", url.Values{"tx_hash": {hash}},
	); !strings.Contains(page, "Payment seen") &&
		!strings.Contains(page, "Confirming") {
		t.Error("the payer's own transaction is not found")
	}

	p.until("enough is seen", func(s checkout.State) bool { return s.Phase == "seen" })
	network.Mine(1)
	shop.engine.Wake()

	s = p.until("one confirmation", func(s checkout.State) bool { return s.Phase == "confirming" })
	if tx := s.Transactions[len(s.Transactions)-1]; tx.Confirmations != 1 || tx.ConfirmationsRequired != 3 {
		t.Errorf("confirmations %d of %d", tx.Confirmations, tx.ConfirmationsRequired)
	}

	network.Mine(2)
	shop.engine.Wake()

	s = p.until("paid", func(s checkout.State) bool { return s.Phase == "paid" })
	if !s.Final || len(s.OutcomeFlags) != 0 || len(s.Transactions) != 2 {
		t.Errorf("paid: %+v", s)
	}

	if page := p.send(
		"select", url.Values{"option": {token.ID}},
	); !strings.Contains(page, "has changed in the meantime") ||
		!strings.Contains(page, "<h1>Paid</h1>") {
		t.Error("choosing on a paid invoice does not say that it is paid")
	}

	// The buttons of test mode.
	p = create()
	p.send("select", url.Values{"option": {p.state().Options[0].ID}})
	p.send("simulate", url.Values{"outcome": {"overpaid"}})

	s = p.until("a simulated payment", func(s checkout.State) bool { return s.Phase == "paid" })
	if len(s.OutcomeFlags) != 1 || s.OutcomeFlags[0] != invoice.Overpaid || !s.Transactions[0].Simulated {
		t.Errorf("simulated: %+v", s)
	}
}

// Options that cannot work panic at start, before a payer meets them.
func TestHandlerPanicsOnUnusableOptions(t *testing.T) {
	engine := newEngine(sim.New(sim.Config{}))

	defer func() {
		if recover() == nil {
			t.Error("a frame ancestor that is none is taken")
		}
	}()

	checkout.Handler(engine, &checkout.Options{FrameAncestors: []string{"a; script-src *"}})
}
