package sweep

import (
	"context"

	"github.com/seed-8ee7f392/payments/settlement"
)

// What is not on record may have released settlements that failed, or that wait in releases of their own: they leave
// those first.

// returnFailedTx puts the failed ones back that the transaction has released after all.
func (s *Sweeper) returnFailedTx(ctx context.Context, tx settlement.Tx, g group) error {
	for i := range g {
		if g[i].Status != settlement.Failed {
			continue
		}

		r, assigned, err := releaseOf(ctx, tx, g[i])
		if err != nil {
			return err
		}

		if assigned && !r.Done {
			return s.waitsFor(g[i])
		}

		if err := g[i].Return(true, false, s.now()); err != nil {
			return err
		}

		if err := tx.PutSettlements(ctx, &g[i]); err != nil {
			return err
		}
	}

	return nil
}

// leaveReleasesTx ends the releases that settlements wait in, as one transaction of lost records swept what several
// hold, and returns them as they wait without one.
func (s *Sweeper) leaveReleasesTx(ctx context.Context, tx settlement.Tx, g group) (group, error) {
	ended := map[string]bool{"": true}

	for _, of := range g {
		if ended[of.SweepID] {
			continue
		}

		ended[of.SweepID] = true

		r, err := tx.Sweep(ctx, of.SweepID)
		if err != nil {
			return nil, err
		}

		if isRunning(&r) {
			return nil, s.waitsFor(of)
		}

		if r.Done {
			continue
		}

		w, err := s.updateOf(ctx, tx, r)
		if err != nil {
			return nil, err
		}

		if err := w.abandon(ctx, settlement.Replanning); err != nil {
			return nil, err
		}

		if err := w.save(ctx); err != nil {
			return nil, err
		}
	}

	now, err := tx.SettlementsByID(ctx, g.ids())
	if err != nil {
		return nil, err
	}

	for i := range now {
		if now[i].Status != settlement.Failed {
			continue
		}

		if err := now[i].Return(false, false, s.now()); err != nil {
			return nil, err
		}
	}

	return now, nil
}
