package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// settlementsCounted and payoutsCounted index the objects that Attention may count. It leaves out old failed
// payouts.
var (
	settlementsCounted = settlements.ordered(5, func(s *settlement.Settlement) key {
		_, counted := store.SettlementAttention(*s)
		return when(counted, s.Network)
	})
	payoutsCounted = payouts.ordered(3, func(p *payout.Payout) key {
		a, counted := store.PayoutAttention(*p, time.Time{})
		return when(counted, a.Since)
	})
)

func (r *reader) Attention(ctx context.Context, failedSince time.Time) ([]health.Attention, error) {
	var all []health.Attention

	counted, err := list(ctx, r, settlementsCounted, nil, window[settlement.Settlement]{})
	if err != nil {
		return nil, err
	}

	for _, s := range counted {
		if a, ok := store.SettlementAttention(s); ok {
			all = append(all, a)
		}
	}

	sent, err := list(ctx, r, payoutsCounted, nil, window[payout.Payout]{})
	if err != nil {
		return nil, err
	}

	for _, p := range sent {
		if a, ok := store.PayoutAttention(p, failedSince); ok {
			all = append(all, a)
		}
	}

	return store.SumAttention(all), nil
}
