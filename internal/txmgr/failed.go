package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A reverted transaction is over once its block is final. It is then watched like a confirmed one, because a
// deeper fork may remove its block, and its fee with it. It stays failed then. Its nonce is free, and its
// bytes may be included again:
//
//	reverted again       the transaction shows the fee of that block
//	displaced            by the cancel that is queued at its nonce; it shows the cancel's fee, as for a conflict
//	executed after all   a failed payout is not revived: the transaction counts as one that is not on record
//
// Two other kinds are watched for as long: transactions that others displaced for ever, and sweeps that
// failed because their coins were gone. A fork may execute them after all.

// hasReverted reports whether a transaction failed as reverted.
func hasReverted(t wallet.Transaction) bool {
	return t.State == wallet.Failed && t.Failure == wallet.FailReverted
}

// wasDisplaced reports whether a transaction failed because another one in a final block displaced it, or
// because a coin of its sweep was gone.
func wasDisplaced(t wallet.Transaction) bool {
	return t.State == wallet.Failed &&
		(t.Failure == wallet.FailConflict || t.Failure == wallet.FailInsufficientFunds && sweepsCoins(t))
}

// followFailed follows a failed transaction: a reverted one into, out of and between blocks, and a displaced
// one.
func (d *walletWorker) followFailed(ctx context.Context, t wallet.Transaction) error {
	if !d.readsBlocks(d.driver) {
		if wasDisplaced(t) {
			return d.update(ctx, t.ID)
		}

		return d.followFailedPolled(ctx, t)
	}

	e, err := d.readEvidence(ctx, t)
	if err != nil {
		return err
	}

	switch {
	case e.row.TxHash == "" && wasDisplaced(t):
		return d.update(ctx, t.ID)
	case e.row.TxHash != "" && e.row.Failed && hasReverted(t):
		return d.recordReverted(ctx, t, e)
	case e.row.TxHash != "":
		return d.recordExecuted(ctx, t, e.row)
	case t.Block.IsZero():
		return d.displaceFailed(ctx, t, e)
	case e.cursor.At.Height < t.Block.Height:
		return d.update(ctx, t.ID) // read again from below its block
	}

	d.logLostBlock(ctx, t)

	return d.updateProven(ctx, t, wallet.Outgoing{}, nil, walletstate.Retract)
}

// recordReverted records the block that now holds a reverted transaction, with its fee.
func (d *walletWorker) recordReverted(ctx context.Context, t wallet.Transaction, e evidence) error {
	if t.TxHash == e.row.TxHash && t.Block.Hash == e.row.Block.Hash {
		return d.update(ctx, t.ID)
	}

	status, ok, err := d.statusIn(ctx, t, e.row)
	if err != nil {
		return err
	}

	if !ok {
		d.logWait(ctx, t, "the node does not show it in the block that holds it", true)
		return d.update(ctx, t.ID)
	}

	d.waits.Delete(t.ID)

	return d.updateProven(ctx, t, e.row, nil, func(t *wallet.Transaction) error {
		return walletstate.Include(t, e.row.TxHash, status)
	})
}

// recordExecuted marks the rows of a failed transaction that was executed after a fork as not on record. The
// transaction is not revived, and a person has to decide what it was.
func (d *walletWorker) recordExecuted(ctx context.Context, t wallet.Transaction, row wallet.Outgoing) error {
	if row.Unrecorded {
		return d.update(ctx, t.ID)
	}

	if said, err := d.isAcknowledged(ctx, t, row.TxHash); err != nil || said {
		return errors.Join(err, d.update(ctx, t.ID))
	}

	transfers, ok, err := d.transfersIn(ctx, row)
	if err != nil || !ok {
		return errors.Join(err, d.update(ctx, t.ID))
	}

	mark := func(ctx context.Context, tx wallet.Tx, now wallet.Transaction) error {
		if now.Version != t.Version {
			return &illegalMove{refuse(now, "be executed by what was read before it was moved")}
		}

		if err := stands(ctx, tx, t, row, nil); err != nil {
			return err
		}

		return d.freezeAllTx(ctx, tx, row.TxHash, transfers)
	}

	if t.Block.IsZero() {
		return d.updateWith(ctx, t.ID, mark)
	}

	return d.updateWith(ctx, t.ID, mark, walletstate.Retract)
}

