package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/store"
)

// failedShownFor is how long Health shows a failed payout: its merchant was notified, and makes another one.
const failedShownFor = 24 * time.Hour

// attention holds the last counts of the settlements and payouts that wait or failed.
type attention struct {
	mu  sync.Mutex
	all []health.Attention
	at  time.Time
}

func (a *attention) get() ([]health.Attention, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()

	return slices.Clone(a.all), a.at
}

// countAttention counts the settlements and payouts that wait or failed, and reads why the oldest of each
// kind does.
func (e *Engine) countAttention(ctx context.Context) (did bool, err error) {
	counting, ok := e.config.Store.(store.AttentionReader)
	if !ok {
		return false, nil
	}

	now := e.config.Now()

	all, err := counting.Attention(ctx, now.Add(-failedShownFor))
	if err != nil {
		return false, err
	}

	if err := e.readMessages(ctx, all); err != nil {
		return false, err
	}

	e.attention.mu.Lock()
	defer e.attention.mu.Unlock()

	e.attention.all, e.attention.at = all, now

	return false, nil
}

// readMessages sets the messages of entries to the messages of their oldest objects.
func (e *Engine) readMessages(ctx context.Context, all []health.Attention) error {
	var ids []string

	for _, a := range all {
		if a.Object == "settlement" {
			ids = append(ids, a.Oldest)
		}
	}

	messages := map[string]string{}

	if len(ids) > 0 {
		found, err := e.config.Store.SettlementsByID(ctx, ids)
		if err != nil {
			return err
		}

		for _, s := range found {
			messages[s.ID] = s.Resource().ReasonMessage
		}
	}

	for i, a := range all {
		if a.Object == "payout" {
			p, err := e.config.Store.PayoutByID(ctx, a.Oldest)
			if err != nil {
				return err
			}

			messages[p.ID] = p.Resource().ReasonMessage
		}

		all[i].Message = messages[a.Oldest]
	}

	return nil
}
