package invoicestate

import (
	"maps"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// RefundTransition is a transition of a refund.
type RefundTransition string

// The transitions of a refund: it begins as pending, and then succeeds or fails (or is canceled). A succeeded
// refund is reversed, that is pending again, if a reorganisation removes its transaction.
const (
	RefundPending   RefundTransition = "pending"
	RefundSucceeded RefundTransition = "succeeded"
	RefundFailed    RefundTransition = "failed"
	RefundReversed  RefundTransition = "reversed"
)

// RefundChange is one transition of one refund of an invoice.
type RefundChange struct {
	InvoiceID, AssetID string
	Amount             chain.Amount // base units of the asset
	Move               RefundTransition
}

// Refund applies a refund's transition and returns the resulting events. Each transition is applied once, in
// the transaction that makes it. A transition of more than the sums hold is fault.State and changes nothing.
func Refund(
	inv *invoice.Invoice,
	change RefundChange,
	payments []invoice.Payment,
	now time.Time,
) ([]event.Type, error) {
	pending, succeeded := maps.Clone(inv.Refunds.Pending), maps.Clone(inv.Refunds.Succeeded)
	if pending == nil {
		pending = map[string]chain.Amount{}
	}

	if succeeded == nil {
		succeeded = map[string]chain.Amount{}
	}

	var ok bool

	switch change.Move {
	case RefundPending:
		ok = addTo(pending, change)
	case RefundSucceeded:
		ok = subtractFrom(pending, change) && addTo(succeeded, change)
	case RefundFailed:
		ok = subtractFrom(pending, change)
	case RefundReversed:
		ok = subtractFrom(succeeded, change) && addTo(pending, change)
	default:
		return nil, fault.New(fault.Invalid, "refund_move_unknown", "a refund cannot become %q", change.Move)
	}

	if !ok {
		return nil, fault.New(
			fault.State, "refund_unknown",
			"invoice %s has no refund of %s of asset %s that could become %s",
			inv.ID, change.Amount, change.AssetID, change.Move,
		)
	}

	inv.Refunds = invoice.Refunds{Pending: pending, Succeeded: succeeded}

	return inv.Recompute(payments, now), nil
}

// addTo adds the amount of a refund to the sum of its asset. It reports false on overflow.
func addTo(sums map[string]chain.Amount, change RefundChange) bool {
	sum, ok := sums[change.AssetID].AddOK(change.Amount)
	sums[change.AssetID] = sum

	return ok
}

// subtractFrom subtracts the amount of a refund from the sum of its asset. It reports false if the sum is
// less.
func subtractFrom(sums map[string]chain.Amount, change RefundChange) bool {
	sum := sums[change.AssetID]
	if sum.Less(change.Amount) {
		return false
	}

	if sums[change.AssetID] = sum.Sub(change.Amount); sum == change.Amount {
		delete(sums, change.AssetID)
	}

	return true
}
