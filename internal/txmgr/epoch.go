package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// This file freezes master wallets of records that were restored, until a person has compared them with their networks.

// BeginEpochTx freezes a master wallet that nobody has compared with its network in this epoch, as the epoch begins, or
// before the wallet signs where that was missed. Watch-only wallets never freeze.
func (o *Manager) BeginEpochTx(ctx context.Context, tx wallet.Tx, network string, party chain.Party) error {
	if o.watchOnly(network, party.Address) {
		return nil
	}

	w, found, err := tx.Wallet(ctx, network, party.Address)
	if err != nil {
		return err
	}

	if !found {
		if w, err = o.newWallet(ctx, tx, network, party); err != nil {
			return err
		}
	}

	if number, _ := o.config.Epoch(); w.Epoch >= number {
		return nil
	}

	walletstate.Freeze(&w, wallet.FrozenEpoch, "", o.now())
	w.FrozenAt = o.now() // also of one that an earlier epoch froze

	return tx.PutWallet(ctx, &w)
}

// ReviewTx records that a person has compared a wallet with its network, and ends the freeze of a new epoch.
func (o *Manager) ReviewTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
) (wallet.Wallet, error) {
	w, found, err := tx.Wallet(ctx, network, address)
	if err != nil || !found {
		return w, err
	}

	missed := o.hasMissedEpoch(w)
	number, _ := o.config.Epoch()
	w.Epoch = max(w.Epoch, number)

	switch {
	case missed:
		return w, tx.PutWallet(ctx, &w)
	case w.Frozen != wallet.FrozenEpoch:
		return w, nil
	}

	w.Frozen = wallet.FrozenUnrecorded

	return w, o.thawTx(ctx, tx, &w)
}

// beginEpoch freezes the wallet where the epoch did not; see BeginEpochTx.
func (d *walletWorker) beginEpoch(ctx context.Context) error {
	missed, err := d.missedEpoch(ctx, d.db, d.network.Slug, d.party)
	if err == nil && missed {
		err = d.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
			return d.BeginEpochTx(ctx, tx, d.network.Slug, d.party)
		})
	}

	return asStoreError(err)
}

// madeIn returns the epoch in which a key was used first, as far as that can be: 0 for the master key of an account
// from before this epoch.
func (o *Manager) madeIn(key chain.KeyRef) uint64 {
	number, firstAccount := o.config.Epoch()
	if key.Role == chain.RoleMaster && key.Index < firstAccount {
		return 0
	}

	return number
}

// hasMissedEpoch reports whether nobody compared a master wallet with its network since an epoch began, which did not
// freeze it: its network was not served then, or its key was missing. Lost records may have paid from it.
func (o *Manager) hasMissedEpoch(w wallet.Wallet) bool {
	number, _ := o.config.Epoch()

	return w.Epoch < number && w.Frozen != wallet.FrozenEpoch && w.Party.Key.Role == chain.RoleMaster &&
		!o.watchOnly(w.Network, w.Party.Address)
}

// missedEpoch reports whether the wallet of a party hasMissedEpoch.
func (o *Manager) missedEpoch(
	ctx context.Context,
	r wallet.Reader,
	network string,
	party chain.Party,
) (bool, error) {
	w, found, err := r.Wallet(ctx, network, party.Address)
	if err == nil && !found {
		w, err = o.newWallet(ctx, r, network, party)
	}

	return err == nil && o.hasMissedEpoch(w), err
}
