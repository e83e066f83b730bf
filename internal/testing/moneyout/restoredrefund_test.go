package moneyout_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// A backup from before a refund was sent is restored after it was. Once a person says which payout its transaction was,
// the refund has succeeded, is published so once, and counts at its invoice.
func TestRestoredBackupRefundsOnce(t *testing.T) {
	onSQLite(
		t,
		account.Settings{ManualRelease: true},
		sim.Config{},
		func(t *testing.T, w *harness, dump, restore func()) {
			w.fund(1, 100)
			w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
			w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)

			inv, at := w.invoiced()
			w.chain.Pay(at["SIM"], "SIM", coin(1))
			w.steps("the invoice is paid", func() bool { return w.invoice(inv.ID).Status == invoice.Paid })

			part := milli(300)
			r, err := w.engine.Payouts.CreateRefund(
				t.Context(),
				w.refundTo(payout.RefundParams{InvoiceID: inv.ID, Amount: &part}),
			)
			w.must(err)
			dump()

			w.steps(
				"the refund succeeded",
				func() bool { return w.refund(r.ID).Status == payout.RefundSucceeded },
			)
			paid := w.get(r.PayoutID)

			restore()
			w.frozen()

			if got := w.refund(r.ID); got.Status != payout.RefundPending {
				t.Fatalf("the dump has the refund as %s", got.Status)
			}

			w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, r.PayoutID))
			w.steps(
				"the refund has succeeded",
				func() bool { return w.refund(r.ID).Status == payout.RefundSucceeded },
			)
			w.thawed()

			if n := w.countEvents(event.RefundSucceeded, r.ID); n != 1 {
				t.Errorf("it is told as succeeded %d times", n)
			}

			if got := w.invoice(inv.ID); !got.Has(invoice.PartiallyRefunded) {
				t.Errorf("the invoice shows %+v and %v", got.Refunds, got.Flags)
			}

			w.check("what arrived", w.chain.Balance(paid.Destination, "SIM"), part)
		},
	)
}

// A fork takes a payment away, and the backup that is restored is from before its refund was signed: nobody can say at
// first whether that was sent. Once the wallet is compared it is canceled, and nothing is paid for what is gone.
func TestRefundOfAPaymentLostBeforeItsWalletWasCompared(t *testing.T) {
	cancelsRefundAfterFork(
		t, sim.DropOrphan,
		func(w *harness, to chain.Address) { w.chain.Pay(to, "SIM", milli(300)) },
	)
}

// The fork changes what the payer's contract pays, and its transaction is confirmed again with less than the refund.
func TestRefundOfAPaymentThatCameBackSmaller(t *testing.T) {
	cancelsRefundAfterFork(t, sim.Reinclude, func(w *harness, to chain.Address) {
		asset, _ := w.chain.Network().Asset("SIM")
		pays := chain.Output{To: to, AssetID: asset.ID, Amount: milli(300)}

		w.chain.PayVariable(pays, func(_, branch uint64) sim.Result {
			here := pays
			if branch > 0 {
				here.Amount = milli(50)
			}

			return sim.Result{Outputs: []chain.Output{here}}
		})
	})
}

// cancelsRefundAfterFork pays 0.3 to an invoice, refunds 0.1 of that payment, restores a backup of then, and has a
// fork take the payment: the refund has to be canceled.
func cancelsRefundAfterFork(t *testing.T, fate sim.OrphanFate, pay func(w *harness, to chain.Address)) {
	t.Helper()
	onSQLite(
		t,
		account.Settings{ManualRelease: true},
		sim.Config{NoFinality: true},
		func(t *testing.T, w *harness, dump, restore func()) {
			w.fund(1, 100)
			w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
			w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)

			inv, at := w.invoiced()
			pay(w, at["SIM"])
			w.steps(
				"the invoice has confirmed money",
				func() bool { return w.invoice(inv.ID).Status == invoice.Underpaid },
			)

			part := milli(100)
			payments, err := internal.Of(w.engine).Store().PaymentsOfInvoices(t.Context(), []string{inv.ID})
			w.must(err)

			r, err := w.engine.Payouts.CreateRefund(
				t.Context(),
				w.refundTo(payout.RefundParams{PaymentID: payments[0].ID, Amount: &part}),
			)
			w.must(err)
			dump()
			restore()

			head, err := w.chain.Head(t.Context())
			w.must(err)
			w.chain.Fork(sim.Fork{Depth: head.Tip.Height - payments[0].Block.Height + 1, Fate: fate})

			w.steps(
				"the refund is canceled",
				func() bool { return w.refund(r.ID).Status == payout.RefundCanceled },
			)

			if got := w.get(r.PayoutID); got.FailureCode != "canceled" || got.TxHash != "" {
				t.Errorf("its payout failed as %q with %q", got.FailureCode, got.TxHash)
			}

			w.check("what arrived", w.chain.Balance(w.get(r.PayoutID).Destination, "SIM"), chain.Amount{})
		},
	)
}
