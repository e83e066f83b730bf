package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// A token whose contract answers no balance does not keep the network's invoices open, nor payments of other
// assets from being found by balance. Health names it until it answers again.
func TestOneUnreadableTokenStopsNothingElse(t *testing.T) {
	w := newWorld(t, sim.Config{})
	w.mu.Lock()
	w.badToken = "USDY"
	w.mu.Unlock()

	native, _ := w.network.Native()
	dollar := w.network.Assets[1]
	unpaid, paid := w.sell(dollar.Symbol, dollars(5)), w.sell(native.Symbol, coin(1))
	w.chain.PayInternal(addressOf(paid), coin(1))
	w.mine(40)
	w.want(paid, invoice.Paid, coin(1), chain.Amount{})

	w.pass(2 * 24 * time.Hour)
	w.mine(40)
	w.want(unpaid, invoice.Expired, chain.Amount{}, chain.Amount{})

	bad, _ := w.network.Asset("USDY")

	unreadable := func() string {
		report, err := w.engine.Health(t.Context())
		w.must(err)

		return report.Networks[0].Follower.Unreadable
	}
	if got := unreadable(); !strings.Contains(got, bad.ID) {
		t.Errorf("health names %q as unreadable; want asset %s", got, bad.ID)
	}

	w.mu.Lock()
	w.badToken = ""
	w.mu.Unlock()
	w.sell(dollar.Symbol, dollars(5))
	w.mine(40)

	if got := unreadable(); got != "" {
		t.Errorf("health names %q as unreadable after the contract answered", got)
	}
}
