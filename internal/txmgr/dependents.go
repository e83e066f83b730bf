package txmgr

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A transaction of ours (the child) may spend the change of another one that waits (the parent). The parent
// is then never replaced, because its replacement would make the child impossible. The child is bumped
// instead and pays for both. But if a fork removed an output that the parent spends, so that no node has its
// bytes, neither can be included; then the parent is replaced.

// hasDependents reports whether a live transaction of ours spends an output of one of the attempts.
func hasDependents(ctx context.Context, r wallet.Reader, t wallet.Transaction) (bool, error) {
	outputs, err := outputsOf(ctx, r, t)
	if err != nil {
		return false, err
	}

	var ids []string

	for _, c := range outputs {
		if c.ReservedBy != "" && c.ReservedBy != t.ID {
			ids = append(ids, c.ReservedBy)
		}
	}

	if len(ids) == 0 {
		return false, nil
	}

	slices.Sort(ids)

	dependents, err := r.TransactionsByID(ctx, slices.Compact(ids))
	if err != nil {
		return false, asStoreError(err)
	}

	return slices.ContainsFunc(dependents, func(other wallet.Transaction) bool {
		return walletstate.Live(other) && spendsUnconfirmed(other, outputs)
	}), nil
}

// spendsUnconfirmed reports whether the newest bytes of a transaction spend one of some coins. Older bytes do
// not count: bytes that were built again have other parents.
func spendsUnconfirmed(t wallet.Transaction, coins []wallet.Coin) bool {
	return slices.ContainsFunc(coins, func(c wallet.Coin) bool {
		return c.ReservedBy == t.ID &&
			(len(t.Attempts) == 0 || slices.Contains(walletstate.LastAttempt(&t).Signed.Inputs, c.Outpoint))
	})
}

// outputsOf returns the coins that the attempts of a transaction made; nil if the attempts have no inputs.
func outputsOf(ctx context.Context, r wallet.Reader, t wallet.Transaction) ([]wallet.Coin, error) {
	var hashes []string

	for _, a := range t.Attempts {
		if len(a.Signed.Inputs) > 0 {
			hashes = append(hashes, a.Signed.TxHash)
		}
	}

	if len(hashes) == 0 {
		return nil, nil
	}

	slices.Sort(hashes)

	coins, err := r.CoinsOf(ctx, t.Network, hashes)

	return coins, asStoreError(err)
}

// dropOutputsTx deletes the outputs of attempts that are about to be replaced, so that nothing is built on
// them any more. If other transactions depend on them, it returns an illegalMove, unless the bytes spend a
// coin that is gone.
//
// The first bytes of a cancel drop the outputs of the transaction that it displaces.
func dropOutputsTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	if t.Kind == wallet.Cancel && len(t.Attempts) == 0 {
		displaced, err := tx.Transaction(ctx, t.ObjectID)
		if errors.Is(err, fault.NotFound) {
			return nil // a free nonce
		}

		if err != nil {
			return err
		}

		return dropOutputsTx(ctx, tx, displaced)
	}

	outputs, err := outputsOf(ctx, tx, t)
	if err != nil {
		return err
	}

	rests, err := hasDependents(ctx, tx, t)
	if err != nil {
		return err
	}

	gone, err := spendsGone(ctx, tx, t)
	if err != nil {
		return err
	}

	if rests && !gone {
		return &illegalMove{refuse(t, "be replaced: other transactions rest on it")}
	}

	return deleteFreeTx(ctx, tx, outputs)
}

// deleteFreeTx deletes the coins that are in no block and that no transaction has reserved.
func deleteFreeTx(ctx context.Context, tx wallet.Tx, coins []wallet.Coin) error {
	for _, c := range coins {
		if c.Height > 0 || c.ReservedBy != "" {
			continue
		}

		if err := tx.DeleteCoin(ctx, c.Network, c.Outpoint); err != nil {
			return err
		}
	}

	return nil
}

// shallowBlocks is the number of newest blocks that a fork may remove. A parent of signed bytes in one of
// them is recorded like one that waits.
const shallowBlocks = 12

