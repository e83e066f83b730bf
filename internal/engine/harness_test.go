package engine

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// newEngine returns an engine with fixed prices by pair, that logs nothing. A signer, prices, a key and a log that are
// configured stay; the signer is a simulated network's otherwise.
func newEngine(t *testing.T, prices map[string]string, c Config) *Engine {
	t.Helper()

	rates, err := rate.NewFixed(prices, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	if c.Signer == nil {
		c.Signer = sim.NewSigner(1, nil)
	}

	if c.Rates == nil {
		c.Rates = rates
	}

	c.BaseURL = "https://pay.example.com"

	if c.SecretKey == nil {
		c.SecretKey = bytes.Repeat([]byte{7}, 32)
	}

	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}

	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}

	return e
}
