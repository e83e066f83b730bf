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

// A fork may remove a payment that does not come back, and its output with it. Bytes that spend that output
// cannot be included then, but no block proves it. The other outputs that they spend wait with them:
//
//	payout   replaced, or displaced by its cancel, by bytes that spend the outputs that still exist. If none exists,
//	         it waits for them, and Health reports it: bytes that were sent may still pay it. Its children wait too,
//	         until the block of the replacement proves them dead, see rebuild.go
//	sweep    fails for want of money once no node has its bytes for CancelAfter, and is planned again with the
//	         outputs that exist
//
// If a fork restores the output and the bytes that were given up, at most one of the two transactions is
// included: both spend an output that was never gone.

// goneCoins returns the coins among inputs that are in no block any more and are not our own change in the
// pool.
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

// waitsForDependents reports whether other transactions depend on one that may still be included, and pay for
// it. It is false if the transaction spends a coin that is gone and no node has it.
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

// withoutGone returns bytes without the inputs that are gone, for a replacement that shares the others. The
// payment that a bump spends stays. A sweep keeps all inputs: it moves their money.
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

// displacedBytes returns the bytes that a cancel displaces, with the inputs that the cancel can share. It
// leaves out the payment that a bump spends, which is not the wallet's and may never be included.
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

// lostSince returns the time since which this process has seen a transaction lost: no node has its bytes, and
// each attempt spends a coin that is gone. Otherwise lost is false. known is the attempt that a node has, or
// "".
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

// lostWallets returns the wallets with a transaction that has been lost for long, as this process saw it.
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

		if !gone || t.State != wallet.Signed && t.State != wallet.Broadcast { // another process moved it
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

// giveUpLost fails a sweep of coins that can only be included with a coin that is gone.
func (d *walletWorker) giveUpLost(ctx context.Context, t wallet.Transaction) error {
	d.lost.Delete(t.ID)

	d.config.Log.WarnContext(
		ctx, "a sweep is given up, as a fork took an output away that it spends; the others are swept anew",
		"transaction", t.ID, "network", t.Network,
	)

	return d.giveUp(ctx, t, wallet.FailInsufficientFunds)
}
