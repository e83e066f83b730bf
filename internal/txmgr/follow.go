package txmgr

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// observation is what the network returned for all attempts of one transaction.
type observation struct {
	// hash is the attempt that is in a block, with its status; else empty.
	hash   string
	status chain.TxStatus
	// pooled is the newest attempt that waits for a block; else empty.
	pooled string
	// terminal is set when every attempt is proven dead: conflict if any is, else expired.
	terminal chain.TerminalReason
}

// observe looks up every attempt, newest first: an earlier one may still be included.
func (d *walletWorker) observe(ctx context.Context, t wallet.Transaction) (observation, error) {
	var s observation

	dead, conflict := 0, false

	for i := len(t.Attempts) - 1; i >= 0; i-- {
		signed := t.Attempts[i].Signed

		status, err := d.sender.Status(ctx, signed)
		if err != nil {
			return observation{}, err
		}

		switch status.State {
		case chain.TxIncluded:
			return observation{hash: signed.TxHash, status: status}, nil
		case chain.TxPooled:
			if s.pooled == "" {
				s.pooled = signed.TxHash
			}
		case chain.TxDead:
			dead++
			conflict = conflict || status.Reason != chain.ReasonExpired
		case chain.TxUnknown:
			// It proves nothing; the attempt is looked up again.
		}
	}

	if dead == len(t.Attempts) {
		s.terminal = chain.ReasonExpired
		if conflict {
			s.terminal = chain.ReasonConflict
		}
	}

	return s, nil
}

// follow moves a signed transaction to the state that the network proves.
func (d *walletWorker) follow(ctx context.Context, t wallet.Transaction) error {
	s, err := d.observe(ctx, t)
	if err != nil {
		return err
	}

	if s.hash != "" {
		return d.recordInclusion(ctx, t, s)
	}

	if t.State == wallet.Included || t.State == wallet.Confirmed {
		gone, err := d.blockReplaced(ctx, t.Block)
		if err != nil || !gone {
			// the node lags, or lost its index: it claims nothing
			return errors.Join(err, d.update(ctx, t.ID))
		}

		d.logLostBlock(ctx, t)

		if err := d.update(ctx, t.ID, (*wallet.Transaction).Retract); err != nil {
			return err
		}

		if s.pooled != "" {
			return nil
		}

		return d.broadcast(ctx, t.ID, t.LastAttempt().Signed)
	}

	if s.terminal != "" {
		return d.terminate(ctx, t, s.terminal)
	}

	if err := d.recordPooled(ctx, t, s.pooled); err != nil {
		return err
	}

	return d.replace(ctx, t, s.pooled != "")
}

// recordPooled records that the network has an attempt, or broadcasts the last one when it has none.
func (d *walletWorker) recordPooled(ctx context.Context, t wallet.Transaction, pooled string) error {
	if pooled == "" {
		return d.broadcast(ctx, t.ID, t.LastAttempt().Signed)
	}

	at := d.now()
	taken := func(t *wallet.Transaction) error { return t.RecordAccepted(pooled, at) }

	return d.update(ctx, t.ID, taken)
}

// logLostBlock logs that the block of a transaction left the chain.
func (o *Manager) logLostBlock(ctx context.Context, t wallet.Transaction) {
	o.config.Log.WarnContext(
		ctx, "the block of a transaction left the chain",
		"transaction", t.ID, "network", t.Network, "height", t.Block.Height, "was", string(t.State),
	)
}

// recordInclusion records the block that holds an attempt, and its finality. If the record changed since
// it was read (a fork was applied), the observation may be older than the fork: it is dropped, and the
// next look decides.
func (d *walletWorker) recordInclusion(ctx context.Context, t wallet.Transaction, s observation) error {
	moves := []move{
		func(now *wallet.Transaction) error {
			if now.Version != t.Version {
				return refuse(*now, "be included by what was seen before it was moved")
			}

			return nil
		},
	}
	if t.State == wallet.Confirmed && (t.Block.Hash != s.status.Block.Hash || t.TxHash != s.hash) {
		moves = append(moves, (*wallet.Transaction).Retract)
	}

	moves = append(moves, func(t *wallet.Transaction) error { return t.Include(s.hash, s.status) })

	if s.status.Final {
		if s.status.Reverted {
			moves = append(moves, fail(wallet.FailReverted))
		} else {
			moves = append(moves, (*wallet.Transaction).Confirm)
		}
	}

	return d.update(ctx, t.ID, moves...)
}

// blockReplaced reports whether another block has the height of this one. A node that is not that far
// yet, or has pruned the block, proves nothing.
func (d *walletWorker) blockReplaced(ctx context.Context, block chain.Ref) (bool, error) {
	at, err := d.driver.RefAt(ctx, block.Height)
	if errors.Is(err, fault.NotFound) || errors.Is(err, fault.Stopped) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	return at.Hash != block.Hash, nil
}

// terminate handles a transaction of which no attempt can be included any more. A conflict fails it.
// Expired bytes are signed anew until GiveUpAt, at most maxAttempts times: the old ones cannot be
// included as well.
func (d *walletWorker) terminate(
	ctx context.Context,
	t wallet.Transaction,
	reason chain.TerminalReason,
) error {
	if waits, err := d.outcomeWaits(ctx, t); err != nil {
		return err
	} else if waits {
		return d.update(ctx, t.ID)
	}

	if reason == chain.ReasonConflict {
		return d.update(ctx, t.ID, fail(wallet.FailConflict))
	}

	if len(t.Attempts) >= maxAttempts || t.Stale(d.now()) {
		return d.update(ctx, t.ID, fail(wallet.FailExpired))
	}

	if stopped, err := d.signingStopped(ctx, t); err != nil {
		return err
	} else if stopped {
		return d.update(ctx, t.ID)
	}

	order := t.Order
	order.Nonce = t.Nonce

	a, err := d.makeAttempt(ctx, t, order)
	if err == nil {
		err = d.storeAttempt(ctx, t, a)
	}

	switch {
	case err == nil:
		return d.broadcast(ctx, t.ID, a.Signed)
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unsupported), errors.Is(err, fault.Forbidden):
		return d.update(ctx, t.ID, fail(wallet.FailExpired))
	}

	return err
}
