package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file offers payments that wait too long in the mempool to txmgr, which makes a CPFP bump for those
// that are worth it.

// unsupportedPause is how long a network is not tried again after its node could not return the fees of
// mempool transactions.
const unsupportedPause = time.Hour

// bumpLoop remembers when the mempool payments of one network are offered next. Only the process that follows
// the network has one; a process that takes over offers all of them anew.
type bumpLoop struct {
	engine   *Engine
	follower *follow.Follower
	next     map[string]time.Time // by payment id
	retryAt  time.Time
}

// bumpDue offers the payments that are due. If one fails, the others are still offered.
func (l *bumpLoop) bumpDue(ctx context.Context) (did bool, err error) {
	bumper, ok := l.follower.Driver.(chain.Bumper)
	if !ok || !l.follower.Health().Following {
		return false, nil
	}

	after, on := bumper.BumpAfter()

	now := l.engine.config.Now()
	if !on || now.Before(l.retryAt) {
		return false, nil
	}

	waiting, err := l.engine.config.Store.UnminedPayments(ctx, l.follower.Driver.Network().Slug)
	if err != nil {
		return false, err
	}

	next := make(map[string]time.Time, len(waiting))
	for _, p := range waiting {
		next[p.ID] = l.next[p.ID]
	}

	l.next = next

	for _, p := range waiting {
		waited := now.Sub(p.DetectedAt)
		early := waited < after || now.Before(next[p.ID])

		waits := p.Status == invoice.Detected && p.LostAt.IsZero()
		if early || !waits || p.Simulated || p.TxHash == "" {
			continue
		}

		next[p.ID] = now.Add(bumpPause(waited))

		queued, err := l.offer(ctx, p)
		if errors.Is(err, fault.Unsupported) {
			l.retryAt = now.Add(unsupportedPause)
			return did, nil
		}

		if err != nil {
			return did, err
		}

		did = did || queued
	}

	return did, nil
}

// offer offers one payment and reports whether a transaction was queued. It returns an error only for
// fault.Unsupported, and when ctx ends.
func (l *bumpLoop) offer(ctx context.Context, p invoice.Payment) (queued bool, err error) {
	queued, err = l.engine.bump(ctx, p)

	switch log := l.engine.config.Log; {
	case errors.Is(err, fault.Unsupported):
		log.ErrorContext(
			ctx, "payments cannot be bumped, though the driver is configured to",
			"network", p.Network, "error", err,
		)

		return false, err
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		log.WarnContext(
			ctx, "a payment could not be bumped; it is tried again",
			"payment", p.ID, "network", p.Network, "error", err,
		)
	}

	return queued, nil
}

// bumpPause returns how long a payment that has waited for a time is not offered again: an eighth of it, at
// least 1 s and at most 1 min.
func bumpPause(waited time.Duration) time.Duration {
	return min(max(waited/8, time.Second), time.Minute)
}

// bump offers one payment for a CPFP bump, which the merchant's master wallet pays for.
func (e *Engine) bump(ctx context.Context, p invoice.Payment) (queued bool, err error) {
	settings, err := e.records().SettlementSettings(ctx, p.Owner.AccountID)
	if err != nil {
		return false, err
	}

	master, err := e.Transactions.MasterWallet(ctx, p.Network, settings.Index)
	if errors.Is(err, fault.Forbidden) {
		return false, nil // the signer has no such key
	}

	if err != nil {
		return false, err
	}

	return e.Transactions.Bump(ctx, txmgr.WaitingPayment{
		Owner:     p.Owner,
		PaymentID: p.ID,
		Network:   p.Network,
		Since:     p.DetectedAt,
		Coin: chain.Coin{
			Outpoint: chain.Outpoint{TxHash: p.TxHash, Vout: p.TxIndex},
			Owner:    chain.Party{Key: p.Key, Address: p.Address},
			Amount:   p.Amount,
		},
	}, master)
}
