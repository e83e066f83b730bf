package moneyout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// invoiced makes an invoice of 1 coin or 2000 dollars, and returns its addresses by symbol.
func (w *harness) invoiced() (invoice.Invoice, map[string]chain.Address) {
	w.t.Helper()
	inv, err := w.engine.Invoices.Create(w.t.Context(), invoice.CreateParams{
		Owner: w.owner,
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: network, Amount: coin(1)},
			{Asset: "USDX", Network: network, Amount: dollars(2000)},
		},
	})
	w.must(err)

	at := map[string]chain.Address{}

	for _, o := range inv.Options {
		inv, err = w.engine.Invoices.Select(w.t.Context(), &w.owner, inv.ID, o.ID)
		w.must(err)
	}

	for _, o := range inv.Options {
		at[o.Asset] = o.Address
	}

	w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

	return inv, at
}

func (w *harness) invoice(id string) invoice.Invoice {
	w.t.Helper()
	inv, err := w.engine.Invoices.Get(w.t.Context(), w.owner, id)
	w.must(err)

	return inv
}

func (w *harness) refundTo(r payout.RefundParams) payout.RefundParams {
	r.Owner, r.Destination = w.owner, string(w.chain.NewAddress())
	return r
}

func (w *harness) refund(id string) payout.Refund {
	w.t.Helper()
	r, err := w.engine.Payouts.GetRefund(w.t.Context(), w.owner, id)
	w.must(err)

	return r
}

func TestRefundInParts(t *testing.T) {
	inTime(t, account.Settings{PayoutsPerHour: 1}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(2, 0)

		ctx := t.Context()
		inv, at := w.invoiced()
		_, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		wantFault(t, err, fault.State, "refund_no_payment")
		w.chain.Pay(at["SIM"], "SIM", coin(1))
		w.live("the invoice is paid", func() bool { return w.invoice(inv.ID).Status == invoice.Paid })

		part := milli(300)
		r, err := w.engine.Payouts.CreateRefund(
			ctx,
			w.refundTo(
				payout.RefundParams{
					InvoiceID: inv.ID,
					Amount:    &part,
					Reason:    "too small",
					Metadata:  map[string]string{"a": "b"},
				},
			),
		)
		w.must(err)

		if r.Status != payout.RefundPending || r.PayoutID == "" ||
			w.countEvents(event.RefundCreated, r.ID) != 1 {
			t.Errorf("created as %+v", r)
		}

		for _, test := range []struct {
			params payout.RefundParams
			word   error
			code   string
		}{
			{payout.RefundParams{}, fault.Invalid, "parameter_missing"},
			{payout.RefundParams{InvoiceID: inv.ID, PaymentID: inv.ID}, fault.Invalid, "parameter_missing"},
			{payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(milli(701))}, fault.Invalid, "refund_exceeds_payment"},
			{
				payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(chain.MaxTransfer.Mul(60_000))},
				fault.Invalid,
				"refund_exceeds_payment",
			},
			{payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(chain.Amount{})}, fault.Invalid, "amount_too_small"},
			{
				payout.RefundParams{InvoiceID: inv.ID, Destinations: []chain.Destination{}},
				fault.Forbidden,
				"destination_not_allowed",
			},
			{
				payout.RefundParams{InvoiceID: inv.ID, Metadata: map[string]string{"": "x"}},
				fault.Invalid,
				"parameter_invalid",
			},
			{payout.RefundParams{InvoiceID: "0123456789abcdef01234567"}, fault.NotFound, "resource_missing"},
		} {
			_, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(test.params))
			wantFault(t, err, test.word, test.code)
		}

		_, err = w.engine.Payouts.CreateRefund(ctx, payout.RefundParams{Owner: w.owner, InvoiceID: inv.ID})
		wantFault(t, err, fault.Invalid, "parameter_missing")

		w.live("the refund succeeded", func() bool { return w.refund(r.ID).Status == payout.RefundSucceeded })
		p := w.get(r.PayoutID)
		w.arrived(p)
		w.once(p)

		if p.RefundID != r.ID || w.countEvents(event.RefundSucceeded, r.ID) != 1 {
			t.Errorf("refunded by %+v", p)
		}

		if got := w.invoice(inv.ID); got.Status != invoice.Paid || !got.Has(invoice.PartiallyRefunded) {
			t.Errorf("the invoice is %s %v", got.Status, got.Flags)
		}

		// All that is left; refunds do not count towards the payout limit.
		rest, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		w.must(err)
		w.check("the rest", rest.Amount, milli(700))
		w.live(
			"the rest is refunded",
			func() bool { return w.refund(rest.ID).Status == payout.RefundSucceeded },
		)
		w.arrived(w.get(rest.PayoutID))

		if got := w.invoice(
			inv.ID,
		); got.Status != invoice.Refunded || got.Has(invoice.PartiallyRefunded) ||
			got.RefundedAt.IsZero() {
			t.Errorf("the invoice is %s %v", got.Status, got.Flags)
		}

		_, err = w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		wantFault(t, err, fault.Invalid, "refund_exceeds_payment")
		w.live(
			"all is released",
			func() bool { all := w.settlements(); return len(all) == 1 && all[0].Status == "released" },
		)
		w.clean(2, 0)
	})
}

