package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// fillGaps queues a cancel for each nonce below the wallet's next one that no live transaction has and that
// no block used, once per turn: nothing behind it can be included. t names the owner. Should the nonce be
// used in a block that was not read yet, the cancel fails without effect.
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

	for _, nonce := range gaps {
		if nonce < counted {
			continue
		}

		if err := d.queueCancel(ctx, cancelOf(t), nonce, nil); err != nil {
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
		keys[i] = chain.Spend{Sender: d.party.Address, Nonce: nonce}.Key()
	}

	for i, key := range keys { // highest first: below a used nonce none is free
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
