package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// Invoices in a currency that has no price at the moment, or never had one, say nothing of the service: the engine
// asks for the prices of its own assets.
func TestAnInventedCurrencyLeavesTheServiceReady(t *testing.T) {
	c := newClinic(t, memory.New())
	c.CheckClock()
	c.passes(time.Minute)

	made, err := c.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	create := func(currency string) error {
		_, err := c.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   event.Owner{AccountID: made.ID},
			Price:   &invoice.Price{Amount: "10", Currency: currency},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
		})

		return err
	}

	c.rates.err = errors.New("the feed does not have it")
	if err := create("ZZZ"); !errors.Is(err, fault.Unavailable) {
		t.Fatalf("an invoice in an invented currency: %v", err)
	}

	c.rates.err = nil

	report, err := c.Health(t.Context())
	if err != nil || !report.OK() || !report.Ready() || !report.PricesReady() {
		t.Errorf("it is not ready: %+v, %v", report.Checks, err)
	}
}

// Prices that fail take no readiness from the API, and are ready again when the source is, though nobody asks.
func TestPricesHealWithoutTraffic(t *testing.T) {
	c := newClinic(t, memory.New())
	c.CheckClock()
	c.passes(time.Minute)

	c.rates.err = errors.New("down")
	if report := c.passes(2 * time.Minute); report.OK() || !report.Ready() || report.PricesReady() {
		t.Errorf("while the source is down: %+v", report.Checks)
	} else if got := check(t, report, health.Rates); !strings.Contains(got.Error, "ETH") {
		t.Errorf("it does not name the asset: %s", got.Error)
	}

	c.rates.err = nil
	if report := c.passes(time.Minute); !report.OK() || !report.PricesReady() {
		t.Errorf("once it is well: %+v", report.Checks)
	}
}

// A dead network takes readiness from itself alone.
func TestADeadNetworkLeavesTheAPIReady(t *testing.T) {
	c := newClinic(t, memory.New())
	c.CheckClock()
	c.passes(time.Minute)

	failCalls(sim.MethodHead)(c, errors.New("dead"))

	report := c.passes(2 * time.Minute)
	if report.OK() || !report.Ready() || report.Networks[0].Ready() || !report.PricesReady() {
		t.Errorf("OK %v, ready %v, network %v", report.OK(), report.Ready(), report.Networks[0].Ready())
	}

	failCalls(sim.MethodHead)(c, nil)

	if report = c.passes(2 * time.Minute); !report.OK() || !report.Networks[0].Ready() {
		t.Errorf("once it is back: %+v", report.Networks)
	}
}
