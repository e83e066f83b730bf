package invoice

import (
	"maps"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// RefundMove says what became of a refund.
type RefundMove string

// The moves of a refund: it begins as pending, and then succeeds or fails (or is canceled). A refund that had
// succeeded is reversed, that is pending again, when a reorganisation takes its transaction back.
const (
	RefundPending   RefundMove = "pending"
	RefundSucceeded RefundMove = "succeeded"
	RefundFailed    RefundMove = "failed"
	RefundReversed  RefundMove = "reversed"
)

// RefundFact tells an invoice of one move of one of its refunds.
type RefundFact struct {
	InvoiceID, AssetID string
	Amount             chain.Amount // base units of the asset
	Move               RefundMove
}

// Refund books a refund's move and returns the events of what follows. Facts come once each, from inside the
// transaction that moves the refund. A move of more than there is to move is fault.State and changes nothing.
func (inv *Invoice) Refund(fact RefundFact, payments []Payment, now time.Time) ([]event.Type, error) {
	pending, succeeded := maps.Clone(inv.Refunds.Pending), maps.Clone(inv.Refunds.Succeeded)
	if pending == nil {
		pending = map[string]chain.Amount{}
	}

	if succeeded == nil {
		succeeded = map[string]chain.Amount{}
	}

	var ok bool

	switch fact.Move {
	case RefundPending:
		ok = put(pending, fact)
	case RefundSucceeded:
		ok = take(pending, fact) && put(succeeded, fact)
	case RefundFailed:
		ok = take(pending, fact)
	case RefundReversed:
		ok = take(succeeded, fact) && put(pending, fact)
	default:
		return nil, fault.New(fault.Invalid, "refund_move_unknown", "a refund cannot become %q", fact.Move)
	}

	if !ok {
		return nil, fault.New(
			fault.State, "refund_unknown",
			"invoice %s has no refund of %s of asset %s that could become %s",
			inv.ID, fact.Amount, fact.AssetID, fact.Move,
		)
	}

	inv.Refunds = Refunds{Pending: pending, Succeeded: succeeded}

	return inv.Recompute(payments, now), nil
}

func put(sums map[string]chain.Amount, fact RefundFact) bool {
	sum, ok := sums[fact.AssetID].AddOK(fact.Amount)
	sums[fact.AssetID] = sum

	return ok
}

func take(sums map[string]chain.Amount, fact RefundFact) bool {
	sum := sums[fact.AssetID]
	if sum.Less(fact.Amount) {
		return false
	}

	if sums[fact.AssetID] = sum.Sub(fact.Amount); sum == fact.Amount {
		delete(sums, fact.AssetID)
	}

	return true
}

func positive(sums map[string]chain.Amount) bool {
	for _, sum := range sums {
		if !sum.IsZero() {
			return true
		}
	}

	return false
}

// refunding reports whether any refund is on its way or arrived.
func (inv *Invoice) refunding() bool {
	return positive(inv.Refunds.Pending) || positive(inv.Refunds.Succeeded)
}

// refundedInFull reports whether refunds that succeeded cover, asset by asset, all that was received.
func (inv *Invoice) refundedInFull(payments []Payment) bool {
	if inv.Status == Open || inv.Status == Pending || !positive(inv.Refunds.Succeeded) {
		return false
	}

	received := map[string]chain.Amount{}

	for _, p := range payments {
		if p.Status == Confirmed {
			received[p.AssetID] = received[p.AssetID].Add(p.Amount)
		}
	}

	for assetID, sum := range received {
		if inv.Refunds.Succeeded[assetID].Less(sum) {
			return false
		}
	}

	return len(received) > 0
}