// isAcknowledged reports whether a person has acknowledged the bytes of a failed transaction as another
// transaction: a fork had removed them from a block, and a later block holds them.
func (d *walletWorker) isAcknowledged(ctx context.Context, t wallet.Transaction, hash string) (bool, error) {
	watched, err := d.db.DueTransactions(ctx, t.Network, d.now().Add(watchFor), 0)
	if err != nil {
		return false, &storeError{err}
	}

	return slices.ContainsFunc(watched, func(other wallet.Transaction) bool {
		return other.ID != t.ID && walletstate.AttemptIndex(&other, hash) >= 0
	}), nil
}

// freezeAllTx marks the rows of a transaction as not on record, and freezes all wallets that it took from. A
// sweep spends the outputs of many.
func (d *walletWorker) freezeAllTx(
	ctx context.Context,
	tx wallet.Tx,
	hash string,
	transfers []chain.Transfer,
) error {
	rows, err := tx.OutgoingByHash(ctx, d.network.Slug, []string{hash})
	if err != nil {
		return err
	}

	outpoints := make([]chain.Outpoint, len(rows))
	for i, row := range rows {
		outpoints[i] = row.Outpoint
	}

	coins, err := coinsAt(ctx, tx, d.network.Slug, outpoints)
	if err != nil {
		return err
	}

	for _, row := range rows {
		owner := d.party

		for _, c := range coins {
			if c.Outpoint == row.Outpoint {
				owner = c.Owner
			}
		}

		if err := d.freezeByTx(ctx, tx, &row, owner, transfers); err != nil {
			return err
		}

		if err := tx.PutOutgoing(ctx, &row); err != nil {
			return err
		}
	}

	return nil
}

// displaceFailed queues a cancel at the nonce of a payout that was reverted in a block which left the chain,
// and charges the payout for it. The nonces of other kinds are filled when the wallet signs again.
func (d *walletWorker) displaceFailed(ctx context.Context, t wallet.Transaction, e evidence) error {
	proof, dead, err := d.proveTerminal(ctx, t, e.cursor)
	if err != nil {
		return err
	}

	switch {
	case dead && proof.reason == chain.ReasonConflict:
		return d.failDisplaced(ctx, t, proof)
	case dead && !d.hasNonces():
		return d.updateProven(ctx, t, wallet.Outgoing{}, nil, fail(wallet.FailExpired))
	case walletstate.LastAttempt(&t).Signed.DurableNonce != nil:
		return errors.Join(d.displaceDurable(ctx, t), d.update(ctx, t.ID))
	case !d.hasNonces() || t.Kind != wallet.Payout:
		return d.update(ctx, t.ID)
	}

	live, err := d.db.LiveTransactions(ctx, t.Network, d.party.Address)
	if err != nil {
		return &storeError{err}
	}

	if slices.ContainsFunc(live, func(other wallet.Transaction) bool {
		return other.Kind == wallet.Cancel && nonceOf(other) == t.Nonce
	}) {
		return d.update(ctx, t.ID)
	}

	if err := d.queueCancel(ctx, cancelOf(t), t.Nonce, &t); err != nil {
		return err
	}

	return d.update(ctx, t.ID)
}

// displaceDurable queues a cancel for the durable nonce of a reverted transaction whose block left the chain.
// Its bytes never expire, and until the cancel no other transaction could use the account.
func (d *walletWorker) displaceDurable(ctx context.Context, t wallet.Transaction) error {
	earlier, err := d.db.TransactionsOf(ctx, t.ID)
	if err != nil {
		return &storeError{err}
	}

	if slices.ContainsFunc(earlier, func(other wallet.Transaction) bool {
		return other.Kind == wallet.Cancel && other.State != wallet.Failed
	}) {
		return nil
	}

	return d.write(ctx, func(ctx context.Context, tx wallet.Tx) error { return d.cancelNonceTx(ctx, tx, t) })
}

