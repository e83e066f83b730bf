package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// fillGaps queues a cancel for each gap, once per turn: a nonce below the wallet's next one that no live
// transaction has and that no block used. No later nonce can be included before it. If a payout was reverted
// at the nonce, before a fork, it is charged for the cancel; else t's owner is. If the nonce was used in a
// block that is not read yet, the cancel fails without effect.
func (d *walletWorker) fillGaps(ctx context.Context, t wallet.Transaction) error {
	if !d.hasNonces() || d.gapsFilled {
		return nil
	}

	gaps, err := d.gaps(ctx, t.Network)
	if err != nil || len(gaps) == 0 {
		d.gapsFilled = err == nil
		return err
	}

	counted, err := d.nonce(ctx)
	if err != nil {
		return err
	}

	left, err := d.leftNonces(ctx)
	if err != nil {
		return err
	}

	for _, nonce := range gaps {
		if nonce < counted {
			continue
		}

		cancel, displaced := cancelOf(t), (*wallet.Transaction)(nil)
		if last, ok := left[nonce]; ok {
			cancel, displaced = cancelOf(last), &last
		}

		if err := d.queueCancel(ctx, cancel, nonce, displaced); err != nil {
			return err
		}

		d.config.Log.WarnContext(
			ctx, "a nonce that nothing has is used up by a cancel",
			"network", t.Network, "wallet", string(d.party.Address), "nonce", nonce,
		)
	}

	d.gapsFilled = true

	return nil
}

// isBelowHistoryEnd reports whether the nonce of a cancel was used before the network was read. The network
// counts the nonce as used, but the blocks, read to the tip, show neither it nor the one below. The cancel
// was queued because a node counted too few. No block that is read will ever show the transaction that used
// the nonce.
func (d *walletWorker) isBelowHistoryEnd(
	ctx context.Context,
	t wallet.Transaction,
	cursor scan.Cursor,
) (bool, error) {
	if t.Kind != wallet.Cancel || !d.hasNonces() {
		return false, nil
	}

	counted, err := d.nonce(ctx)
	if err != nil || t.Nonce >= counted {
		return false, err
	}

	keys := []string{chaindata.SpendKey(chain.Spend{Sender: d.party.Address, Nonce: t.Nonce})}
	if t.Nonce > 0 {
		keys = append(keys, chaindata.SpendKey(chain.Spend{Sender: d.party.Address, Nonce: t.Nonce - 1}))
	}

	slices.Sort(keys)

	rows, err := d.db.OutgoingByKey(ctx, t.Network, keys)
	if err != nil {
		return false, &storeError{err}
	}

	if len(rows) > 0 {
		return false, nil
	}

	head, err := d.driver.Head(ctx)

	return err == nil && head.Tip.Hash == cursor.At.Hash, err
}

// gaps returns the wallet's free nonces above the highest one that a block used.
func (d *walletWorker) gaps(ctx context.Context, network string) ([]uint64, error) {
	w, found, err := d.db.Wallet(ctx, network, d.party.Address)
	if err != nil || !found {
		return nil, asStoreError(err)
	}

	live, err := d.db.LiveTransactions(ctx, network, d.party.Address)
	if err != nil {
		return nil, &storeError{err}
	}

	free := freeNonces(w.NextNonce, live)

	keys := make([]string, len(free))
	for i, nonce := range free {
		keys[i] = chaindata.SpendKey(chain.Spend{Sender: d.party.Address, Nonce: nonce})
	}

	for i, key := range keys { // highest first: no nonce below a used one is free
		used, err := d.db.OutgoingByKey(ctx, network, []string{key})
		if err != nil {
			return nil, &storeError{err}
		}

		if len(used) > 0 {
			return free[:i], nil
		}
	}

	return free, nil
}

// asStoreError marks an error of the store; nil stays nil.
func asStoreError(err error) error {
	if err == nil {
		return nil
	}

	return &storeError{err}
}