// addOwnParents adds the spends of the unconfirmed parents of signed bytes, and of their parents in turn, as
// far as these are ours. It also adds those of parents in the newest blocks. Once another transaction makes
// one of these spends, the bytes can never be included.
func (d *walletWorker) addOwnParents(
	ctx context.Context,
	signed *chain.Signed,
	coins []chain.Coin,
	at uint64,
) error {
	waiting, shallow := map[string]bool{}, map[string]bool{}

	for _, c := range coins {
		switch {
		case !slices.Contains(signed.Inputs, c.Outpoint):
		case c.Height == 0:
			waiting[c.Outpoint.TxHash] = true
		case c.Height+shallowBlocks > at:
			shallow[c.Outpoint.TxHash] = true
		}
	}

	if len(waiting)+len(shallow) == 0 {
		return nil
	}

	spends, err := d.shallowSpends(ctx, shallow, at)
	if err != nil {
		return err
	}

	parents, err := d.parents(ctx, waiting)
	if err != nil {
		return err
	}

	spends = append(spends, signed.UnconfirmedParents...)

	for _, parent := range parents {
		for _, in := range parent.Inputs {
			spends = append(spends, chain.Spend{Outpoint: in, By: parent.TxHash})
		}

		spends = append(spends, parent.UnconfirmedParents...)
	}

	slices.SortFunc(spends, func(a, b chain.Spend) int { return compareOutpoints(a.Outpoint, b.Outpoint) })
	signed.UnconfirmedParents = slices.Compact(spends)

	return nil
}

// shallowSpends returns the recorded spends of transactions in the newest blocks, and of their parents there.
func (d *walletWorker) shallowSpends(
	ctx context.Context,
	hashes map[string]bool,
	at uint64,
) (spends []chain.Spend, err error) {
	next := slices.Sorted(maps.Keys(hashes))

	for len(next) > 0 {
		rows, err := d.db.OutgoingByHash(ctx, d.network.Slug, next)
		if err != nil {
			return nil, &storeError{err}
		}

		next = nil

		for _, row := range rows {
			if row.Block.Height+shallowBlocks <= at {
				continue
			}

			spends = append(spends, chain.Spend{Outpoint: row.Outpoint, By: row.TxHash})

			if made := row.Outpoint.TxHash; !hashes[made] {
				hashes[made] = true
				next = append(next, made)
			}
		}

		slices.Sort(next)
	}

	return spends, nil
}

// parents returns our signed bytes with the given hashes that may wait for a block.
func (d *walletWorker) parents(ctx context.Context, hashes map[string]bool) ([]chain.Signed, error) {
	if len(hashes) == 0 {
		return nil, nil
	}

	missing := maps.Clone(hashes)

	var found []chain.Signed

	collect := func(all []wallet.Transaction) {
		for _, t := range all {
			for _, a := range t.Attempts {
				if missing[a.Signed.TxHash] {
					delete(missing, a.Signed.TxHash)

					found = append(found, a.Signed)
				}
			}
		}
	}

	live, err := d.db.LiveTransactions(ctx, d.network.Slug, d.party.Address)
	if err != nil {
		return nil, &storeError{err}
	}

	if collect(live); len(missing) == 0 {
		return found, nil
	}

	// Include the sweeps from other addresses that pay this wallet.
	all, err := d.db.DueTransactions(ctx, d.network.Slug, d.now().Add(maxPendingInterval), 0)
	if err != nil {
		return nil, &storeError{err}
	}

	collect(all)

	return found, nil
}

// makeBumping signs a replacement that also pays for its single waiting parent of ours, where the network can
// do that. If the parent needs nothing, or cannot be bumped, it signs a plain replacement.
func (d *walletWorker) makeBumping(
	ctx context.Context,
	t wallet.Transaction,
	order chain.Order,
) (wallet.Attempt, error) {
	_, bumps := d.driver.(chain.Bumper)
	parent := -1

	for i, c := range order.Coins {
		if c.Height == 0 && slices.Contains(order.Replaces.Inputs, c.Outpoint) {
			bumps = bumps && parent < 0 // at most one parent
			parent = i
		}
	}

	if !bumps || parent < 0 || order.Bumps != nil {
		return d.makeReplacement(ctx, t, order)
	}

	both := order
	both.Bumps = &order.Coins[parent]
	both.Coins = slices.Delete(slices.Clone(order.Coins), parent, parent+1)

	a, err := d.makeReplacement(ctx, t, both)
	if errors.Is(err, fault.NotFound) || errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Limited) {
		return d.makeReplacement(ctx, t, order)
	}

	return a, err
}
