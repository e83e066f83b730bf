package payout

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// Balances returns what the master wallets of an owner hold, have reserved and have available, by network and
// asset. A wallet that was never asked for is read now and kept up to date from then on. It is left out if
// its node does not answer.
//
// The rows have no tag. Therefore only the rows of wallets that derive from the verified account's index are
// returned.
func (s *Service) Balances(ctx context.Context, owner event.Owner) ([]wallet.Balance, error) {
	rows, err := s.db.Balances(ctx, owner)
	if err != nil {
		return nil, err
	}

	settings, err := s.db.PayoutSettings(ctx, owner.AccountID)
	if err != nil {
		return nil, err
	}

	known := map[chain.Holding]bool{}
	for _, b := range rows {
		known[chain.Holding{Address: b.Address, AssetID: b.AssetID}] = true
	}

	fresh, masters := false, map[string]chain.Address{}

	for _, n := range s.registry.Networks(owner.Livemode) {
		master, began, err := s.track(ctx, owner, n, settings.Index, known)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}

			s.config.Log.WarnContext(
				ctx, "a master wallet could not be read",
				"network", n.Slug, "account", owner.AccountID, "error", err,
			)
		}

		fresh, masters[n.Slug] = fresh || began, master
	}

	if fresh {
		if rows, err = s.db.Balances(ctx, owner); err != nil {
			return nil, err
		}
	}

	return slices.DeleteFunc(
		rows,
		func(b wallet.Balance) bool { return b.Address != masters[b.Network] },
	), nil
}

// track returns the master wallet of a network. It reads the wallet, unless all its balances are known, and
// gives the rows their owner. The address is "" if the network cannot send.
func (s *Service) track(
	ctx context.Context,
	owner event.Owner,
	n chain.Network,
	index uint32,
	known map[chain.Holding]bool,
) (address chain.Address, began bool, err error) {
	if !s.sender.HasBalances(n.Slug) {
		return "", false, nil // a network that cannot send has no balances to show
	}

	master, err := s.sender.MasterWallet(ctx, n.Slug, index)
	if err != nil {
		return "", false, err
	}

	missing := false
	for _, a := range n.Assets {
		missing = missing || !known[chain.Holding{Address: master.Address, AssetID: a.ID}]
	}

	if !missing {
		return master.Address, false, nil
	}

	if err := s.sender.RefreshBalances(ctx, n.Slug, master); err != nil {
		return master.Address, false, err
	}

	return master.Address, true, s.db.Update(
		ctx,
		func(ctx context.Context, tx Tx) error { return s.sender.TrackTx(ctx, tx, owner, n.Slug, master) },
	)
}
