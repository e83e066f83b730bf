package invoice

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// positive reports whether some sum is above 0.
func positive(sums map[string]chain.Amount) bool {
	for _, sum := range sums {
		if !sum.IsZero() {
			return true
		}
	}

	return false
}

// refunding reports whether any refund is on its way or arrived.
func (inv *Invoice) refunding() bool { // spec D2.3.9
	return positive(inv.Refunds.Pending) || positive(inv.Refunds.Succeeded)
}

// refundedInFull reports whether refunds that succeeded cover, asset by asset, all that was received. It
// reports false while a payment waits for its blocks or may return after a fork, because refunded is a final
// status.
func (inv *Invoice) refundedInFull(payments []Payment) bool { // spec D2.3.8
	if !positive(inv.Refunds.Succeeded) {
		return false
	}

	received := map[string]chain.Amount{}

	for _, p := range payments {
		switch p.Status {
		case Detected, Orphaned:
			return false
		case Confirmed:
			received[p.AssetID] = received[p.AssetID].Add(p.Amount)
		case Dropped:
		}
	}

	for assetID, sum := range received {
		if inv.Refunds.Succeeded[assetID].Less(sum) {
			return false
		}
	}

	return len(received) > 0
}
