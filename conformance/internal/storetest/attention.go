package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// testAttention counts what waits and what failed, where the store can.
func testAttention(t *testing.T, st store.Store) {
	counting, ok := st.(store.AttentionReader)
	if !ok {
		t.Skip("the store is no store.AttentionReader: Health does not show what is held or has failed")
	}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, s := range []settlement.Settlement{
			{Status: settlement.Held, Reason: settlement.Uneconomic, HeldSince: timeAt(7)},
			{Status: settlement.Held, Reason: settlement.Uneconomic, HeldSince: timeAt(5)},
			{Status: settlement.Held, Reason: settlement.InsufficientMasterBalance, HeldSince: timeAt(6)},
			{Status: settlement.Failed, Reason: settlement.TransactionFailed, FailedAt: timeAt(9)},
			{Status: settlement.Failed, Reason: settlement.PaymentOrphaned, FailedAt: timeAt(9)},
			{Status: settlement.Failed, Reason: settlement.Replanning, FailedAt: timeAt(9)},
			{Status: settlement.Pending, ReasonMessage: "wallet_frozen: why", WaitingSince: timeAt(3)},
			{Status: settlement.Releasing, ReasonMessage: "no_block: why", WaitingSince: timeAt(4)},
			{Status: settlement.Pending},
			{Status: settlement.Released, Reason: settlement.TransactionFailed},
		} {
			s.ID, s.Owner, s.Network = recordID(n), owners[n%len(owners)], "net"
			if err := tx.PutSettlements(ctx, &s); err != nil {
				return err
			}
		}

		for n, p := range []payout.Payout{
			{Status: payout.Failed, FailureCode: "stale", FailedAt: timeAt(20)},
			{Status: payout.Failed, FailureCode: "stale", FailedAt: timeAt(21)},
			{Status: payout.Failed, FailureCode: "stale", FailedAt: timeAt(19)}, // too long ago
			{Status: payout.Failed, FailureCode: "canceled", FailedAt: timeAt(20)},
			{Status: payout.Pending, ReasonMessage: "payout_unchecked: why", WaitingSince: timeAt(2)},
			{Status: payout.Processing, ReasonMessage: "no_block: why", WaitingSince: timeAt(1)},
			{Status: payout.Pending},
			{Status: payout.Confirmed, WaitingSince: timeAt(1)},
		} {
			p.ID, p.Owner, p.Network = recordID(100+n), owners[n%len(owners)], "net"
			if err := tx.PutPayout(ctx, &p); err != nil {
				return err
			}
		}

		return nil
	})

	got, err := counting.Attention(t.Context(), timeAt(20))
	if err != nil {
		t.Fatal(err)
	}

	entry := func(object, status, reason string, count, oldest, since int) health.Attention {
		return health.Attention{
			Object:  object,
			Network: "net",
			Status:  status,
			Reason:  reason,
			Count:   count,
			Oldest:  recordID(oldest),
			Since:   timeAt(since),
		}
	}
	want := []health.Attention{
		entry("payout", "failed", "stale", 2, 100, 20),
		entry("payout", "pending", "payout_unchecked", 1, 104, 2),
		entry("payout", "processing", "no_block", 1, 105, 1),
		entry("settlement", "failed", "transaction_failed", 1, 3, 9),
		entry("settlement", "held", "insufficient_master_balance", 1, 2, 6),
		entry("settlement", "held", "uneconomic", 2, 0, 5),
		entry("settlement", "pending", "wallet_frozen", 1, 6, 3),
		entry("settlement", "releasing", "no_block", 1, 7, 4),
	}

	same := func(a, b health.Attention) bool {
		equal := a.Since.Equal(b.Since)
		a.Since, b.Since = time.Time{}, time.Time{}

		return equal && a == b
	}
	if got = store.SumAttention(got); !slices.EqualFunc(got, want, same) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
