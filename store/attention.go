package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file defines which settlements and payouts an AttentionReader counts, so that every store counts the
// same.

// The objects of health.Attention.
const (
	settlementObject = "settlement"
	payoutObject     = "payout"
)

// SettlementAttention returns the entry of a settlement; ok is false if an AttentionReader does not count it.
func SettlementAttention(s settlement.Settlement) (a health.Attention, ok bool) {
	reason, since := string(s.Reason), time.Time{}

	switch s.Status {
	case settlement.Held:
		since = s.HeldSince
	case settlement.Failed:
		if s.Reason != settlement.PaymentOrphaned && s.Reason != settlement.Replanning {
			since = s.FailedAt
		}
	case settlement.Pending, settlement.Releasing:
		reason, since = codeOf(s.ReasonMessage), s.WaitingSince
	case settlement.Released, settlement.Reverted:
	}

	return attentionOf(settlementObject, s.Network, string(s.Status), reason, s.ID, since)
}

// PayoutAttention returns the entry of a payout; ok is false if an AttentionReader does not count it.
func PayoutAttention(p payout.Payout, failedSince time.Time) (a health.Attention, ok bool) {
	reason, since := codeOf(p.ReasonMessage), time.Time{}

	switch p.Status {
	case payout.Failed:
		if reason = p.FailureCode; reason != wallet.FailCanceled && !p.FailedAt.Before(failedSince) {
			since = p.FailedAt
		}
	case payout.Pending, payout.Processing:
		since = p.WaitingSince
	case payout.Included, payout.Confirmed:
	}

	return attentionOf(payoutObject, p.Network, string(p.Status), reason, p.ID, since)
}

func attentionOf(
	object, network, status, reason, id string,
	since time.Time,
) (a health.Attention, ok bool) {
	return health.Attention{
		Object:  object,
		Network: network,
		Status:  status,
		Reason:  reason,
		Count:   1,
		Oldest:  id,
		Since:   since,
	}, !since.IsZero()
}

// codeOf returns the code at the beginning of a reason message.
func codeOf(message string) string {
	code, _, _ := strings.Cut(message, ":")
	return code
}

// SumAttention adds up entries of the same object, network, status and reason.
func SumAttention(all []health.Attention) []health.Attention {
	slices.SortStableFunc(all, func(a, b health.Attention) int {
		return cmp.Or(
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Network, b.Network),
			cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Oldest, b.Oldest), // ids are in the order of time
		)
	})

	var sums []health.Attention

	for _, a := range all {
		last := len(sums) - 1
		if last < 0 || sums[last].Object != a.Object || sums[last].Network != a.Network ||
			sums[last].Status != a.Status || sums[last].Reason != a.Reason {
			sums = append(sums, a)
			continue
		}

		sums[last].Count += a.Count
		if a.Since.Before(sums[last].Since) {
			sums[last].Since = a.Since
		}
	}

	return sums
}
