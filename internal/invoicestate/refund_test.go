package invoicestate

import (
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// paidInvoice is a fiat invoice of 100 with one option of 2 decimals at a rate of 1, and the payment that paid it.
func paidInvoice(t *testing.T) (invoice.Invoice, []invoice.Payment) {
	t.Helper()

	inv := invoice.Invoice{
		ID:       "i",
		Kind:     invoice.Fiat,
		Status:   invoice.Open,
		Currency: "EUR",
		Price:    decimal.NewFromInt(100),
		Options: []invoice.Option{
			{
				ID:              "o",
				Network:         "n",
				AssetID:         "x",
				Decimals:        2,
				DisplayDecimals: 2,
				Rate:            decimal.NewFromInt(1),
				AmountDue:       chain.Units(10_000),
				Address:         "addr",
				QuoteExpiresAt:  now.Add(time.Hour),
			},
		},
		SelectedOptionID:      "o",
		ExpiresAt:             now.Add(24 * time.Hour),
		PreSelectionExpiresAt: now.Add(2 * time.Hour),
		CreatedAt:             now,
	}
	payments := []invoice.Payment{paying("1", 10_000)}

	if inv.Recompute(payments, now); inv.Status != invoice.Paid {
		t.Fatalf("the invoice is %s, want %s", inv.Status, invoice.Paid)
	}

	return inv, payments
}

// paying is a confirmed payment to paidInvoice's option.
func paying(id string, cents uint64) invoice.Payment {
	return invoice.Payment{
		ID:          id,
		InvoiceID:   "i",
		OptionID:    "o",
		AssetID:     "x",
		Status:      invoice.Confirmed,
		Amount:      chain.Units(cents),
		Decimals:    2,
		Rate:        decimal.NewFromInt(1),
		Credit:      decimal.New(int64(cents), -2),
		ConfirmedAt: now,
		Block:       blockA,
	}
}

func TestRefundUnderWayIsNoRefundYet(t *testing.T) {
	inv, payments := paidInvoice(t)
	all := inv.Options[0].AmountPaid
	part := all.Share(chain.Units(1), chain.Units(4))
	move := func(amount chain.Amount, m RefundTransition) {
		t.Helper()

		change := RefundChange{AssetID: "x", Amount: amount, Move: m}
		if _, err := Refund(&inv, change, payments, now); err != nil {
			t.Fatal(err)
		}
	}

	move(part, RefundPending)
	move(part, RefundSucceeded)
	move(all.Sub(part), RefundPending)

	if inv.Status != invoice.Paid || !inv.Has(invoice.PartiallyRefunded) {
		t.Errorf("a quarter has arrived and the rest is under way: %s %v", inv.Status, inv.Flags)
	}

	move(all.Sub(part), RefundSucceeded)

	if inv.Status != invoice.Refunded {
		t.Errorf("all has arrived: %s", inv.Status)
	}
}

// A fork takes a payment, and shows it again in the same transaction or later: what was refunded before is not all
// then. The same fork may take the refund.
func TestNothingIsRefundedInFullWhileAPaymentWaits(t *testing.T) {
	inv, payments := paidInvoice(t)
	change := RefundChange{AssetID: "x", Amount: inv.Options[0].AmountPaid, Move: RefundPending}

	second := paying("2", 100)
	payments = append(payments, second)
	inv.Recompute(payments, now)

	for _, m := range []RefundTransition{RefundPending, RefundSucceeded} {
		change.Move = m
		if _, err := Refund(&inv, change, payments, now); err != nil {
			t.Fatal(err)
		}
	}

	for _, status := range []invoice.PaymentStatus{invoice.Orphaned, invoice.Detected} {
		payments[len(payments)-1].Status = status
		if inv.Recompute(payments, now); inv.Status == invoice.Refunded {
			t.Fatalf("it is refunded while a payment is %s", status)
		}
	}

	payments[len(payments)-1].Status = invoice.Dropped
	if inv.Recompute(payments, now); inv.Status != invoice.Refunded {
		t.Errorf("the payment is gone, and what is left was refunded: %s", inv.Status)
	}
}

// What was refunded in full while its payment waited, or another, is refunded as soon as none does: its merchant
// never reads that it is paid again.
func TestRefundedInFullOnceNoPaymentWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		waits invoice.PaymentStatus // of the payment that paid, while its refund succeeds
		ends  invoice.PaymentStatus // of it and the second payment, which was detected meanwhile
		want  string
	}{
		{"a second payment is dropped", invoice.Confirmed, invoice.Dropped, "invoice.refunded"},
		{"both confirm", invoice.Detected, invoice.Confirmed, "invoice.refunded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, payments := paidInvoice(t)
			payments[0].Amount, payments[0].Credit = chain.Units(4_000), decimal.NewFromInt(40)
			payments[0].Status = c.waits

			second := paying("2", 6_000)
			second.Status = invoice.Detected
			payments = append(payments, second)
			inv.Recompute(payments, now)

			change := RefundChange{AssetID: "x", Amount: chain.Units(4_000), Move: RefundPending}
			if c.ends == invoice.Confirmed {
				change.Amount = chain.Units(10_000)
			}

			for _, m := range []RefundTransition{RefundPending, RefundSucceeded} {
				change.Move = m
				if _, err := Refund(&inv, change, payments, now); err != nil {
					t.Fatal(err)
				}
			}

			if inv.Status != invoice.Pending {
				t.Fatalf("a payment waits, and the invoice is %s", inv.Status)
			}

			payments[0].Status, payments[1].Status = invoice.Confirmed, c.ends

			events := inv.Recompute(payments, now)
			if got := fmt.Sprint(events); inv.Status != invoice.Refunded || got != "["+c.want+"]" {
				t.Errorf("the invoice is %s, events %s", inv.Status, got)
			}
		})
	}
}
