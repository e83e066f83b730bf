package txmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A fork may take a payment away that does not come back, and its output with it. Bytes that spend it cannot be
// included then, which no block proves, and the other outputs that they spend wait with them:
//
//	payout   replaced, or displaced by its cancel, by bytes that spend the outputs that are there; where none is, it
//	         waits for them, and Health says so: it may be paid by bytes that are out. So does what rests on it, until
//	         the block of what replaced it proves that it is dead, see rebuild.go
//	sweep    failed for want of money once no node has its bytes for CancelAfter, and planned again with what is there
//
// Should a fork bring the output back, and the bytes that were given up with it, at most one of the two is included:
// both spend an output that was there all the time.

// goneCoins returns the coins among inputs that are in no block any more, nor own change in the pool.
func goneCoins(
	ctx context.Context,
	r wallet.Reader,
	network string,
	inputs []chain.Outpoint,
) ([]wallet.Coin, error) {
	if len(inputs) == 0 {
		return nil, nil
	}

	coins, err := coinsAt(ctx, r, network, inputs)

	return slices.DeleteFunc(coins, func(c wallet.Coin) bool { return c.Height > 0 || c.Depth > 0 }), err
}

// waitsForDependents reports whether other transactions rest on one that may still be included, and pay for it. What
// spends a coin that is gone, and no node has, waits for none.
func (d *walletWorker) waitsForDependents(ctx context.Context, t wallet.Transaction) (bool, error) {
	rests, err := hasDependents(ctx, d.db, t)
	if err != nil || !rests {
		return false, err
	}

	gone, err := spendsGone(ctx, d.db, t)
	if err != nil || !gone {
		return true, asStoreError(err)
	}

	known, _, err := d.lookUp(ctx, t)

	return known != "", err
}

// spendsGone reports whether the newest bytes of a transaction spend a coin that is gone.
func spendsGone(ctx context.Context, r wallet.Reader, t wallet.Transaction) (bool, error) {
	if len(t.Attempts) == 0 {
		return false, nil
	}

	gone, err := goneCoins(ctx, r, t.Network, walletstate.LastAttempt(&t).Signed.Inputs)

	return len(gone) > 0, err
}

// withoutGone returns bytes with those of their inputs that others can share which replace them. The payment that a
// bump spends counts as there, and a sweep shares all: it moves what they hold.
func (d *walletWorker) withoutGone(
	ctx context.Context,
	t wallet.Transaction,
	signed chain.Signed,
) (chain.Signed, error) {
	if sweepsCoins(t) {
		return signed, nil
	}

	gone, err := goneCoins(ctx, d.db, t.Network, signed.Inputs)
	if err != nil {
		return chain.Signed{}, &storeError{err}
	}

	signed.Inputs = slices.DeleteFunc(slices.Clone(signed.Inputs), func(in chain.Outpoint) bool {
		bumped := t.Order.Bumps != nil && in == t.Order.Bumps.Outpoint

		return !bumped && slices.ContainsFunc(gone, func(c wallet.Coin) bool { return c.Outpoint == in })
	})

	return signed, nil
}

// displacedBytes returns the bytes that a cancel displaces, with the inputs that it can share. The payment that a bump
// spends is none of them: it is not the wallet's and may never be included.
func (d *walletWorker) displacedBytes(ctx context.Context, t wallet.Transaction) (chain.Signed, error) {
	last, err := d.withoutGone(ctx, t, walletstate.LastAttempt(&t).Signed)
	if err != nil || t.Order.Bumps == nil {
		return last, err
	}

	last.Inputs = slices.DeleteFunc(
		slices.Clone(last.Inputs),
		func(in chain.Outpoint) bool { return in == t.Order.Bumps.Outpoint },
	)

	return last, nil
}

// sweepsCoins reports whether a transaction is a sweep of outputs.
func sweepsCoins(t wallet.Transaction) bool {
	return t.Kind == wallet.Sweep && len(t.Attempts) > 0 && len(walletstate.LastAttempt(&t).Signed.Inputs) > 0
}

// lostSince returns since when this process has seen no node with the bytes of a transaction, and all of them spend a
// coin that is gone; lost is false where it has not. known is the attempt that a node has, or empty.
func (d *walletWorker) lostSince(
	ctx context.Context,
	t wallet.Transaction,
	known string,
) (since time.Time, lost bool, err error) {
	lost = known == "" && len(t.Attempts) > 0

	for i := 0; lost && i < len(t.Attempts); i++ {
		coins, err := goneCoins(ctx, d.db, t.Network, t.Attempts[i].Signed.Inputs)
		if err != nil {
			return time.Time{}, false, &storeError{err}
		}

		lost = len(coins) > 0
	}

	if !lost {
		d.lost.Delete(t.ID)
		return time.Time{}, false, nil
	}

	first, _ := d.lost.LoadOrStore(t.ID, d.now())
	since, _ = first.(time.Time)

	return since, true, nil
}

// lostWallets returns the wallets with a transaction that is lost for long, as this process saw it.
func (o *Manager) lostWallets(ctx context.Context, network string) (out []health.Wallet, err error) {
	o.lost.Range(func(key, value any) bool {
		id, _ := key.(string)
		since, _ := value.(time.Time)

		if o.now().Sub(since) < stuckAfter*o.config.ReplaceAfter {
			return true
		}

		var t wallet.Transaction

		if t, err = o.db.Transaction(ctx, id); err != nil {
			return false
		}

		var gone bool

		if gone, err = spendsGone(ctx, o.db, t); err != nil {
			return false
		}

		if !gone || t.State != wallet.Signed && t.State != wallet.Broadcast { // another process saw it
			o.lost.Delete(id)
			return true
		}

		if t.Network == network {
			out = append(out, health.Wallet{
				Network:    network,
				Address:    string(t.Order.From.Address),
				AccountID:  t.Owner.AccountID,
				StuckSince: since,
				Reason: fmt.Sprintf(
					"a fork took an output away that the %s of %s spends, and no node has its bytes: it waits until "+
						"that output is back, or others of its outputs can be spent instead",
					t.Kind,
					t.ObjectID,
				),
			})
		}

		return true
	})

	slices.SortFunc(out, func(a, b health.Wallet) int { return cmp.Compare(a.Address, b.Address) })

	return out, err
}

// giveUpLost fails a sweep of coins that cannot be included without one that is gone.
func (d *walletWorker) giveUpLost(ctx context.Context, t wallet.Transaction) error {
	d.lost.Delete(t.ID)

	d.config.Log.WarnContext(
		ctx, "a sweep is given up, as a fork took an output away that it spends; the others are swept anew",
		"transaction", t.ID, "network", t.Network,
	)

	return d.giveUp(ctx, t, wallet.FailInsufficientFunds)
}
