package txmgr

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A batch is several payouts of one wallet in one transaction, where the driver can build it (chain.Batcher).
// No payout waits for a batch: the payouts that are due in one turn of the wallet are batched. The oldest row
// carries the others: its order and attempts pay all of them. They make each of its moves in the same store
// transaction. They join in the store transaction of the first bytes. Until then each can be canceled; from
// then on the batch does not change.

// rowsOf returns transactions by id, in that order. A missing one is fault.NotFound.
func rowsOf(ctx context.Context, r wallet.Reader, ids []string) ([]wallet.Transaction, error) {
	found, err := r.TransactionsByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	rows := make([]wallet.Transaction, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(found, func(t wallet.Transaction) bool { return t.ID == id })
		if at < 0 {
			return nil, fault.Missing("transaction", id)
		}

		rows[i] = found[at]
	}

	return rows, nil
}

// batchCandidates returns the payouts among rest that one transaction can pay together with t, oldest
// first.
func (d *walletWorker) batchCandidates(
	ctx context.Context,
	t wallet.Transaction,
	rest []wallet.Transaction,
) ([]wallet.Transaction, error) {
	batcher, ok := d.driver.(chain.Batcher)
	if !ok || d.unbatched || !walletstate.Batchable(t) {
		return nil, nil
	}

	var others []wallet.Transaction
	for _, stale := range rest {
		if 1+len(others) >= batcher.MaxOutputs() {
			break
		}

		if !walletstate.BatchableWith(stale, t) {
			continue
		}

		now, err := d.db.Transaction(ctx, stale.ID)
		if err != nil {
			return nil, &storeError{err}
		}

		if !walletstate.BatchableWith(now, t) || walletstate.Stale(&now, d.now()) {
			continue
		}

		held, err := d.awaitsPerson(ctx, now)
		if err != nil {
			return nil, err
		}

		if !held {
			others = append(others, now)
		}
	}

	return others, nil
}

// trySignBatch signs a payout and its batch candidates in one transaction. done is false if t must be signed
// alone: there is no candidate, or the batch could not be signed. One payout that cannot be paid must not
// delay the others.
func (d *walletWorker) trySignBatch(
	ctx context.Context,
	t wallet.Transaction,
	rest []wallet.Transaction,
) (done bool, err error) {
	others, err := d.batchCandidates(ctx, t, rest)
	if err != nil || len(others) == 0 {
		return false, err
	}

	a, err := d.signBatch(ctx, &t, others)
	if err == nil {
		return true, d.broadcastFirst(ctx, t.ID, a)
	}

	if d.stops(ctx, err) {
		return false, err
	}

	if _, moved := errors.AsType[*illegalMove](err); moved {
		if d.deferred == nil {
			d.deferred = map[string]bool{}
		}

		for _, other := range others {
			d.deferred[other.ID] = true
		}

		return true, nil // the members that were not moved are still due
	}

	d.unbatched = true
	d.config.Log.InfoContext(
		ctx, "payouts could not be signed together and are signed one by one",
		"transaction", t.ID, "network", t.Network, "payouts", 1+len(others), "error", publicText(err),
	)

	return false, nil
}

// signBatch merges payouts into t, signs the transaction and stores its bytes.
func (d *walletWorker) signBatch(
	ctx context.Context,
	t *wallet.Transaction,
	others []wallet.Transaction,
) (wallet.Attempt, error) {
	if err := walletstate.Merge(t, others); err != nil {
		return wallet.Attempt{}, err
	}

	order := t.Order
	if err := d.prepare(ctx, *t, &order); err != nil {
		return wallet.Attempt{}, err
	}

	a, err := d.makeAttempt(ctx, *t, order)
	if err != nil {
		return wallet.Attempt{}, err
	}

	return a, d.storeAttempt(ctx, *t, a)
}

// joinTx merges the batch members that were signed into the stored transaction. If a row is stale, or was
// moved meanwhile, it returns an illegalMove.
func (d *walletWorker) joinTx(
	ctx context.Context,
	tx wallet.Tx,
	stored *wallet.Transaction,
	signed wallet.Transaction,
) error {
	others, err := rowsOf(ctx, tx, signed.BatchMembers)
	if err != nil {
		return err
	}

	for _, t := range append([]wallet.Transaction{*stored}, others...) {
		if walletstate.Stale(&t, d.now()) {
			return &illegalMove{
				fault.New(
					fault.State, "signed_too_late",
					"transaction %s was signed after its time; the signatures were thrown away",
					t.ID,
				),
			}
		}
	}

	if len(others) == 0 {
		return nil
	}

	if err := walletstate.Merge(stored, others); err != nil {
		return &illegalMove{err}
	}

	if !slices.Equal(stored.Order.Outputs, signed.Order.Outputs) {
		return refuse(*stored, "take bytes that pay something else")
	}

	return nil
}

// outputObjects returns the object id of each of a transaction's n outputs.
func (d *walletWorker) outputObjects(ctx context.Context, t wallet.Transaction, n int) ([]string, error) {
	members, err := rowsOf(ctx, d.db, t.BatchMembers)
	if err != nil {
		return nil, &storeError{err}
	}

	objects := slices.Repeat([]string{t.ObjectID}, n)
	for i, member := range members {
		objects[1+i] = member.ObjectID
	}

	return objects, nil
}
