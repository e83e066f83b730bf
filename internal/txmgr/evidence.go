package txmgr

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// evidence holds the records of the blocks that were read about one transaction of ours.
type evidence struct {
	cursor scan.Cursor
	// row is the row of the attempt that is in a block; zero if no block that was read holds one.
	row wallet.Outgoing
}

// readsBlocks reports whether the network's blocks are read. If not, the driver's answers about a hash
// decide; see polled.go.
func (o *Manager) readsBlocks(driver chain.Driver) bool {
	_, ok := driver.(chain.BlockScanner)

	return ok
}

// readEvidence reads the records of the blocks about a transaction.
func (d *walletWorker) readEvidence(ctx context.Context, t wallet.Transaction) (evidence, error) {
	// before the row: the row may be newer than the cursor, but not older
	cursor, _, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return evidence{}, &storeError{err}
	}

	row, err := AttemptRow(ctx, d.db, t)
	if err != nil {
		return evidence{}, &storeError{err}
	}

	return evidence{cursor: cursor, row: row}, nil
}

// AttemptRow returns the row of a transaction's attempt that is in a block; zero if there is none.
func AttemptRow(ctx context.Context, r wallet.Reader, t wallet.Transaction) (wallet.Outgoing, error) {
	hashes := make([]string, len(t.Attempts))
	for i, a := range t.Attempts {
		hashes[i] = a.Signed.TxHash
	}

	slices.Sort(hashes)

	rows, err := r.OutgoingByHash(ctx, t.Network, hashes)
	if err != nil || len(rows) == 0 {
		return wallet.Outgoing{}, err
	}

	// The rows of one attempt differ in their keys only. A second attempt is Unrecorded.
	return slices.MinFunc(rows, func(a, b wallet.Outgoing) int {
		if a.Unrecorded == b.Unrecorded {
			return cmp.Compare(a.Key, b.Key)
		}

		if a.Unrecorded {
			return 1
		}

		return -1
	}), nil
}

// updateProven is update for moves that rows prove. It has no effect if the transaction was moved, or the
// rows changed, since they were read. row is the row of the attempt; others prove a conflict.
func (d *walletWorker) updateProven(
	ctx context.Context,
	t wallet.Transaction,
	row wallet.Outgoing,
	others []wallet.Outgoing,
	moves ...move,
) error {
	return d.updateWith(ctx, t.ID, func(ctx context.Context, tx wallet.Tx, now wallet.Transaction) error {
		if now.Version != t.Version {
			return &illegalMove{refuse(now, "be moved by what was read before it was moved")}
		}

		return stands(ctx, tx, t, row, others)
	}, moves...)
}

// stands returns an illegalMove if the stored rows differ from those that were read.
func stands(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	row wallet.Outgoing,
	others []wallet.Outgoing,
) error {
	changed := &illegalMove{refuse(t, "be moved by rows that a fork changed")}

	now, err := AttemptRow(ctx, tx, t)
	if err != nil {
		return err
	}

	if !sameSpend(now, row) {
		return changed
	}

	keys := make([]string, len(others))
	for i, other := range others {
		keys[i] = other.Key
	}

	stored, err := tx.OutgoingByKey(ctx, t.Network, keys)
	if err != nil {
		return err
	}

	for _, other := range others {
		if !slices.ContainsFunc(stored, func(s wallet.Outgoing) bool { return sameSpend(s, other) }) {
			return changed
		}
	}

	return nil
}

// sameSpend reports whether two rows are of one transaction in one block, with one result.
func sameSpend(a, b wallet.Outgoing) bool {
	return a.Key == b.Key && a.TxHash == b.TxHash && a.Block.Hash == b.Block.Hash && a.Failed == b.Failed
}

