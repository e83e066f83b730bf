package invoice

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

func TestUSDValueIsRoundedDown(t *testing.T) {
	p := payment("unpriced")
	p.Amount, p.Decimals = chain.Units(1), 2

	// 0.01 × 0.00000199 = 0.0000000199.
	if _, err := p.Price(decimal.RequireFromString("0.00000199"), decimal.NewFromInt(1)); err != nil {
		t.Fatal(err)
	}

	if want := decimal.RequireFromString("0.00000001"); !p.USDValue.Valid || !p.USDValue.Decimal.Equal(want) {
		t.Errorf("the value is %v, want %s", p.USDValue, want)
	}
}

func TestToleratedShortfallIsRoundedDown(t *testing.T) {
	for cents, want := range map[uint64]Status{
		989: Underpaid, // 1 % of 999 is 9.99: nine may be missing, ten may not
		990: Paid,
	} {
		inv := owed()
		inv.Kind, inv.Price, inv.ToleranceBPS = Crypto, decimal.Decimal{}, 100
		inv.Options[0].AmountDue = chain.Units(999)

		if inv.Recompute([]Payment{paying("1", Confirmed, cents)}, now); inv.Status != want {
			t.Errorf("%d of 999: %s, want %s", cents, inv.Status, want)
		}
	}
}

func TestRefundUnderWayIsNoRefundYet(t *testing.T) {
	inv, payments := settle(t, Paid)
	all := inv.Options[0].AmountPaid
	part := all.Share(chain.Units(1), chain.Units(4))
	move := func(amount chain.Amount, m RefundTransition) {
		t.Helper()

		change := RefundChange{AssetID: "x", Amount: amount, Move: m}
		if _, err := inv.Refund(change, payments, now); err != nil {
			t.Fatal(err)
		}
	}

	move(part, RefundPending)
	move(part, RefundSucceeded)
	move(all.Sub(part), RefundPending)

	if inv.Status != Paid || !inv.Has(PartiallyRefunded) {
		t.Errorf("a quarter has arrived and the rest is under way: %s %v", inv.Status, inv.Flags)
	}

	move(all.Sub(part), RefundSucceeded)

	if inv.Status != Refunded {
		t.Errorf("all has arrived: %s", inv.Status)
	}
}

// A fork takes a payment and shows it again in one transaction: what was refunded before is not all then.
func TestNothingIsRefundedInFullWhileAPaymentWaits(t *testing.T) {
	inv, payments := settle(t, Paid)
	change := RefundChange{AssetID: "x", Amount: inv.Options[0].AmountPaid, Move: RefundPending}

	second := paying("2", Confirmed, 100)
	payments = append(payments, second)
	inv.Recompute(payments, now)

	for _, m := range []RefundTransition{RefundPending, RefundSucceeded} {
		change.Move = m
		if _, err := inv.Refund(change, payments, now); err != nil {
			t.Fatal(err)
		}
	}

	payments[len(payments)-1].Status = Detected
	if inv.Recompute(payments, now); inv.Status == Refunded {
		t.Error("it is refunded while a payment waits")
	}

	payments[len(payments)-1].Status = Dropped
	if inv.Recompute(payments, now); inv.Status != Refunded {
		t.Errorf("the payment is gone, and what is left was refunded: %s", inv.Status)
	}
}