// Two refunds that were prepared at the same time cannot both have the same money.
func TestRefundsOfTheSameMoney(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(3, 0)

		ctx := t.Context()
		inv, at := w.invoiced()
		w.chain.Pay(at["SIM"], "SIM", coin(1))
		w.live("the invoice is paid", func() bool { return w.invoice(inv.ID).Status == invoice.Paid })

		var prepared [2]payout.Prepared
		for i := range prepared {
			var err error

			prepared[i], err = w.engine.Payouts.PrepareRefund(
				ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(milli(600))}),
			)
			w.must(err)
		}

		create := func(p payout.Prepared) error {
			return w.engine.Update(ctx, func(ctx context.Context, tx payments.Tx) error {
				_, err := w.engine.Payouts.RefundTx(ctx, tx, p)
				return err
			})
		}
		w.must(create(prepared[0]))
		wantFault(t, create(prepared[1]), fault.Invalid, "refund_exceeds_payment")

		if all := w.payouts(); len(all) != 1 {
			t.Errorf("%d payouts were made", len(all))
		}
	})
}

func ptr[T any](v T) *T { return &v }

func TestRefundOfSeveralPayments(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(2, 3000)

		ctx := t.Context()
		inv, at := w.invoiced()
		w.chain.Pay(at["SIM"], "SIM", milli(400))
		w.chain.Pay(at["SIM"], "SIM", milli(500))
		w.chain.Pay(at["USDX"], "USDX", dollars(2000))

		var paid []invoice.Payment

		w.live("three payments confirmed", func() bool {
			var err error

			paid, err = internal.Of(w.engine).Store().PaymentsOfInvoices(ctx, []string{inv.ID})
			w.must(err)

			return len(paid) == 3 &&
				!slices.ContainsFunc(
					paid, func(p invoice.Payment) bool { return p.Status != invoice.Confirmed },
				)
		})

		byAmount := map[chain.Amount]string{}
		for _, p := range paid {
			byAmount[p.Amount] = p.ID
		}

		_, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		wantFault(t, err, fault.Invalid, "refund_payment_required")
		small, err := w.engine.Payouts.CreateRefund(
			ctx, w.refundTo(payout.RefundParams{PaymentID: byAmount[milli(400)]}),
		)
		w.must(err)

		if w.check("the small one", small.Amount, milli(400)); small.InvoiceID != inv.ID {
			t.Errorf("it is of invoice %q", small.InvoiceID)
		}

		_, err = w.engine.Payouts.CreateRefund(
			ctx,
			w.refundTo(payout.RefundParams{PaymentID: byAmount[milli(400)], Amount: ptr(chain.Units(1))}),
		)
		wantFault(t, err, fault.Invalid, "refund_exceeds_payment")
		tokens, err := w.engine.Payouts.CreateRefund(
			ctx, w.refundTo(payout.RefundParams{PaymentID: byAmount[dollars(2000)]}),
		)
		w.must(err)

		// Canceled, its amount can be refunded again.
		canceled, err := w.engine.Payouts.CancelRefund(ctx, w.owner, small.ID)
		w.must(err)

		if canceled.Status != payout.RefundCanceled || w.get(small.PayoutID).FailureCode != "canceled" {
			t.Errorf("canceled as %+v", canceled)
		}

		again, err := w.engine.Payouts.CreateRefund(
			ctx,
			w.refundTo(payout.RefundParams{PaymentID: byAmount[milli(400)], Amount: ptr(milli(399))}),
		)
		w.must(err)
		w.live("both succeeded", func() bool {
			return w.refund(again.ID).Status == payout.RefundSucceeded &&
				w.refund(tokens.ID).Status == payout.RefundSucceeded
		})
		_, err = w.engine.Payouts.CancelRefund(ctx, w.owner, again.ID)
		wantFault(t, err, fault.State, "refund_not_pending")

		if got := w.invoice(inv.ID); !got.Has(invoice.PartiallyRefunded) {
			t.Errorf("the invoice is %s %v", got.Status, got.Flags)
		}

		w.clean(2, 3000)
	})
}

