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

// This file offers payments that wait in the pool for too long to the outbox, which lifts those
// that are worth it (chain/send, lift.go).

// unliftable is for how long a network is left alone whose node cannot tell what waiting transactions pay.
const unliftable = time.Hour

// lifts is when the waiting payments of one network are looked at next. It lives in one process,
// the one that follows the network: another one that takes over looks at all of them.
type bumpLoop struct {
	engine   *Engine
	follower *follow.Follower
	next     map[string]time.Time // by payment id
	again    time.Time
}

// step offers the payments whose time has come. One that fails does not keep the others.
func (l *bumpLoop) step(ctx context.Context) (did bool, err error) {
	lifter, can := l.follower.Driver.(chain.Bumper)
	if !can || !l.follower.Health().Following {
		return false, nil
	}

	after, on := lifter.BumpAfter()

	now := l.engine.config.Now()
	if !on || now.Before(l.again) {
		return false, nil
	}

	waiting, err := l.engine.config.Store.PoolPayments(ctx, l.follower.Driver.Network().Slug)
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
		if p.Simulated || p.TxHash == "" || !p.LostAt.IsZero() || waited < after || now.Before(next[p.ID]) {
			continue
		}

		next[p.ID] = now.Add(bumpPause(waited))

		queued, err := l.engine.bump(ctx, p)
		if errors.Is(err, fault.Unsupported) {
			l.again = now.Add(unliftable)
			l.engine.config.Log.ErrorContext(
				ctx, "payments cannot be lifted, though the driver is configured to",
				"network", p.Network, "error", err,
			)

			return did, nil
		}

		if ctx.Err() != nil {
			return did, ctx.Err()
		}

		if err != nil {
			l.engine.config.Log.WarnContext(
				ctx, "a payment could not be lifted; it is tried again",
				"payment", p.ID, "network", p.Network, "error", err,
			)
		}

		did = did || queued
	}

	return did, nil
}

// liftPause is how long a payment that has waited for a time is not looked at again: an eighth of
// it, from a second to a minute.
func bumpPause(waited time.Duration) time.Duration {
	return min(max(waited/8, time.Second), time.Minute)
}

// lift offers one payment. The merchant's master wallet pays.
func (e *Engine) bump(ctx context.Context, p invoice.Payment) (queued bool, err error) {
	settings, err := e.config.Store.SettlementSettings(ctx, p.Owner.AccountID)
	if err != nil {
		return false, err
	}

	master, err := e.Transactions.Master(ctx, p.Network, settings.Index)
	if errors.Is(err, fault.Forbidden) {
		return false, nil // the signer has no such key
	}

	if err != nil {
		return false, err
	}

	return e.Transactions.Bump(ctx, txmgr.Waiting{
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
