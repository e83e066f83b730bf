package payout

import (
	"context"
	"sort"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// defaultPerHour is how many payouts an account without a limit of its own may create within an hour.
const defaultPerHour = 10 // spec 8.2

// checkLimit refuses a payout above the number that its account may create within an hour. Payouts of one account
// are counted one after another.
func (p Prepared) checkLimit(ctx context.Context, tx Tx, now time.Time) error {
	if p.limit <= 0 {
		return nil
	}

	if err := tx.LockAccount(ctx, p.payout.Owner.AccountID); err != nil {
		return err
	}

	n, err := p.countHour(ctx, tx, now)
	if err != nil || n < p.limit {
		return err
	}

	wait, err := p.untilAllowed(ctx, tx, now)
	if err != nil {
		return err
	}

	e := fault.New(
		fault.Limited, "payout_limit_exceeded",
		"%d payouts were created within the last hour, as many as this account may: send it again later",
		n,
	)
	e.RetryAfter = wait

	return e
}

// countHour returns how many payouts the account created within the hour before a time.
func (p Prepared) countHour(ctx context.Context, tx Tx, at time.Time) (int, error) {
	return tx.PayoutsSince(ctx, p.payout.Owner, at.Add(-time.Hour))
}

// untilAllowed returns the wait, in whole seconds, until the hour before has fewer payouts than the limit.
func (p Prepared) untilAllowed(ctx context.Context, tx Tx, now time.Time) (wait time.Duration, err error) {
	seconds := sort.Search(int(time.Hour/time.Second), func(s int) bool {
		if err != nil {
			return true
		}

		var n int

		n, err = p.countHour(ctx, tx, now.Add(time.Duration(s)*time.Second))

		return n < p.limit
	})

	return time.Duration(seconds) * time.Second, err
}
