package ingest_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// otherBranch is what one transaction does on the branch that wins, seen from two invoices over 100 USDX of
// which the first was paid by it on the branch that lost.
type otherBranch struct {
	result func(w *harness, first, second, stranger chain.Address) sim.Result
	// first and second are the states of the invoices in the end.
	first, second invoice.Status
	// paid and paidSecond are what counts as paid in the end.
	paid, paidSecond chain.Amount
	// events are what happens to the first payment after its confirmation.
	events []event.Type
	// amounts are what arrived in the end at the first invoice's address, by asset.
	amounts map[string]chain.Amount
}

var takenBack = []event.Type{event.PaymentOrphaned, event.PaymentDropped}

var otherBranches = map[string]otherBranch{
	"other amount": {
		result: func(w *harness, first, _, _ chain.Address) sim.Result {
			return sim.Result{Outputs: []chain.Output{w.output(first, "USDX", dollars(40))}}
		},
		first:  invoice.Underpaid,
		second: invoice.Open,
		paid:   dollars(40),
		events: []event.Type{
			event.PaymentOrphaned,
			event.InvoicePaymentDetected,
			event.InvoicePaymentConfirmed,
		},
		amounts: map[string]chain.Amount{"USDX": dollars(40)},
	},
	"another invoice of ours": {
		result: func(w *harness, _, second, _ chain.Address) sim.Result {
			return sim.Result{Outputs: []chain.Output{w.output(second, "USDX", dollars(100))}}
		},
		first:      invoice.Open,
		second:     invoice.Paid,
		paidSecond: dollars(100),
		events:     takenBack,
	},
	"a stranger": {
		result: func(w *harness, _, _, stranger chain.Address) sim.Result {
			return sim.Result{Outputs: []chain.Output{w.output(stranger, "USDX", dollars(100))}}
		},
		first:  invoice.Open,
		second: invoice.Open,
		events: takenBack,
	},
	"other asset": {
		result: func(w *harness, first, _, _ chain.Address) sim.Result {
			return sim.Result{Outputs: []chain.Output{w.output(first, "USDY", dollars(100))}}
		},
		first:   invoice.Open,
		second:  invoice.Open,
		events:  takenBack,
		amounts: map[string]chain.Amount{"USDY": dollars(100)},
	},
	"failing": {
		result: func(*harness, chain.Address, chain.Address, chain.Address) sim.Result {
			return sim.Result{Failed: true}
		},
		first:  invoice.Open,
		second: invoice.Open,
		events: takenBack,
	},
}

// Row 36 of the pitfalls: a reorganisation deeper than the rule, with the same hash and log index.
func TestDeepReorganisationShowsAnotherPayment(t *testing.T) {
	for name, other := range otherBranches {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{NoFinality: true})
			first, second := w.sell("USDX", dollars(100)), w.sell("USDX", dollars(100))
			stranger := w.chain.NewAddress()
			paid := w.output(addressOf(first), "USDX", dollars(100))
			w.chain.PayVariable(paid, func(_, branch uint64) sim.Result {
				if branch == 0 {
					return sim.Result{Outputs: []chain.Output{paid}}
				}

				return other.result(w, addressOf(first), addressOf(second), stranger)
			})
			w.mine(4)
			w.want(first, invoice.Paid, dollars(100), chain.Amount{})

			p := w.only(first.ID)
			w.fork(4)
			w.mine(3)

			w.want(first, other.first, other.paid, chain.Amount{})
			w.want(second, other.second, other.paidSecond, chain.Amount{})

			w.wantEvents(append([]event.Type{
				event.InvoicePaymentDetected,
				event.InvoicePaymentConfirmed,
			}, other.events...), p.ID)

			if e := w.lastEvent(event.InvoicePaymentReversed, first.ID); e.Data.Object["status"] == "paid" {
				t.Errorf("the invoice is reversed as %v", e.Data.Object["status"])
			}

			w.wantConfirmed(first, other.amounts)
		})
	}
}

// wantConfirmed checks the confirmed payments to an invoice, by asset.
func (w *harness) wantConfirmed(inv invoice.Invoice, want map[string]chain.Amount) {
	w.t.Helper()

	got := map[string]chain.Amount{}

	for _, p := range w.payments(inv.ID) {
		if p.Status == invoice.Confirmed {
			got[p.Asset] = got[p.Asset].Add(p.Amount)
		}
	}

	for _, asset := range w.network.Assets {
		held := w.chain.Balance(addressOf(inv), asset.Symbol)
		if got[asset.Symbol] != want[asset.Symbol] || held != want[asset.Symbol] {
			w.t.Errorf(
				"%s %s are confirmed and %s held, want %s",
				got[asset.Symbol], asset.Symbol, held, want[asset.Symbol],
			)
		}
	}
}

// Row 37 of the pitfalls: a payment that was in a block and waits in the pool again can still leave.
func TestPaymentThatLeftItsBlockIsDroppedInTheNext(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(100))
	paid := w.output(addressOf(inv), "USDX", dollars(100))
	w.chain.PayVariable(paid, func(_, branch uint64) sim.Result {
		if branch == 0 {
			return sim.Result{Outputs: []chain.Output{paid}}
		}

		return sim.Result{Failed: true}
	})
	w.mine(1)
	w.want(inv, invoice.Pending, chain.Amount{}, dollars(100))

	w.chain.Fork(sim.Fork{Depth: 1, Fate: sim.ReturnToPool})
	w.work()
	w.want(inv, invoice.Pending, chain.Amount{}, dollars(100))

	w.mine(1)
	w.want(inv, invoice.Open, chain.Amount{}, chain.Amount{})
	w.wantEvents(
		[]event.Type{event.InvoiceCreated, event.InvoicePending, event.InvoiceReopened}, inv.ID,
	)
}
