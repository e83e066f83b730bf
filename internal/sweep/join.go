package sweep

import (
	"context"
	"errors"
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
	err = p.update(ctx, func(ctx context.Context, tx settlement.Tx) error {
		joined = false

		fresh, err := p.lockUnchanged(ctx, tx, g)
		if err != nil || fresh == nil {
			return err
		}

		w, moved, err := p.sweepOfGone(ctx, tx, fresh)
		if err != nil || w == nil {
			return err
		}

		joined = true

		return w.joinTx(ctx, moved)
	})

	return joined, err
}

// sweepOfGone returns the update of a sweep that moved some of a group for payments that are gone, and those; nil
// without one.
func (p *planningRun) sweepOfGone(
	ctx context.Context,
	tx settlement.Tx,
	g group,
) (w *sweepUpdate, moved group, err error) {
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
			return nil, nil, err
		}

		for _, gone := range page {
			if !isOrphaned(gone) {
				continue
			}

			r, in, err := releaseOf(ctx, tx, gone)
			if err != nil {
				return nil, nil, err
			}

			sameKey := r.Deposit.Address == g[0].Deposit.Address && r.AssetID == g[0].AssetID
			if !in || !sameKey {
				continue
			}

			w, err := p.sweptUpdate(ctx, tx, r)
			if err != nil {
				return nil, nil, err
			}

			if w == nil {
				continue
			}

			if moved, err = w.moved(ctx, g); err != nil || len(moved) > 0 {
				return w, moved, err
			}
		}

		filter.After = page[len(page)-1].ID
	}
}

// moved returns those of a group that the sweep moved for payments that are gone, while no later release has claimed
// any of it: what earlier transactions of theirs left of them fits in what it took beyond the payments it stands for.
func (w *sweepUpdate) moved(ctx context.Context, g group) (moved group, err error) {
	step := sweptStep(w.release)

	claimed, err := w.isClaimed(ctx, step)
	if err != nil || claimed || step.Unclaimed.IsZero() {
		return nil, err
	}

	took := step.TokenTaken
	if w.ofNative() {
		took = step.ResidueTaken
	}

	for _, s := range g {
		if own := leftOfGross(s); !took.Less(own) {
			moved, took = append(moved, s), took.Sub(own)
		}
	}

	return moved, nil
}

// joinTx releases settlements that the sweep moved, with what it brought. Its network fees are divided anew among all
// of the release, and platform fees that it did not pay are carried.
func (w *sweepUpdate) joinTx(ctx context.Context, moved group) error {
	step := sweptStep(w.release)
	step.JoinedBy = append(slices.Clip(step.JoinedBy), moved.ids()...)

	if err := w.correctGross(ctx, moved.spent(), moved.gross()); err != nil {
		return err
	}

	w.splitNetworkFees(func() {
		w.group = append(slices.Clip(w.group), moved...)
		w.release.SettlementIDs = w.group.ids()
	})

	for _, t := range w.release.Steps {
		w.copyTxHash(wallet.Transaction{ID: t.TransactionID, Kind: kindOf(t.Kind), TxHash: t.TxHash})
	}

	left, err := w.unclaimedOf(ctx, step)
	if err != nil {
		return err
	}

	var released chain.Amount

	for i := len(w.group) - len(moved); i < len(w.group); i++ {
		s := &w.group[i]

		if err := w.regain(s); err != nil {
			return err
		}

		net := chaindata.Min(left, leftOfGross(*s))
		left, released = left.Sub(net), released.Add(net)

		if err := settlementstate.Release(s, net, w.now()); err != nil {
			return err
		}

		w.events[s.ID] = event.SettlementReleased
	}

	if err := errors.Join(
		w.setUnclaimed(ctx, step, step.Unclaimed.Sub(released)),
		w.addCarry(ctx),
	); err != nil {
		return err
	}

	return w.save(ctx)
}