// A refund whose payout fails gives its amount back to the next; one whose payout leaves its block
// is pending again.
func TestRefundFollowsItsPayout(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(2, 0)

		ctx := t.Context()
		inv, at := w.invoiced()
		w.chain.Pay(at["SIM"], "SIM", coin(1))
		w.live("the invoice is paid", func() bool { return w.invoice(inv.ID).Status == invoice.Paid })
		w.policy = func(chain.SignRequest) error { return chain.Refuse("no_refunds") }
		r, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		w.must(err)
		w.live("the refund failed", func() bool { return w.refund(r.ID).Status == payout.RefundFailed })

		if r = w.refund(
			r.ID,
		); r.FailureCode != "signer_refused:no_refunds" || r.FailedAt.IsZero() ||
			w.countEvents(event.RefundFailed, r.ID) != 1 {
			t.Errorf("failed as %+v", r)
		}

		w.policy = nil
		r, err = w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		w.must(err)
		w.until(
			"the refund succeeded",
			func() bool { return w.refund(r.ID).Status == payout.RefundSucceeded },
		)
		w.chain.Fork(sim.Fork{Depth: 4, Fate: sim.ReturnToPool})
		time.Sleep(2 * time.Minute)
		w.work()

		if got := w.refund(r.ID); got.Status != payout.RefundPending || !got.SucceededAt.IsZero() {
			t.Errorf("out of its block it is %+v", got)
		}

		if got := w.invoice(inv.ID); got.Has(invoice.PartiallyRefunded) {
			t.Errorf("the invoice is %s %v", got.Status, got.Flags)
		}

		w.until(
			"the refund succeeded again",
			func() bool { return w.refund(r.ID).Status == payout.RefundSucceeded },
		)
		w.arrived(w.get(r.PayoutID))
		w.once(w.get(r.PayoutID))
	})
}

// A payment leaves the chain: refunds of it that are not signed are canceled, those of other
// payments are not.
func TestNothingIsRefundedBeforeItIsConfirmed(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{FinalDepth: 6}, func(t *testing.T, w *harness) {
		w.fund(3, 0)
		inv, at := w.invoiced()
		w.chain.Pay(at["SIM"], "SIM", milli(300))

		var paid []invoice.Payment

		w.live("the payment is seen", func() (seen bool) {
			var err error

			paid, err = internal.Of(w.engine).Store().PaymentsOfInvoices(t.Context(), []string{inv.ID})
			w.must(err)

			return len(paid) == 1
		})

		if paid[0].Status != invoice.Detected {
			t.Fatalf("the payment is %s", paid[0].Status)
		}

		for _, p := range []payout.RefundParams{{PaymentID: paid[0].ID}, {InvoiceID: inv.ID}} {
			if _, err := w.engine.Payouts.CreateRefund(
				t.Context(), w.refundTo(p),
			); fault.Code(
				err,
			) != "refund_no_payment" {
				t.Errorf("refund of %+v: %v", p, err)
			}
		}
	})
}

