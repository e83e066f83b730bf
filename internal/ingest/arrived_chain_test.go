package ingest_test

import (
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// tokens are the kinds of token that take a fee of 99 %, by what their logs show of it.
var tokens = map[string]sim.FeeLog{
	"net log":              sim.LogNet,
	"gross log":            sim.LogGross,
	"gross and second log": sim.LogGrossThenFee,
}

// Row 35 of the pitfalls: what a hint shows before its block is provisional, whatever the logs say.
func TestHintBeforeItsBlockPaysWhatArrived(t *testing.T) {
	for name, log := range tokens {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.set(&w.noPool, true)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 9900, Log: log})

			inv := w.sell("USDX", dollars(100))
			w.hint(inv, w.chain.Pay(addressOf(inv), "USDX", dollars(100)))
			w.want(inv, invoice.Pending, chain.Amount{}, dollars(100))

			w.mine(3)

			if held := w.chain.Balance(addressOf(inv), "USDX"); held != dollars(1) {
				t.Fatalf("%s arrived on the network, want 1 %%", held)
			}

			w.want(inv, invoice.Underpaid, dollars(1), chain.Amount{})

			if p := w.only(inv.ID); p.Status != invoice.Confirmed || p.Amount != dollars(1) {
				t.Errorf("the payment is %s with %s", p.Status, p.Amount)
			}
		})
	}
}

// Row 42 of the pitfalls, for invoices and deposit addresses that only blocks show payments to.
func TestGrossTokensCreditWhatArrived(t *testing.T) {
	for name, log := range tokens {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.set(&w.noPool, true)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 250, Log: log})

			inv, d := w.sell("USDX", dollars(100)), w.deposit()
			w.chain.Pay(addressOf(inv), "USDX", dollars(100))
			w.chain.Pay(d.Address, "USDX", dollars(40))
			w.mine(3)

			w.want(inv, invoice.Underpaid, dollars(97).Add(chain.Units(500_000)), chain.Amount{})

			if p := w.only(d.ID); p.Status != invoice.Confirmed || p.Amount != dollars(39) {
				t.Errorf("the payment to the deposit address is %s with %s, want 39", p.Status, p.Amount)
			}
		})
	}
}

// Row 42 of the pitfalls where the balance cannot decide, because two payments move it in one block.
func TestNetOfLogsCountsWhereTheBalanceCannotDecide(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 9900, Log: sim.LogGrossThenFee})

	inv := w.sell("USDX", dollars(200))
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.mine(3)
	w.want(inv, invoice.Underpaid, dollars(2), chain.Amount{})
}

// Row 35 of the pitfalls: a payer's contract pays another amount on the branch that wins.
func TestHintOfAVariablePayerPaysWhatArrived(t *testing.T) {
	for _, passed := range []bool{false, true} {
		t.Run(fmt.Sprintf("follower has passed the block: %t", passed), func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.set(&w.noPool, true)

			inv := w.sell("USDX", dollars(1000))
			hash := w.chain.PayVariable(
				w.output(addressOf(inv), "USDX", dollars(1000)),
				func(_, branch uint64) sim.Result {
					amount := dollars(1000)
					if branch > 0 {
						amount = chain.Units(1)
					}

					return sim.Result{Outputs: []chain.Output{w.output(addressOf(inv), "USDX", amount)}}
				},
			)

			w.chain.Mine(1)

			if passed {
				w.work()
			}

			w.hint(inv, hash)
			w.want(inv, invoice.Pending, chain.Amount{}, dollars(1000))
			w.fork(1)
			w.mine(3)

			w.want(inv, invoice.Underpaid, chain.Units(1), chain.Amount{})

			p := w.only(inv.ID)
			if p.Amount != w.chain.Balance(addressOf(inv), "USDX") {
				t.Errorf("the payment is over %s", p.Amount)
			}

			w.wantEvents([]event.Type{
				event.InvoicePaymentDetected,
				event.InvoicePaymentDetected,
				event.InvoicePaymentConfirmed,
			}, p.ID)

			e := w.lastEvent(event.InvoicePaymentDetected, p.ID)
			if e.Data.Previous["amount"] != "1000000000" || e.Data.Object["amount"] != "1" {
				t.Errorf("the correction shows %v, before %v", e.Data.Object["amount"], e.Data.Previous)
			}
		})
	}
}

// Row 37 of the pitfalls: what the block shows otherwise than the pool has an outcome and an exit.
func TestPoolAmountThatNeverArrivesReleasesItsInvoice(t *testing.T) {
	for fee, want := range map[int]struct {
		status invoice.Status
		paid   chain.Amount
		events []event.Type
	}{
		9900: {
			invoice.Underpaid,
			dollars(1),
			[]event.Type{
				event.InvoiceCreated,
				event.InvoicePending,
				event.InvoiceReopened,
				event.InvoiceUnderpaid,
				event.InvoiceExpired,
			},
		},
		10_000: {
			invoice.Open,
			chain.Amount{},
			[]event.Type{
				event.InvoiceCreated,
				event.InvoicePending,
				event.InvoiceReopened,
				event.InvoiceExpired,
			},
		},
	} {
		t.Run(fmt.Sprintf("fee of %d basis points", fee), func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: fee})

			inv := w.sell("USDX", dollars(100))
			w.chain.Pay(addressOf(inv), "USDX", dollars(100))
			w.work()
			w.want(inv, invoice.Pending, chain.Amount{}, dollars(100))

			w.mine(1)
			w.want(inv, invoice.Open, chain.Amount{}, want.paid)

			w.mine(2)
			w.want(inv, want.status, want.paid, chain.Amount{})

			w.pass(invoicestate.LostAfter)
			w.mine(2)
			w.want(inv, invoice.Expired, want.paid, chain.Amount{})
			w.wantEvents(want.events, inv.ID)
		})
	}
}

// Row 44 of the pitfalls: a transaction that failed holds its invoice no longer than its block.
func TestRevertedTransferReleasesItsInvoice(t *testing.T) {
	for _, symbol := range []string{"USDX", "SIM"} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			inv := w.sell(symbol, coin(1))
			w.chain.PayFailing(addressOf(inv), symbol, coin(1))
			w.work()
			w.want(inv, invoice.Pending, chain.Amount{}, coin(1))

			_, err := w.engine.Invoices.Cancel(t.Context(), w.owner, inv.ID)
			if fault.Code(err) != "invoice_payment_pending" {
				t.Errorf("cancelling a pending invoice: %v", err)
			}

			w.mine(1)
			w.want(inv, invoice.Open, chain.Amount{}, chain.Amount{})
			w.wantEvents(
				[]event.Type{event.InvoiceCreated, event.InvoicePending, event.InvoiceReopened}, inv.ID,
			)
			w.wantEvents([]event.Type{event.InvoicePaymentDetected, event.PaymentDropped}, w.only(inv.ID).ID)

			_, err = w.engine.Invoices.Cancel(t.Context(), w.owner, inv.ID)
			w.must(err)
			w.want(inv, invoice.Canceled, chain.Amount{}, chain.Amount{})
		})
	}
}
