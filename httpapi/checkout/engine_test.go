package checkout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// mnemonic is the well-known public one of the BIP-39 test vectors: everybody has its keys.
const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

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

// A payer chooses, sends the amount that the page shows to the address that it shows, and sees it confirm, over the
// real engine and a simulated network.
func TestPayerPays(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer http.DefaultClient.CloseIdleConnections()
	network := sim.New(sim.Config{})
	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := payments.New(payments.Config{
		Store: memory.New(), Drivers: []payments.ChainDriver{network}, Signer: keys, Rates: prices, BaseURL: "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	shop, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}
	create := func() payer {
		t.Helper()
		inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
			Owner: event.Owner{AccountID: shop.ID}, Price: &invoice.Price{Currency: "EUR", Amount: "49.90"}, OrderID: "SECRET-4711",
		})
		if err != nil {
			t.Fatal(err)
		}
		return payer{t, inv.ID}
	}
	mux := http.NewServeMux()
	mux.Handle("/checkout/", checkout.Handler(engine, nil))
	server := httptest.NewServer(mux)
	defer server.Close()

	p := create()
	p.base = server.URL + "/checkout/" + p.base
	s := p.state()
	if s.Phase != checkout.Choose || len(s.Options) != 2 || s.Options[0].EstimateText == "" {
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
	if s.Phase != checkout.Pay || s.Payment.Asset != "USDX" || !strings.Contains(page, string(s.Payment.Address)) || !strings.Contains(page, s.Payment.MissingText) {
		t.Fatalf("after choosing: %+v %+v", s, s.Payment)
	}
	if s.Payment.MissingText != token.EstimateText {
		t.Errorf("estimated at %s, quoted at %s at the same price", token.EstimateText, s.Payment.MissingText)
	}

	// A transaction that pays somebody else is not taken for a payment, an unknown one neither.
	foreign := network.Pay(network.NewAddress(), "USDX", chain.Units(1_000_000))
	if page := p.send("hint", url.Values{"tx_hash": {foreign}}); !strings.Contains(page, "does not pay this invoice") {
		t.Error("a foreign transaction is not said to be one")
	}
	if page := p.send("hint", url.Values{"tx_hash": {"0x" + strings.Repeat("00", 32)}}); !strings.Contains(page, "does not know this transaction") {
		t.Error("an unknown transaction is not said to be one")
	}

	// A part, then the rest: exactly the amounts that the page shows.
	network.Pay(s.Payment.Address, "USDX", chain.Units(20_000_000))
	s = p.until("the part is seen", func(s checkout.State) bool { return s.Phase == checkout.Underpaid })
	if s.Payment.ReceivedText != "20.000" || s.Outstanding == "" {
		t.Errorf("after a part: %+v, outstanding %q", s.Payment, s.Outstanding)
	}
	hash := network.Pay(s.Payment.Address, "USDX", chain.MustAmount(s.Payment.AmountMissing))
	if page := p.send("hint", url.Values{"tx_hash": {hash}}); !strings.Contains(page, "Payment seen") && !strings.Contains(page, "Confirming") {
		t.Error("the payer's own transaction is not found")
	}
	p.until("enough is seen", func(s checkout.State) bool { return s.Phase == checkout.Seen })
	network.Mine(1)
	engine.Wake()
	s = p.until("one confirmation", func(s checkout.State) bool { return s.Phase == checkout.Confirming })
	if tx := s.Transactions[len(s.Transactions)-1]; tx.Confirmations != 1 || tx.ConfirmationsRequired != 3 {
		t.Errorf("confirmations %d of %d", tx.Confirmations, tx.ConfirmationsRequired)
	}
	network.Mine(2)
	engine.Wake()
	s = p.until("paid", func(s checkout.State) bool { return s.Phase == checkout.Paid })
	if !s.Final || len(s.OutcomeFlags) != 0 || len(s.Transactions) != 2 {
		t.Errorf("paid: %+v", s)
	}
	if page := p.send("select", url.Values{"option": {token.ID}}); !strings.Contains(page, "has changed in the meantime") || !strings.Contains(page, "<h1>Paid</h1>") {
		t.Error("choosing on a paid invoice does not say that it is paid")
	}

	// The buttons of test mode.
	p = create()
	p.base = server.URL + "/checkout/" + p.base
	p.send("select", url.Values{"option": {p.state().Options[0].ID}})
	p.send("simulate", url.Values{"outcome": {"overpaid"}})
	s = p.until("a simulated payment", func(s checkout.State) bool { return s.Phase == checkout.Paid })
	if len(s.OutcomeFlags) != 1 || s.OutcomeFlags[0] != invoice.Overpaid || !s.Transactions[0].Simulated {
		t.Errorf("simulated: %+v", s)
	}
}

// Options that cannot work are told at the start, not to a payer.
func TestHandlerPanicsOnUnusableOptions(t *testing.T) {
	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := payments.New(payments.Config{
		Store: memory.New(), Drivers: []payments.ChainDriver{sim.New(sim.Config{})}, Signer: keys, Rates: prices, BaseURL: "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a frame ancestor that is none is taken")
		}
	}()
	checkout.Handler(engine, &checkout.Options{FrameAncestors: []string{"a; script-src *"}})
}
