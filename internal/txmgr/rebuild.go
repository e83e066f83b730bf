package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A payout that spends change of ours becomes impossible with the transaction that made the change: a block
// holds an earlier attempt of that parent, or somebody else's spend. The payout's own coins are still
// unspent, so it is built again. Its new bytes exclude each dead attempt: they share a coin with it, or
// depend on the transaction that displaced its parent. So at most one of them can be included, whatever a
// fork restores.

// rebuild signs a payout anew whose attempts ended with their parents, and broadcasts it. done is false if it
// cannot be built again: no coins are left that exclude the dead attempts, or it is stale.
func (d *walletWorker) rebuild(
	ctx context.Context,
	t wallet.Transaction,
	proof terminalProof,
) (done bool, err error) {
	if t.Kind != wallet.Payout || !proof.inherited || d.hasNonces() {
		return false, nil
	}

	if len(t.Attempts) >= maxAttempts || walletstate.Stale(&t, d.now()) {
		return false, nil
	}

	if stopped, err := d.signingStopped(ctx, t); err != nil {
		return false, err
	} else if stopped {
		return true, d.update(ctx, t.ID)
	}

	var waits bool

	order := t.Order
	order.Coins, order.Spends, waits, err = d.excludingCoins(ctx, t, proof)

	switch {
	case err != nil:
		return false, err
	case waits:
		return true, d.update(ctx, t.ID)
	case len(order.Spends) == 0:
		return false, nil
	}

	a, err := d.makeAttempt(ctx, t, order)
	if err == nil && !containsAll(a.Signed.Inputs, order.Spends) {
		err = unsafeReplacement(t)
	}

	if err == nil {
		err = d.storeRebuilt(ctx, t, a, proof)
	}

	switch {
	case err == nil:
		return true, d.broadcast(ctx, t.ID, a.Signed)
	case d.stops(ctx, err):
		return false, err
	}

	// Missing money, or a fee above the maximum, may be resolved until the payout is stale.
	d.config.Log.InfoContext(
		ctx, "a payout whose parent died could not be built again yet",
		"transaction", t.ID, "network", t.Network, "error", publicText(err),
	)

	return true, d.update(ctx, t.ID)
}

// storeRebuilt stores the new bytes of a payout if the proof that its attempts are dead still holds. It
// deletes the outputs of the dead attempts that no transaction has reserved; transactions that depend on the
// other outputs are dead, too.
func (d *walletWorker) storeRebuilt(
	ctx context.Context,
	t wallet.Transaction,
	a wallet.Attempt,
	proof terminalProof,
) error {
	dropFree := func(ctx context.Context, tx wallet.Tx, now wallet.Transaction) error {
		if now.Version != t.Version {
			return &illegalMove{refuse(now, "be built again by what was read before it was moved")}
		}

		if err := stands(ctx, tx, t, wallet.Outgoing{}, proof.rows); err != nil {
			return err
		}

		outputs, err := outputsOf(ctx, tx, now)
		if err != nil {
			return err
		}

		return deleteFreeTx(ctx, tx, outputs)
	}

	return d.storeAttemptAfter(ctx, t, a, dropFree)
}

// excludingCoins returns the coins from which a payout may be built again, and those of them that it must
// spend: one for each dead attempt that no earlier one excludes. If an attempt has no such coin, it returns
// no coins. waits is set if there will be one: another transaction of ours spends it and makes change.
func (d *walletWorker) excludingCoins(
	ctx context.Context,
	t wallet.Transaction,
	proof terminalProof,
) (coins []chain.Coin, spends []chain.Outpoint, waits bool, err error) {
	free, err := d.spendableCoins(ctx, t)
	if err != nil {
		return nil, nil, false, err
	}

	excluding := make([]map[chain.Outpoint]bool, len(t.Attempts))
	for i, a := range t.Attempts {
		if excluding[i], err = d.exclude(ctx, t, a, proof.rows[i].TxHash); err != nil {
			return nil, nil, false, err
		}
	}

	for _, c := range free {
		excludes := slices.ContainsFunc(
			excluding, func(set map[chain.Outpoint]bool) bool { return set[c.Outpoint] },
		)
		if c.Height > 0 || excludes && walletstate.AttemptIndex(&t, c.Outpoint.TxHash) < 0 {
			coins = append(coins, c)
		}
	}

	// The largest coins first, so that fewer are spent.
	slices.SortStableFunc(coins, func(a, b chain.Coin) int {
		return cmp.Or(b.Amount.Cmp(a.Amount), compareOutpoints(a.Outpoint, b.Outpoint))
	})

	for _, set := range excluding {
		if slices.ContainsFunc(spends, func(o chain.Outpoint) bool { return set[o] }) {
			continue
		}

		i := slices.IndexFunc(coins, func(c chain.Coin) bool { return set[c.Outpoint] })
		if i < 0 {
			return nil, nil, len(set) > 0, nil
		}

		spends = append(spends, coins[i].Outpoint)
	}

	return coins, spends, false, nil
}

