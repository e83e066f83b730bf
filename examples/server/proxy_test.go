package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// Behind a trusted proxy, a request comes from where the proxy says.
func TestTrustedProxies(t *testing.T) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{1}, 32),
	})
	if err != nil {
		t.Fatal(err)
	}

	shop, err := engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Shop"})
	if err != nil {
		t.Fatal(err)
	}

	_, key, err := engine.Accounts.CreateKey(t.Context(), account.KeyParams{
		AccountID:  shop.ID,
		Name:       "office",
		AllowedIPs: []string{"203.0.113.0/24"},
	})
	if err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		trusted []netip.Prefix
		want    int
	}{
		"trusted":     {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, http.StatusOK},
		"not trusted": {nil, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/v1/invoices", nil)
			request.RemoteAddr = "10.0.0.1:40000"
			request.Header.Set("X-Forwarded-For", "203.0.113.7")
			request.Header.Set("Authorization", "Bearer "+key)

			answer := httptest.NewRecorder()
			publicHandler(engine, c.trusted).ServeHTTP(answer, request)

			if answer.Code != c.want {
				t.Errorf("answered %d %s, want %d", answer.Code, answer.Body, c.want)
			}
		})
	}
}
