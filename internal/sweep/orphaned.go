package sweep

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// orphanWait is how long a release waits for the payment of its last settlement to come back, if nothing else waits at
// its address. It is shorter than a
// payment may be in neither the chain nor the pool before it is dropped, so what is owed for a dropped payment is on
// record.
const orphanWait = 12 * time.Hour

// stalledAfter is how long the payments of a release are gone before tokens at its address do not wait for a
// transaction of it that nothing pays for. What a short fork returns to the pool is in a block again by then.
const stalledAfter = 15 * time.Minute

// orphanedLast returns the settlement whose payment left the chain last, if the payments of all did.
func orphanedLast(g group) (last settlement.Settlement, ok bool) {
	for _, s := range g {
		if s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
			return settlement.Settlement{}, false
		}

		if s.FailedAt.After(last.FailedAt) {
			last = s
		}
	}

	return last, len(g) > 0
}

// waitsForPayments reports whether a release may still end as planned: the payment of one of its settlements is in
// the chain, or may come back.
func (s *Sweeper) waitsForPayments(g group) bool {
	last, orphaned := orphanedLast(g)

	return !orphaned || s.now().Sub(last.FailedAt) < orphanWait
}

// othersWait reports whether settlements wait for a release at its address, or another one goes on there: they do not
// wait for payments that may come back, nor count on what this release took for those.
func (p *planningRun) othersWait(ctx context.Context, r settlement.Sweep) (bool, error) {
	if p.spendsCoins {
		return false, nil // no release waits for another
	}

	for _, asset := range p.network.Assets {
		at, err := p.db.SettlementsAt(ctx, r.Network, r.Deposit.Address, asset.ID)
		if err != nil {
			return false, &storeError{err}
		}

		if len(eligible(at)) > 0 {
			return true, nil
		}
	}

	live, err := p.db.SweepsAt(ctx, r.Network, []chain.Address{r.Deposit.Address})
	if err != nil {
		return false, &storeError{err}
	}

	for _, other := range live {
		g, err := p.db.SettlementsByID(ctx, other.SettlementIDs)
		if err != nil {
			return false, &storeError{err}
		}

		if _, orphaned := orphanedLast(g); other.ID != r.ID && len(g) > 0 && !orphaned {
			return true, nil
		}
	}

	return false, nil
}

// isStalled reports whether a release of native coin has a transaction under way that nothing pays for: the payments
// of all its settlements are gone, those that it has not released yet since stalledAfter.
func (s *Sweeper) isStalled(ctx context.Context, r *settlement.Sweep) (bool, error) {
	if !isRunning(r) || s.now().Sub(r.CreatedAt) < stalledAfter || !s.isNative(r) {
		return false, nil
	}

	g, err := s.db.SettlementsByID(ctx, r.SettlementIDs)
	pays := slices.ContainsFunc(g, func(of settlement.Settlement) bool {
		return !isOrphaned(of) || s.now().Sub(of.FailedAt) < stalledAfter
	})

	return err == nil && len(g) > 0 && !pays, err
}

// isNative reports whether a release is of the native coin of its network.
func (s *Sweeper) isNative(r *settlement.Sweep) bool {
	n, _ := s.registry.Network(r.Network)
	native, _ := n.Native()

	return r.AssetID == native.ID
}

// oweOrphaned has the address owe what a release without a sweep took for payments that are gone: the transactions
// that paid fees were paid by what others brought there. Coins that are spent bear their own costs.
func (w *sweepUpdate) oweOrphaned(ctx context.Context) error {
	step := lastStep(w.release)
	if step == nil || !w.ofNative() || w.spendsCoins() {
		return nil
	}

	before := step.LostTaken
	step.LostTaken = chain.Amount{}

	if w.release.Done && !isSwept(w.release) {
		step.LostTaken = w.costOfNobody()

		for _, s := range w.group {
			if isOrphaned(s) && s.SweepID == w.release.ID {
				step.LostTaken = step.LostTaken.Add(s.FeePaid).Add(s.NetworkFees)
			}
		}
	}

	return w.addResidue(ctx, w.nativeID(), before, step.LostTaken)
}

// spendsCoins is spendsCoinsOn of the release's network.
func (w *sweepUpdate) spendsCoins() bool { return w.spendsCoinsOn(w.release.Network) }

// spendsCoinsOn reports whether one transaction of a network spends the outputs of several addresses.
func (s *Sweeper) spendsCoinsOn(network string) bool {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false
	}

	_, spends := driver.(chain.CoinReader)

	return spends
}

// oweFailedTx corrects what an address owes for a release that ended without a sweep, when the payment of one of its
// settlements is gone or back. changed is that settlement as it will be stored.
func (s *Sweeper) oweFailedTx(
	ctx context.Context,
	tx settlement.Tx,
	r settlement.Sweep,
	changed settlement.Settlement,
) error {
	if !r.Done || isSwept(&r) {
		return nil
	}

	w, err := s.updateOf(ctx, tx, r)
	if err != nil {
		return err
	}

	if i := slices.Index(w.group.ids(), changed.ID); i >= 0 {
		w.group[i] = changed
	}

	if err := w.oweOrphaned(ctx); err != nil {
		return err
	}

	return s.putSweep(ctx, tx, w.release)
}