// statusIn returns the fee and transfers of an attempt in the block of its row. ok is false if the node does
// not show it in that block with that result. Then nothing is recorded.
func (d *walletWorker) statusIn(
	ctx context.Context,
	t wallet.Transaction,
	row wallet.Outgoing,
) (status chain.TxStatus, ok bool, err error) {
	signed := t.Attempts[walletstate.AttemptIndex(&t, row.TxHash)].Signed

	status, err = d.sender.Status(ctx, signed)
	if err != nil {
		return chain.TxStatus{}, false, err
	}

	if status.State != chain.TxIncluded || status.Block.Hash != row.Block.Hash ||
		status.Reverted != row.Failed {
		// The driver prefers a node that shows it, once one does.
		return chain.TxStatus{}, false, nil
	}

	if row.Failed {
		status.Transfers = nil
	} else if !pays(status.Transfers, signed.Outputs) {
		status.Transfers, ok, err = d.transfersIn(ctx, row)
		if err != nil || !ok {
			return chain.TxStatus{}, false, err
		}
	}

	if !row.Failed {
		status.Transfers, ok, err = d.measured(ctx, t, row, status.Transfers)
		if err != nil || !ok {
			return chain.TxStatus{}, false, err
		}
	}

	status.Block = row.Block

	return status, true, nil
}

// pays reports whether transfers contain all outputs that move coin.
func pays(transfers []chain.Transfer, outputs []chain.Output) bool {
	left := slices.Clone(transfers)

	for _, out := range outputs {
		if !chaindata.MovesCoin(out) {
			continue
		}

		i := slices.IndexFunc(left, func(m chain.Transfer) bool {
			return m.To == out.To && m.AssetID == out.AssetID && m.Amount == out.Amount
		})
		if i < 0 {
			return false
		}

		left = slices.Delete(left, i, i+1)
	}

	return true
}

// transfersIn returns the transfers of a transaction from its block. An answer about a hash may leave them
// out.
func (d *walletWorker) transfersIn(
	ctx context.Context,
	row wallet.Outgoing,
) (transfers []chain.Transfer, ok bool, err error) {
	blocks, err := d.driver.(chain.BlockScanner).Blocks(ctx, row.Block.Height, row.Block.Height)
	if err != nil || len(blocks) != 1 || blocks[0].Hash != row.Block.Hash {
		return nil, false, err
	}

	return chaindata.TransfersOf(blocks[0], row.TxHash), true, nil
}

// isCanonical reports whether the node has a block at its height now. Every row and its depth depend on the
// last block that was read. A fork may have replaced that block without being read yet.
func (d *walletWorker) isCanonical(ctx context.Context, t wallet.Transaction, at chain.Ref) (bool, error) {
	now, err := d.driver.RefAt(ctx, at.Height)
	if err != nil && !errors.Is(err, fault.NotFound) {
		return false, err
	}

	if err != nil || now.Hash != at.Hash {
		d.logWait(ctx, t, "the node does not show the last block that was read", true)
		return false, nil
	}

	return true, nil
}

// isAgreed reports whether nodes agree that a block is canonical.
func (d *walletWorker) isAgreed(ctx context.Context, t wallet.Transaction, block chain.Ref) bool {
	err := d.agreedOn(ctx, block)
	if err != nil {
		d.logWait(ctx, t, "the block is not agreed on: "+publicText(err), errors.Is(err, fault.NotFound))
	}

	return err == nil
}

// agreedOn returns nil if nodes agree that a block is canonical, or if the driver compares no nodes.
func (d *walletWorker) agreedOn(ctx context.Context, block chain.Ref) error {
	agreed, ok := d.driver.(chain.Agreed)
	if !ok {
		return nil
	}

	_, err := agreed.AgreedBlock(ctx, block, nil)

	return err
}

// logWait logs, once per transaction and reason, that the outcome of a transaction waits.
func (d *walletWorker) logWait(ctx context.Context, t wallet.Transaction, why string, denied bool) {
	if _, logged := d.waits.LoadOrStore(t.ID, why); logged {
		return
	}

	d.config.Log.WarnContext(
		ctx, "the outcome of a transaction waits", "transaction", t.ID, "network", t.Network,
		"reason", why, "denied", denied,
	)
}
