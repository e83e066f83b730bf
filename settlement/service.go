package settlement

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// Config configures a Service.
type Config struct {
	// DB is required.
	DB database

	// Now returns the time. Defaults to time.Now.
	Now func() time.Time
}

// Service shows settlements to merchants, and lets operators release and retry them. It is safe for concurrent
// use. Settlements open and move by themselves: the engine runs the sweeps.
type Service struct {
	db    database
	clock func() time.Time
}

// New returns a service.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}

	return &Service{db: c.DB, clock: c.Now}
}

func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// Get returns a settlement, or fault.NotFound with code resource_missing.
func (s *Service) Get(ctx context.Context, owner event.Owner, settlementID string) (Settlement, error) {
	return s.db.Settlement(ctx, owner, settlementID)
}

// List returns a page, newest first, and whether there is more.
func (s *Service) List(ctx context.Context, f Filter) (page []Settlement, more bool, err error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err = s.db.Settlements(ctx, f)

	return paging.Page(page, limit, err)
}

// OfPayments returns the settlements of payments, in any order.
func (s *Service) OfPayments(ctx context.Context, paymentIDs []string) ([]Settlement, error) {
	return s.db.SettlementsOfPayments(ctx, paymentIDs)
}

// ReleaseNow puts settlements that wait for an operator (account setting auto_release false) or for a later
// planning run into the next one. A settlement in another status is fault.State with code settlement_state;
// then none is touched.
func (s *Service) ReleaseNow(ctx context.Context, owner event.Owner, settlementIDs ...string) error {
	settlementIDs = slices.Sorted(slices.Values(settlementIDs))

	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		for _, settlementID := range settlementIDs {
			found, err := tx.Settlement(ctx, owner, settlementID)
			if err != nil {
				return err
			}

			if found.Status != Pending && found.Status != Held {
				return found.refuse("be put into the next planning run")
			}

			if found.SweepID != "" {
				continue // it is on its way
			}

			found.DueAt = s.now()
			if err := tx.PutSettlements(ctx, &found); err != nil {
				return err
			}
		}

		return nil
	})
}

// Retry puts a failed settlement back into the queue, for an operator. Steps that were paid are not paid
// again.
func (s *Service) Retry(ctx context.Context, owner event.Owner, settlementID string) (Settlement, error) {
	// spec D4.8
	var out Settlement

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		found, err := tx.Settlement(ctx, owner, settlementID)
		if err != nil {
			return err
		}

		switch {
		case found.Status != Failed:
			return found.refuse("be retried")
		case found.Reason == PaymentOrphaned: // there is no money to release
			return found.refuse("be retried before its payment is confirmed again")
		}

		running, err := inRunningRelease(ctx, tx, found)
		if err != nil {
			return err
		}

		if running {
			return found.refuse("be retried while transactions of its release may still be included")
		}

		if err := found.Return(true, false, s.now()); err != nil {
			return err
		}

		if err := tx.PutSettlements(ctx, &found); err != nil {
			return err
		}

		out = found

		return nil
	})

	return out, err
}

// inRunningRelease reports whether the settlement is in a release that is not over.
func inRunningRelease(ctx context.Context, tx Tx, s Settlement) (bool, error) {
	if s.SweepID == "" {
		return false, nil
	}

	r, err := tx.Sweep(ctx, s.SweepID)
	if err != nil {
		return false, err
	}

	return !r.Done && slices.Contains(r.SettlementIDs, s.ID), nil
}
