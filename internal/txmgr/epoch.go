package txmgr

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// After records were restored, master wallets are frozen until a person has compared them with their
// networks.

// Epoch counts how often the records were replaced by older ones; see payments.Config.Epoch.
type Epoch struct {
	Number uint64
	// FirstAccount is the index of the first account that was made in the epoch, and Began the time at which
	// it began. Before the epoch began, FirstAccount is above all indexes, and Began is zero.
	FirstAccount uint32
	Began        time.Time
}

// BeginEpochTx freezes a master wallet that nobody has compared with its network in this epoch. It runs as
// the epoch begins, or before the wallet signs if it was missed then. Watch-only wallets never freeze.
func (o *Manager) BeginEpochTx(ctx context.Context, tx wallet.Tx, network string, party chain.Party) error {
	w, _, err := o.walletOf(ctx, tx, network, party)
	if err != nil || w.Epoch >= o.config.Epoch().Number || o.watchOnly(network, party.Address) {
		return err
	}

	o.freezeForEpoch(&w)

	return tx.PutWallet(ctx, &w)
}

// freezeForEpoch freezes a wallet, even if an earlier epoch froze it. Payouts made since the epoch began do
// not wait for a person, even if the wallet is frozen later.
func (o *Manager) freezeForEpoch(w *wallet.Wallet) {
	at := o.config.Epoch().Began
	if at.IsZero() {
		at = o.now()
	}

	walletstate.Freeze(w, wallet.FrozenEpoch, "", at)
	w.FrozenAt = at
}

// ReviewTx records that a person has compared a master wallet with its network, and ends the freeze of a new epoch.
func (o *Manager) ReviewTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	party chain.Party,
) (wallet.Wallet, error) {
	w, _, err := o.walletOf(ctx, tx, network, party)
	if err != nil {
		return w, err
	}

	missed := o.hasMissedEpoch(w)
	frozen := w.Frozen == wallet.FrozenEpoch
	w.Epoch = max(w.Epoch, o.config.Epoch().Number)

	switch {
	case frozen:
		w.Frozen = wallet.FrozenUnrecorded
		return w, o.thawTx(ctx, tx, &w)
	case missed:
		return w, tx.PutWallet(ctx, &w)
	}

	return w, nil
}

// beginEpoch freezes the wallet if the start of the epoch did not; see BeginEpochTx.
func (d *walletWorker) beginEpoch(ctx context.Context) error {
	missed, err := d.missedEpoch(ctx, d.db, d.network.Slug, d.party)
	if err == nil && missed {
		err = d.db.Update(ctx, func(ctx context.Context, tx wallet.Tx) error {
			return d.BeginEpochTx(ctx, tx, d.network.Slug, d.party)
		})
	}

	return asStoreError(err)
}

// madeIn returns the earliest epoch in which a key may have been used first: 0 for the master key of an
// account from before this epoch.
func (o *Manager) madeIn(key chain.KeyRef) uint64 {
	epoch := o.config.Epoch()
	if key.Role == chain.RoleMaster && key.Index < epoch.FirstAccount {
		return 0
	}

	return epoch.Number
}

// hasMissedEpoch reports whether an epoch began without freezing a master wallet, and nobody has compared the
// wallet with its network since. Its network was not served then, or its key was missing. Lost records may
// have paid from it.
func (o *Manager) hasMissedEpoch(w wallet.Wallet) bool {
	epoch := o.config.Epoch()
	frozen := w.Frozen == wallet.FrozenEpoch && !w.FrozenAt.Before(epoch.Began)

	return w.Epoch < epoch.Number && !frozen && w.Party.Key.Role == chain.RoleMaster &&
		!o.watchOnly(w.Network, w.Party.Address)
}

// missedEpoch reports whether the wallet of a party hasMissedEpoch.
func (o *Manager) missedEpoch(
	ctx context.Context,
	r wallet.Reader,
	network string,
	party chain.Party,
) (bool, error) {
	if o.config.Epoch().Number == 0 || party.Key.Role != chain.RoleMaster {
		return false, nil
	}

	w, _, err := o.walletOf(ctx, r, network, party)

	return err == nil && o.hasMissedEpoch(w), err
}

// walletOf returns the stored wallet of a party, or a newWallet; stored reports which.
func (o *Manager) walletOf(
	ctx context.Context,
	r wallet.Reader,
	network string,
	party chain.Party,
) (w wallet.Wallet, stored bool, err error) {
	w, stored, err = r.Wallet(ctx, network, party.Address)
	if err == nil && !stored {
		w, err = o.newWallet(ctx, r, network, party)
	}

	return w, stored, err
}
