package txmgr

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// This file follows transactions on networks whose blocks are not read (Solana by address). There the
// driver's answers about a hash decide.

// observation is the network's answer about all attempts of one transaction.
type observation struct {
	// hash is the attempt that is in a block, with its status; else "".
	hash   string
	status chain.TxStatus
	// pooled is the newest attempt that waits for a block; else "".
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

// followPolled moves a signed transaction to the state that the driver's answers prove.
func (d *walletWorker) followPolled(ctx context.Context, t wallet.Transaction) error {
	s, err := d.observe(ctx, t)
	if err != nil {
		return err
	}

	if s.hash != "" {
		return d.recordPolledInclusion(ctx, t, s)
	}

	if t.State == wallet.Included || t.State == wallet.Confirmed {
		gone, err := d.blockReplaced(ctx, t.Block)
		if err != nil || !gone {
			// the node lags, or lost its index: it claims nothing
			return errors.Join(err, d.update(ctx, t.ID))
		}

		d.logLostBlock(ctx, t)

		if err := d.update(ctx, t.ID, walletstate.Retract); err != nil {
			return err
		}

		if s.pooled != "" {
			return nil
		}

		return d.broadcast(ctx, t.ID, walletstate.LastAttempt(&t).Signed)
	}

	if s.terminal != "" {
		return d.terminate(ctx, t, terminalProof{reason: s.terminal})
	}

	if err := d.recordPooled(ctx, t, s.pooled); err != nil {
		return err
	}

	return d.replace(ctx, t, s.pooled != "")
}

// recordPolledInclusion records the block that holds an attempt, and its finality. If the record changed
// since it was read, the observation is dropped and made again at the next look.
func (d *walletWorker) recordPolledInclusion(
	ctx context.Context,
	t wallet.Transaction,
	s observation,
) error {
	moves := []move{
		func(now *wallet.Transaction) error {
			if now.Version != t.Version {
				return refuse(*now, "be included by what was seen before it was moved")
			}

			return nil
		},
	}
	if t.State == wallet.Confirmed && (t.Block.Hash != s.status.Block.Hash || t.TxHash != s.hash) {
		moves = append(moves, walletstate.Retract)
	}

	moves = append(
		moves,
		func(t *wallet.Transaction) error { return walletstate.Include(t, s.hash, s.status) },
	)

	if s.status.Final {
		moves = append(moves, end(s.status.Reverted))
	}

	return d.update(ctx, t.ID, moves...)
}

// blockReplaced reports whether another block has the height of this one. A node that has not reached that
// height, or has pruned the block, proves nothing.
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
