package checkout_test

// A shop over the real engine, for the tests that pay for real.

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// mnemonic is the well-known public one of the BIP-39 test vectors: everybody has its keys.
const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

// shop is a merchant whose service runs until the test ends.
type shop struct {
	t       *testing.T
	engine  *payments.Engine
	account account.Account
	mux     *http.ServeMux // has /checkout/
	server  *httptest.Server
}

// newEngine returns an engine over a store in memory that does not run yet.
func newEngine(driver payments.ChainDriver) *payments.Engine {
	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		panic(err)
	}

	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"},
		time.Minute, nil,
	)
	if err != nil {
		panic(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{driver},
		Signer:    keys,
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}

	return engine
}

// openShop runs a service on one network and serves its checkout.
func openShop(t *testing.T, driver payments.ChainDriver, o *checkout.Options) *shop {
	t.Helper()

	before := goleak.IgnoreCurrent()

	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); goleak.VerifyNone(t, before) })
	s := &shop{t: t, engine: newEngine(driver), mux: http.NewServeMux()}
	ctx, stop := context.WithCancel(context.Background())

	done := make(chan error, 1)
	go func() { done <- s.engine.Run(ctx) }()

	s.mux.Handle("/checkout/", checkout.Handler(s.engine, o))
	s.server = httptest.NewServer(s.mux)

	t.Cleanup(func() {
		s.server.Close()
		stop()

		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})

	var err error
	if s.account, err = s.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Corner Shop"},
	); err != nil {
		t.Fatal(err)
	}

	return s
}

// order makes an invoice in EUR, payable in everything that the network has unless options are
// named, and returns its id.
func (s *shop) order(price string, options ...invoice.OptionParams) string {
	s.t.Helper()

	inv, err := s.engine.Invoices.Create(s.t.Context(), invoice.CreateParams{
		Owner:   event.Owner{AccountID: s.account.ID},
		Price:   &invoice.Price{Currency: "EUR", Amount: price},
		OrderID: "SECRET-4711",
		Options: options,
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return inv.ID
}

// path is the path of an invoice's page.
func (s *shop) path(id string) string { return "/checkout/" + id }
