package deliver

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

// DefaultRetention is how long events and ended deliveries are kept by default.
const DefaultRetention = 30 * 24 * time.Hour // spec D8.2

// pruneBatch is how many rows one transaction deletes: so few that no other transaction waits long.
const pruneBatch = 500

// Prune deletes one batch of ended deliveries and one of events that are older than Config.Retention, each in
// a transaction of its own. did reports that there may be more.
func (s *Deliverer) Prune(ctx context.Context) (did bool, err error) {
	before := s.stamp().Add(-s.retention)

	var deliveries, events int

	err = s.db.Update(ctx, func(ctx context.Context, tx webhook.Tx) (err error) {
		deliveries, err = tx.PruneDeliveries(ctx, before, pruneBatch)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("prune webhook deliveries: %w", err)
	}

	err = s.db.Update(ctx, func(ctx context.Context, tx webhook.Tx) (err error) {
		events, err = tx.PruneEvents(ctx, before, pruneBatch)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("prune events: %w", err)
	}

	return deliveries == pruneBatch || events == pruneBatch, nil
}
