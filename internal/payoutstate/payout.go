package payoutstate

import (
	"github.com/seed-8ee7f392/payments/payout"
)

// Statuses returns all payout statuses.
func Statuses() []payout.Status {
	return []payout.Status{
		payout.Pending,
		payout.Processing,
		payout.Included,
		payout.Confirmed,
		payout.Failed,
	}
}

// RefundStatuses returns all refund statuses.
func RefundStatuses() []payout.RefundStatus {
	return []payout.RefundStatus{
		payout.RefundPending,
		payout.RefundSucceeded,
		payout.RefundFailed,
		payout.RefundCanceled,
	}
}