// exclude returns coins that exclude a dead attempt: a transaction that spends one of them and the attempt
// are never in one chain. They are the attempt's own coins in blocks, and those that descend from the
// transaction that displaced its parent (killer).
func (d *walletWorker) exclude(
	ctx context.Context,
	t wallet.Transaction,
	a wallet.Attempt,
	killer string,
) (map[chain.Outpoint]bool, error) {
	own, err := coinsAt(ctx, d.db, t.Network, a.Signed.Inputs)
	if err != nil {
		return nil, &storeError{err}
	}

	out := map[chain.Outpoint]bool{}

	for _, c := range own {
		if c.Height > 0 && c.SpentBy == "" {
			out[c.Outpoint] = true
		}
	}

	return out, d.addDescendants(ctx, t.Network, killer, out)
}

// addDescendants adds the unspent coins of ours that a transaction made, and those that were made from its
// coins in turn.
func (d *walletWorker) addDescendants(
	ctx context.Context,
	network, hash string,
	out map[chain.Outpoint]bool,
) error {
	seen, next := map[string]bool{hash: true}, []string{hash}

	for range maxDepth {
		if len(next) == 0 {
			return nil
		}

		slices.Sort(next)

		coins, err := d.db.CoinsOf(ctx, network, next)
		if err != nil {
			return &storeError{err}
		}

		next = nil

		for _, c := range coins {
			if c.SpentBy == "" {
				out[c.Outpoint] = true
			}

			spenders, err := d.spendersOf(ctx, c)
			if err != nil {
				return err
			}

			for _, spender := range spenders {
				if !seen[spender] {
					seen[spender] = true
					next = append(next, spender)
				}
			}
		}
	}

	return nil
}

// spendersOf returns the hashes of the transactions that spend a coin: the one in a block, else the attempts
// of ours.
func (d *walletWorker) spendersOf(ctx context.Context, c wallet.Coin) (hashes []string, err error) {
	if c.SpentBy != "" {
		return []string{c.SpentBy}, nil
	}

	if c.ReservedBy == "" {
		return nil, nil
	}

	t, err := d.db.Transaction(ctx, c.ReservedBy)
	if err != nil {
		return nil, &storeError{err}
	}

	for _, a := range t.Attempts {
		if slices.Contains(a.Signed.Inputs, c.Outpoint) {
			hashes = append(hashes, a.Signed.TxHash)
		}
	}

	return hashes, nil
}

// excludesAll reports whether bytes that spend some coins exclude every attempt. They share a coin with it,
// or depend on a transaction in a final block that displaced its parent.
func (d *walletWorker) excludesAll(
	ctx context.Context,
	t wallet.Transaction,
	inputs []chain.Outpoint,
) (bool, error) {
	if sharesCoin(t.Attempts, inputs) {
		return true, nil
	}

	rows, err := d.rowsOfAttempts(ctx, t)
	if err != nil {
		return false, err
	}

	cursor, _, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return false, &storeError{err}
	}

	final, _ := finalHeight(cursor, d.network)

	for _, a := range t.Attempts {
		if sharesCoin([]wallet.Attempt{a}, inputs) {
			continue
		}

		row, dead := rival(d.usedUp(a.Signed), rows, final)
		if !dead {
			return false, nil
		}

		set := map[chain.Outpoint]bool{}
		if err := d.addDescendants(ctx, t.Network, row.TxHash, set); err != nil {
			return false, err
		}

		if !slices.ContainsFunc(inputs, func(in chain.Outpoint) bool { return set[in] }) {
			return false, nil
		}
	}

	return true, nil
}

func containsAll(inputs, wanted []chain.Outpoint) bool {
	return !slices.ContainsFunc(wanted, func(o chain.Outpoint) bool { return !slices.Contains(inputs, o) })
}

// unsafeReplacement returns the error for bytes that could be included in addition to earlier ones.
func unsafeReplacement(t wallet.Transaction) error {
	return fault.New(
		fault.Unavailable, "replacement_unsafe",
		"the driver built a replacement of %s that does not exclude all earlier attempts; it was thrown away",
		t.ID,
	)
}