// followFailedPolled is followFailed for networks whose blocks are not read.
func (d *walletWorker) followFailedPolled(ctx context.Context, t wallet.Transaction) error {
	s, err := d.observe(ctx, t)
	if err != nil {
		return err
	}

	switch {
	case s.hash != "" && !s.status.Reverted:
		d.config.Log.ErrorContext(
			ctx, "a failed transaction was executed after all",
			"transaction", t.ID, "network", t.Network, "tx", s.hash,
		)

		return d.update(ctx, t.ID)
	case s.hash != "" && (s.hash != t.TxHash || s.status.Block.Hash != t.Block.Hash):
		return d.update(
			ctx,
			t.ID,
			func(t *wallet.Transaction) error { return walletstate.Include(t, s.hash, s.status) },
		)
	case s.hash != "":
		return d.update(ctx, t.ID)
	case t.Block.IsZero() && s.terminal == chain.ReasonConflict:
		return d.failDisplaced(ctx, t, terminalProof{reason: s.terminal})
	case t.Block.IsZero() && s.terminal != "":
		return d.update(ctx, t.ID, fail(wallet.FailExpired))
	case t.Block.IsZero() && walletstate.LastAttempt(&t).Signed.DurableNonce != nil:
		return errors.Join(d.displaceDurable(ctx, t), d.update(ctx, t.ID))
	case t.Block.IsZero():
		return d.update(ctx, t.ID)
	}

	gone, err := d.blockReplaced(ctx, t.Block)
	if err != nil || !gone {
		return errors.Join(err, d.update(ctx, t.ID))
	}

	d.logLostBlock(ctx, t)

	return d.update(ctx, t.ID, walletstate.Retract)
}

// leftNonces returns the wallet's reverted transactions whose block left the chain, by their nonces.
func (d *walletWorker) leftNonces(ctx context.Context) (map[uint64]wallet.Transaction, error) {
	due, err := d.db.DueTransactions(ctx, d.network.Slug, d.now().Add(maxPendingInterval), 0)
	if err != nil {
		return nil, &storeError{err}
	}

	left := map[uint64]wallet.Transaction{}

	for _, t := range due {
		if hasReverted(t) && t.Block.IsZero() && t.Order.From.Address == d.party.Address {
			left[t.Nonce] = t
		}
	}

	return left, nil
}

// chargeCancelTx charges a cancel to the failed payout whose nonce it used. It sets the fee of the payout to
// the fee of the cancel in the block that holds the cancel now; 0 while no block does.
func (d *walletWorker) chargeCancelTx(ctx context.Context, tx wallet.Tx, cancel wallet.Transaction) error {
	t, err := tx.Transaction(ctx, cancel.ObjectID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	displaced := t.Failure == wallet.FailConflict && t.Conflict.Own &&
		walletstate.AttemptIndex(&cancel, t.Conflict.TxHash) >= 0 ||
		t.Failure == wallet.FailExpired && cancel.Nonce == t.Nonce ||
		hasReverted(t) && t.Block.IsZero() &&
			cancel.Nonce == t.Nonce // the conflict is not proven yet

	if t.Kind != wallet.Payout || !displaced || t.Fee == cancel.Fee || !d.hasNonces() {
		return nil
	}

	t.Fee = cancel.Fee

	rows, err := rowsOf(ctx, tx, t.BatchMembers)
	if err != nil {
		return err
	}

	rows = append([]wallet.Transaction{t}, rows...)

	for i := range rows {
		if i > 0 {
			if err := walletstate.JoinBatch(&rows[i], rows[0]); err != nil {
				return err
			}
		}

		if err := tx.PutTransaction(ctx, &rows[i]); err != nil {
			return err
		}

		if err := tx.AppendEvents(ctx, eventctx.About(rows[i], event.TransactionMoved)...); err != nil {
			return err
		}
	}

	return nil
}
