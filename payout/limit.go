package payout

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// defaultPerHour is how many payouts an account may create within an hour where it sets nothing.
const defaultPerHour = 10 // spec 8.2

// checkLimit refuses a payout above the number that its account may create within an hour. Payouts of one account
// are counted one after another.
func (p Prepared) checkLimit(ctx context.Context, tx Tx, now time.Time) error {
	if p.limit <= 0 {
		return nil
	}

	owner := p.payout.Owner
	if err := tx.LockAccount(ctx, owner.AccountID); err != nil {
		return err
	}

	n, err := tx.PayoutsSince(ctx, owner, now.Add(-time.Hour))
	if err != nil || n < p.limit {
		return err
	}

	e := fault.New(
		fault.Limited, "payout_limit_exceeded",
		"%d payouts were created within the last hour, as many as this account may",
		n,
	)
	e.RetryAfter = 10 * time.Minute

	return e
}
