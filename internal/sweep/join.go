package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A sweep may stand whose payment is gone: on this branch it moved what another payment brought. Where it took all of
// that one, nothing is left to send, and the settlement joins that sweep: it is released by it, and reverted with it.

// join has those of a group that an earlier sweep moved join it. joined is false when there are none.
func (p *planningRun) join(ctx context.Context, g group) (joined bool, err error) {
	if p.spendsCoins {
		return false, nil // a sweep that stands spent the coin of one payment, and of no other
	}

	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		joined = false

		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil || fresh == nil {
			return err
		}

		w, err := p.sweepOfGone(ctx, tx, fresh)
		if err != nil || w == nil {
			return err
		}

		joined = true

		return w.joinTx(ctx, fresh)
	})

	return joined, err
}

// sweepOfGone returns the update of a sweep that took one of the group for a payment that is gone; nil without one.
func (p *planningRun) sweepOfGone(ctx context.Context, tx settlement.Tx, g group) (*sweepUpdate, error) {
	filter := settlement.Filter{
		Owner:            g[0].Owner,
		Statuses:         []settlement.Status{settlement.Failed, settlement.Reverted},
		Networks:         []string{p.network.Slug},
		InvoiceID:        g[0].InvoiceID,
		DepositAddressID: g[0].DepositAddressID,
		Limit:            maxDue,
	}

	for {
		page, err := tx.Settlements(ctx, filter)
		if err != nil || len(page) == 0 {
			return nil, err
		}

		for _, gone := range page {
			r, in, err := releaseOf(ctx, tx, gone)
			if err != nil {
				return nil, err
			}

			sameKey := r.Deposit.Address == g[0].Deposit.Address && r.AssetID == g[0].AssetID
			if !in || !sameKey || !isOrphaned(gone) {
				continue
			}

			w, err := p.sweptUpdate(ctx, tx, r)
			if err != nil {
				return nil, err
			}

			if w != nil && len(w.moved(g)) > 0 {
				return w, nil
			}
		}

		filter.After = page[len(page)-1].ID
	}
}

// moved returns those of a group that the sweep moved for payments that are gone: what earlier transactions of theirs
// left of them fits in what it took beyond the payments it stands for.
func (w *sweepUpdate) moved(g group) (moved group) {
	step := sweptStep(w.release)

	took := step.TokenTaken
	if w.ofNative() {
		took = step.ResidueTaken
	}

	for _, s := range g {
		if own := s.Gross.SubFloor(group{s}.spent()); !step.Unclaimed.IsZero() && !took.Less(own) {
			moved, took = append(moved, s), took.Sub(own)
		}
	}

	return moved
}

// joinTx releases those of a group that the sweep moved, with what it brought. Its network fees are divided anew among
// all that it stood for, and platform fees that it did not pay are carried.
func (w *sweepUpdate) joinTx(ctx context.Context, g group) error {
	moved, step := w.moved(g), sweptStep(w.release)
	step.Joined = true

	if err := w.correctGross(ctx, moved.spent(), moved.gross()); err != nil {
		return err
	}

	w.splitNetworkFeesWith(moved)

	for _, t := range w.release.Steps {
		w.copyTxHash(wallet.Transaction{ID: t.TransactionID, Kind: kindOf(t.Kind), TxHash: t.TxHash})
	}

	left, err := w.unclaimedOf(ctx, step)
	if err != nil {
		return err
	}

	for i := len(w.group) - len(moved); i < len(w.group); i++ {
		s := &w.group[i]

		if err := settlementstate.Assign(s, w.release.ID, w.release.Master.Address); err != nil {
			return err
		}

		if err := settlementstate.Start(s, chain.Amount{}); err != nil {
			return err
		}

		net := chaindata.Min(left, s.Gross.SubFloor(group{*s}.spent()))
		left = left.Sub(net)

		if err := w.setUnclaimed(ctx, step, step.Unclaimed.Sub(net)); err != nil {
			return err
		}

		if err := settlementstate.Release(s, net, w.now()); err != nil {
			return err
		}

		w.events[s.ID] = event.SettlementReleased
	}

	if err := w.addCarry(ctx); err != nil {
		return err
	}

	return w.save(ctx)
}

// splitNetworkFeesWith has settlements join the release, and divides its network fees anew.
func (w *sweepUpdate) splitNetworkFeesWith(joining group) {
	total := totalNetworkFees(w.release)
	before := append(w.shares(total), make([]chain.Amount, len(joining))...)

	w.group = append(slices.Clip(w.group), joining...)
	w.release.SettlementIDs = w.group.ids()

	for i, share := range w.shares(total) {
		w.group[i].NetworkFees = w.group[i].NetworkFees.Add(share).SubFloor(before[i])
	}
}

// unclaimedOf returns what nobody claims yet of what a sweep brought for payments that are gone, in base units.
func (w *sweepUpdate) unclaimedOf(ctx context.Context, step *settlement.Step) (chain.Amount, error) {
	row, err := lockResidue(ctx, w.tx, w.release.Network, w.release.Deposit.Address)

	return chaindata.Min(step.Unclaimed, residueOf(row, w.release.AssetID, w.nativeID()).Unclaimed), err
}
