//go:build unix

package moneyout_test

import (
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/invoice"
)

// forgotten is an engine whose node was restored while the service was down.
type forgotten struct {
	*realHarness
	db database
}

// down stops the service, has something happen, leaves the node the blocks from so many above the last one that was
// read on, and starts the service again. It returns the height of that last one.
func (w *forgotten) down(above uint64, meanwhile func()) (read uint64) {
	w.t.Helper()

	read = w.health().Height

	meanwhile()

	for range 24 { // the oldest ones that the node has are final
		w.mine(w.t)
	}

	w.forget(w.t, read+above)
	w.reopen(w.db)

	return read
}

func (w *forgotten) health() health.Network {
	w.t.Helper()

	report, err := w.engine.Health(w.t.Context())
	w.must(err)

	return report.Networks[0]
}

// invoice makes an invoice, and pays it where paid is set.
func (w *forgotten) invoice(paid bool) invoice.Invoice {
	w.t.Helper()

	inv, err := w.engine.Invoices.Create(w.t.Context(), invoice.CreateParams{
		Owner: w.owner,
		Options: []invoice.OptionParams{
			{Asset: w.asset, Network: w.slug, Amount: chain.Units(5_000_000_000)},
		},
	})
	w.must(err)

	if paid {
		w.payInvoice(inv)
	}

	return inv
}

// payInvoice has a stranger pay an invoice.
func (w *forgotten) payInvoice(inv invoice.Invoice) {
	w.t.Helper()
	w.fund(w.t, inv.Options[0].Address)
	w.mine(w.t)
}

// paid waits until an invoice is.
func (w *forgotten) paid(inv invoice.Invoice) {
	w.t.Helper()
	w.until("the invoice is paid", func() bool {
		got, err := w.engine.Invoices.Get(w.t.Context(), inv.Owner, inv.ID)
		w.must(err)

		if stopped := w.health().Stopped; stopped != "" {
			w.t.Fatalf("the network was stopped: %s", stopped)
		}

		return got.Status == invoice.Paid
	})
}

// released waits until what an invoice was paid is in the wallet, and final there.
func (w *forgotten) released(inv invoice.Invoice) {
	w.t.Helper()
	w.until("the payment is released", func() bool {
		return w.held(w.t, string(inv.Options[0].Address)).IsZero()
	})

	for range 12 { // blocks
		w.turn()
	}
}

// A node is restored while the service is down. Where its first block follows the last one that was read everything
// goes on. Where blocks are missing a person is asked, and everything goes on then: what was paid in them is found by
// its balance, once, and named are the blocks that were passed.
func TestNodeRestoredWhileTheServiceWasDown(t *testing.T) {
	raced.Skip(t) // an engine does one step at a time

	for name, start := range map[string]func(t *testing.T) realNode{
		"Solana by block":   solanaByBlock,
		"Solana by address": solanaByAddress,
	} {
		t.Run(name, func(t *testing.T) {
			db := sqliteAt(filepath.Join(t.TempDir(), "payments.db"))
			w := &forgotten{&realHarness{realNode: start(t), t: t}, db}
			w.reopen(db)

			defer func() { w.must(w.store.Close()) }()

			for range 260 { // a chain that is longer than what is looked for at first
				w.mine(t)
			}

			w.begin()

			// Nothing is missing.
			before := w.invoice(false)
			w.turn()
			w.down(1, func() { w.payInvoice(before) })
			w.paid(before)
			w.released(before)

			// The block of a payment is missing.
			lost := w.invoice(false)
			w.turn()

			read := w.down(9, func() { w.payInvoice(lost) })
			w.until("the network is stopped", func() bool { return w.health().NeedsPerson() })
			w.must(w.engine.Resume(t.Context(), w.slug))
			w.paid(lost)
			w.paid(w.invoice(true))
			w.confirmed(w.pay(w.stranger(t)).ID)

			report, err := w.engine.Audit(t.Context())
			w.must(err)

			if got := report.Networks[0].Unread; len(got) != 1 ||
				got[0] != (audit.Blocks{From: read + 1, To: read + 8}) {
				t.Errorf("the audit names %+v as passed above block %d", got, read)
			}

			if found := report.Differences(); len(found) > 0 {
				t.Errorf("the audit finds %+v", found)
			}
		})
	}
}
