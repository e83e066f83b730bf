package ingest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// A token whose contract answers no balance does not keep the network's invoices open, nor payments of other
// assets from being found by balance. Health names it until it answers again.
func TestOneUnreadableTokenStopsNothingElse(t *testing.T) {
	w := newHarness(t, sim.Config{})
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

// A balance that cannot be read is no balance of nothing: a payment that waits for it is not dropped.
func TestUnreadableBalanceDropsNoPayment(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(5))
	asset, _ := w.network.Asset("USDX")
	unnamed := invoice.Payment{
		ID:         "01960000000000000000aaaa",
		Owner:      w.owner,
		Status:     invoice.Detected,
		InvoiceID:  inv.ID,
		Network:    network,
		Asset:      asset.Symbol,
		AssetID:    asset.ID,
		Contract:   asset.Contract,
		Decimals:   asset.Decimals,
		Address:    addressOf(inv),
		Amount:     dollars(5),
		Block:      w.cursor().At,
		Required:   3,
		DetectedBy: invoice.ByBalance,
		DetectedAt: w.clock(),
	}
	w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutPayments(ctx, &unnamed)
	}))

	w.mu.Lock()
	w.badToken = "USDX"
	w.mu.Unlock()

	// the address is compared all the same, for its coin
	w.chain.PayInternal(addressOf(inv), coin(1))
	w.mine(40)

	find := func() invoice.Payment {
		all := w.payments(inv.ID)
		i := slices.IndexFunc(all, func(p invoice.Payment) bool { return p.ID == unnamed.ID })

		return all[i]
	}
	if got := find(); got.Status != invoice.Detected {
		t.Fatalf("while its balance cannot be read the payment is %s", got.Status)
	}

	w.mu.Lock()
	w.badToken = ""
	w.mu.Unlock()
	w.mine(40)

	if got := find(); got.Status != invoice.Dropped {
		t.Errorf("once its balance is read as nothing the payment is %s", got.Status)
	}
}

func (w *harness) cursor() scan.Cursor {
	w.t.Helper()

	cursor, _, err := w.store.Cursor(w.t.Context(), network)
	w.must(err)

	return cursor
}
