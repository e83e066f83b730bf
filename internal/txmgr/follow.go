package txmgr

import (
	"context"
	"errors"
	"math"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// follow moves a signed transaction to the state that the blocks prove, as far as they were read.
func (d *walletWorker) follow(ctx context.Context, t wallet.Transaction) error {
	if t.State == wallet.Failed {
		return d.followFailed(ctx, t)
	}

	if !d.readsBlocks(d.driver) {
		return d.followPolled(ctx, t)
	}

	e, err := d.readEvidence(ctx, t)
	if err != nil {
		return err
	}

	if e.row.TxHash != "" {
		return d.recordInclusion(ctx, t, e)
	}

	if t.State == wallet.Included || t.State == wallet.Confirmed {
		if e.cursor.At.Height < t.Block.Height {
			return d.update(ctx, t.ID) // read again from below its block
		}

		d.logLostBlock(ctx, t)

		err := d.updateProven(ctx, t, wallet.Outgoing{}, nil, walletstate.Retract)
		if err != nil {
			return err
		}

		return d.broadcast(ctx, t.ID, walletstate.LastAttempt(&t).Signed)
	}

	proof, dead, err := d.proveTerminal(ctx, t, e.cursor)
	if err != nil {
		return err
	}

	if dead {
		return d.terminate(ctx, t, proof)
	}

	if over, err := d.isBelowHistoryEnd(ctx, t, e.cursor); err != nil {
		return err
	} else if over {
		return d.updateProven(ctx, t, wallet.Outgoing{}, nil, fail(wallet.FailConflict))
	}

	return d.followWaiting(ctx, t)
}

// followWaiting looks after a transaction that is in no block: the network must have its bytes, no nonce
// below it may be free, and the bytes must pay enough.
func (d *walletWorker) followWaiting(ctx context.Context, t wallet.Transaction) error {
	known, state, err := d.lookUp(ctx, t)
	if err != nil {
		return err
	}

	since, lost, err := d.lostSince(ctx, t, known)
	if err != nil {
		return err
	}

	lost = lost && sweepsCoins(t)
	if lost && d.now().Sub(since) >= d.config.CancelAfter {
		return d.giveUpLost(ctx, t)
	}

	if err := d.recordPooled(ctx, t, known); err != nil {
		return err
	}

	if state == chain.TxIncluded || lost {
		return nil // provisional: a block that is read will prove it
	}

	if err := d.fillGaps(ctx, t); err != nil {
		return err
	}

	return d.replace(ctx, t, known != "")
}

// lookUp returns the newest attempt that the node has, in its pool or a block; "" if it has none.
func (d *walletWorker) lookUp(
	ctx context.Context,
	t wallet.Transaction,
) (hash string, state chain.TxState, err error) {
	for i := len(t.Attempts) - 1; i >= 0; i-- {
		signed := t.Attempts[i].Signed

		status, err := d.sender.Status(ctx, signed)
		if err != nil {
			return "", chain.TxUnknown, err
		}

		switch status.State {
		case chain.TxIncluded:
			return signed.TxHash, chain.TxIncluded, nil
		case chain.TxPooled:
			if hash == "" {
				hash, state = signed.TxHash, chain.TxPooled
			}
		case chain.TxUnknown, chain.TxDead:
			// It proves nothing.
		}
	}

	return hash, state, nil
}

// recordPooled records that the network has an attempt. If it has none, recordPooled broadcasts the newest
// one that can be included.
func (d *walletWorker) recordPooled(ctx context.Context, t wallet.Transaction, pooled string) error {
	if pooled == "" {
		signed, err := d.newestAlive(ctx, t)
		if err != nil {
			return err
		}

		return d.broadcast(ctx, t.ID, signed)
	}

	at := d.now()
	taken := func(t *wallet.Transaction) error { return walletstate.RecordAccepted(t, pooled, at) }

	return d.update(ctx, t.ID, taken)
}

// newestAlive returns the newest attempt that no block excludes, as far as blocks were read; the last attempt
// if there is none. A fork may restore the parents of earlier bytes, and remove those of bytes that were
// built again.
func (d *walletWorker) newestAlive(ctx context.Context, t wallet.Transaction) (chain.Signed, error) {
	last := walletstate.LastAttempt(&t).Signed
	if d.hasNonces() {
		return last, nil
	}

	rows, err := d.rowsOfAttempts(ctx, t)
	if err != nil {
		return chain.Signed{}, err
	}

	for i := len(t.Attempts) - 1; i >= 0; i-- {
		signed := t.Attempts[i].Signed
		if _, dead := rival(d.usedUp(signed), rows, math.MaxUint64); !dead {
			return signed, nil
		}
	}

	return last, nil
}

// logLostBlock logs that the block of a transaction left the chain.
func (o *Manager) logLostBlock(ctx context.Context, t wallet.Transaction) {
	o.config.Log.WarnContext(
		ctx, "the block of a transaction left the chain",
		"transaction", t.ID, "network", t.Network, "height", t.Block.Height, "was", string(t.State),
	)
}

// recordInclusion records the block of an attempt's row, and its finality. Fee and transfers come from the
// node's answer about the same block. Until it gives one, nothing is recorded.
func (d *walletWorker) recordInclusion(ctx context.Context, t wallet.Transaction, e evidence) error {
	var moves []move

	recorded := t.TxHash == e.row.TxHash && t.Block.Hash == e.row.Block.Hash
	if !recorded {
		status, ok, err := d.statusIn(ctx, t, e.row)
		if err != nil {
			return err
		}

		if !ok {
			d.logWait(ctx, t, "the node does not show it in the block that holds it", true)
			return d.update(ctx, t.ID)
		}

		if t.State == wallet.Confirmed {
			moves = append(moves, walletstate.Retract)
		}

		moves = append(
			moves,
			func(t *wallet.Transaction) error { return walletstate.Include(t, e.row.TxHash, status) },
		)
	}

	open := t.State != wallet.Confirmed || !recorded
	if open && scanstate.IsFinal(e.cursor, d.network, d.network.Confirmations, e.row.Block) {
		stands, err := d.isCanonical(ctx, t, e.cursor.At)
		if err != nil {
			return err
		}

		if stands && d.isAgreed(ctx, t, e.row.Block) {
			moves = append(moves, end(e.row.Failed))
		}
	}

	if len(moves) > 0 {
		d.waits.Delete(t.ID)
	}

	return d.updateProven(ctx, t, e.row, nil, moves...)
}

// end returns the move that ends an included transaction at finality.
func end(reverted bool) move {
	if reverted {
		return fail(wallet.FailReverted)
	}

	return walletstate.Confirm
}

// terminate handles a transaction without an attempt that can still be included. A conflict fails it. Expired
// bytes are signed anew until GiveUpAt, at most maxAttempts times in all; the old bytes can never be included
// as well. If the money for a sweep is missing then, the sweep fails and is planned again: its first plan may
// lack a top-up that it needs.
func (d *walletWorker) terminate(ctx context.Context, t wallet.Transaction, proof terminalProof) error {
	if waits, err := d.outcomeWaits(ctx, t); err != nil {
		return err
	} else if waits {
		return d.update(ctx, t.ID)
	}

	if proof.reason == chain.ReasonConflict {
		return d.terminateConflict(ctx, t, proof)
	}

	if len(t.Attempts) >= maxAttempts || walletstate.Stale(&t, d.now()) {
		return d.giveUp(ctx, t, wallet.FailExpired)
	}

	if stopped, err := d.signingStopped(ctx, t); err != nil {
		return err
	} else if stopped {
		return d.update(ctx, t.ID)
	}

	order := t.Order
	last := walletstate.LastAttempt(&t).Signed
	order.Nonce, order.Expired = t.Nonce, &last

	a, err := d.makeAttempt(ctx, t, order)
	if err == nil {
		err = d.storeAttempt(ctx, t, a)
	}

	switch {
	case err == nil:
		return d.broadcast(ctx, t.ID, a.Signed)
	case unsafeToken(t, err):
		return d.giveUp(ctx, t, wallet.FailTokenUnsafe)
	case errors.Is(err, fault.Invalid), errors.Is(err, fault.Unsupported), errors.Is(err, fault.Forbidden):
		return d.giveUp(ctx, t, wallet.FailExpired)
	case errors.Is(err, fault.State) && t.Kind == wallet.Sweep:
		return d.giveUp(ctx, t, wallet.FailInsufficientFunds)
	}

	return err
}

// terminateConflict handles a transaction that others have made impossible. A payout that ended with its
// parent is built again if possible; a sweep of coins is planned again. Any other transaction fails, and
// bears the fee of its own cancel.
func (d *walletWorker) terminateConflict(
	ctx context.Context,
	t wallet.Transaction,
	proof terminalProof,
) error {
	if done, err := d.rebuild(ctx, t, proof); done || err != nil {
		return err
	}

	if proof.inherited && sweepsCoins(t) { // another transaction spent the payment behind one of its coins
		return d.updateProven(ctx, t, wallet.Outgoing{}, proof.rows, fail(wallet.FailInsufficientFunds))
	}

	return d.failDisplaced(ctx, t, proof)
}

// failDisplaced fails a transaction that others displaced, and charges it the fee of its own cancel.
func (d *walletWorker) failDisplaced(ctx context.Context, t wallet.Transaction, proof terminalProof) error {
	if proof.conflict.TxHash == "" {
		own, known, err := d.ownConflict(ctx, t)
		if err != nil {
			return err
		}

		if !known {
			return d.update(ctx, t.ID) // the cancel must be recorded first
		}

		proof.conflict = own
	}

	cost, known, err := d.displacementFee(ctx, t, proof.conflict)
	if err != nil {
		return err
	}

	if !known {
		return d.update(ctx, t.ID) // the cancel must be recorded first
	}

	return d.updateProven(ctx, t, wallet.Outgoing{}, proof.rows, func(t *wallet.Transaction) error {
		return walletstate.FailDisplaced(t, proof.conflict, cost)
	})
}

// displacementFee returns the network fee of a transaction's own cancel in a block, in base units of the
// native coin; 0 for any other conflict. known is false until the cancel is recorded as included.
func (d *walletWorker) displacementFee(
	ctx context.Context,
	t wallet.Transaction,
	conflict wallet.Conflict,
) (fee chain.Amount, known bool, err error) {
	if !conflict.Own || t.Kind != wallet.Payout {
		return chain.Amount{}, true, nil
	}

	cancels, err := d.db.TransactionsOf(ctx, t.ID)
	if err != nil {
		return chain.Amount{}, false, &storeError{err}
	}

	for _, cancel := range cancels {
		if cancel.Kind == wallet.Cancel && walletstate.AttemptIndex(&cancel, conflict.TxHash) >= 0 {
			return cancel.Fee, cancel.State == wallet.Included || cancel.State == wallet.Confirmed, nil
		}
	}

	return chain.Amount{}, true, nil
}

// giveUp fails a transaction whose bytes have expired, with a failure code. Its nonce is free and blocks all later
// ones, so the same store transaction queues the cancel that uses it.
func (d *walletWorker) giveUp(ctx context.Context, t wallet.Transaction, code string) error {
	if !d.hasNonces() {
		return d.updateProven(ctx, t, wallet.Outgoing{}, nil, fail(code))
	}

	cancel, err := d.makeCancel(ctx, cancelOf(t), t.Nonce, nil)
	if err != nil {
		return err
	}

	return d.updateWith(ctx, t.ID, func(ctx context.Context, tx wallet.Tx, now wallet.Transaction) error {
		if now.Version != t.Version {
			return &illegalMove{refuse(now, "expire by what was read before it was moved")}
		}

		if err := stands(ctx, tx, t, wallet.Outgoing{}, nil); err != nil {
			return err
		}

		_, err := d.EnqueueTx(ctx, tx, cancel)

		return err
	}, fail(code))
}