func TestRefundOfAnOrphanedPayment(t *testing.T) {
	inTime(
		t,
		account.Settings{ManualRelease: true},
		sim.Config{FinalDepth: 6},
		func(t *testing.T, w *harness) {
			w.fund(3, 0)

			ctx := t.Context()
			inv, at := w.invoiced()
			w.chain.Pay(at["SIM"], "SIM", milli(300))

			var paid []invoice.Payment

			confirmed := func(n int) func() bool {
				return func() bool {
					var err error

					paid, err = internal.Of(w.engine).Store().PaymentsOfInvoices(ctx, []string{inv.ID})
					w.must(err)

					return len(paid) == n &&
						!slices.ContainsFunc(
							paid, func(p invoice.Payment) bool { return p.Status != invoice.Confirmed },
						)
				}
			}
			w.live("the first confirmed", confirmed(1))
			w.pass(2 * time.Second)
			w.pass(2 * time.Second)
			w.chain.Pay(at["SIM"], "SIM", milli(400))
			w.live("the second confirmed", confirmed(2))

			// nothing is signed for now
			w.policy = func(chain.SignRequest) error { return errors.New("the vault is locked") }
			make := func(p payout.RefundParams) payout.Refund {
				r, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(p))
				w.must(err)

				return r
			}
			ofFirst := make(payout.RefundParams{PaymentID: paid[0].ID, Amount: ptr(milli(100))})
			ofSecond := make(payout.RefundParams{PaymentID: paid[1].ID, Amount: ptr(milli(100))})
			small := make(payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(milli(150))})
			large := make(payout.RefundParams{InvoiceID: inv.ID, Amount: ptr(milli(200))})

			head, err := w.chain.Head(ctx)
			w.must(err)
			w.chain.Fork(sim.Fork{Depth: head.Tip.Height - paid[1].Block.Height + 1, Fate: sim.DropOrphan})
			w.live("the second is orphaned", func() bool {
				p, err := internal.Of(w.engine).Store().PaymentByID(ctx, paid[1].ID)
				w.must(err)

				return p.Status == invoice.Orphaned
			})
			of, err := internal.Of(w.engine).Store().SettlementsOfPayments(ctx, []string{paid[1].ID})
			w.must(err)

			if len(of) != 1 || of[0].Status != settlement.Failed ||
				of[0].Reason != settlement.PaymentOrphaned {
				t.Errorf("the settlements of the orphaned payment are %+v", of)
			}

			for _, test := range []struct {
				refund payout.Refund
				want   payout.RefundStatus
			}{
				{ofFirst, payout.RefundPending},
				{ofSecond, payout.RefundCanceled},
				{small, payout.RefundPending},
				{large, payout.RefundCanceled},
			} {
				if got := w.refund(test.refund.ID); got.Status != test.want {
					t.Errorf("the refund of %s is %s, want %s", got.Amount, got.Status, test.want)
				}
			}

			w.policy = nil
			w.live("the others succeeded", func() bool {
				return w.refund(ofFirst.ID).Status == payout.RefundSucceeded &&
					w.refund(small.ID).Status == payout.RefundSucceeded
			})
			w.clean(3, 0)
		},
	)
}

func TestRefundOfASimulatedPayment(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		ctx := t.Context()
		inv, err := w.engine.Invoices.Create(
			ctx,
			invoice.CreateParams{
				Owner:   w.owner,
				Options: []invoice.OptionParams{{Asset: "SIM", Network: network, Amount: coin(1)}},
			},
		)
		w.must(err)
		_, _, err = w.engine.Invoices.Simulate(
			ctx,
			invoice.SimulateParams{Owner: w.owner, InvoiceID: inv.ID, Outcome: invoice.SimulatePaid},
		)
		w.must(err)
		_, err = w.engine.Payouts.CreateRefund(
			ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID, Destinations: []chain.Destination{}}),
		)
		wantFault(t, err, fault.Forbidden, "destination_not_allowed")
		r, err := w.engine.Payouts.CreateRefund(ctx, w.refundTo(payout.RefundParams{InvoiceID: inv.ID}))
		w.must(err)

		if r.Status != payout.RefundSucceeded || r.PayoutID != "" || !r.Simulated ||
			w.countEvents(event.RefundCreated, r.ID) != 1 ||
			w.countEvents(event.RefundSucceeded, r.ID) != 1 {
			t.Errorf("refunded as %+v", r)
		}

		if got := w.invoice(inv.ID); got.Status != invoice.Refunded {
			t.Errorf("the invoice is %s", got.Status)
		}

		if len(w.payouts()) != 0 || len(w.transfers()) != 0 {
			t.Error("money moved")
		}

		w.clean(0, 0)
	})
}
