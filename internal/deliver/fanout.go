package deliver

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// FanOut is the part of a transaction that FanOutTx uses.
type FanOut interface {
	// EndpointsOf returns the endpoints of an owner that are not disabled.
	EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error)
	PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error
}

// FanOutTx stores one delivery of each event for each subscribed endpoint of its owner. It runs in the
// transaction that stores the events, so that no event loses its deliveries. It skips internal events, and
// pings, whose one delivery webhook.Service.Test made.
func (s *Deliverer) FanOutTx(ctx context.Context, tx FanOut, events []event.Event) error {
	at := s.stamp()
	endpoints := make(map[event.Owner][]webhook.Endpoint, 1)

	var ds []*webhook.Delivery

	for _, ev := range events {
		if ev.Type.Internal() || ev.Type == event.Ping {
			continue
		}

		subscribed, known := endpoints[ev.Owner]
		if !known {
			var err error
			if subscribed, err = tx.EndpointsOf(ctx, ev.Owner); err != nil {
				return fmt.Errorf("find the webhook endpoints of account %s: %w", ev.Owner.AccountID, err)
			}

			endpoints[ev.Owner] = subscribed
		}

		for _, e := range subscribed {
			if e.Wants(ev.Type) {
				ds = append(ds, webhook.NewDelivery(s.ids.Next(), ev, e.ID, webhook.ByEvent, at))
			}
		}
	}

	if len(ds) == 0 {
		return nil
	}

	return putDeliveries(ctx, tx, ds...)
}

// deliveryPutter is a transaction that stores deliveries.
type deliveryPutter interface {
	PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error
}

func putDeliveries(ctx context.Context, tx deliveryPutter, ds ...*webhook.Delivery) error {
	if err := tx.PutDeliveries(ctx, ds...); err != nil {
		return fmt.Errorf("store webhook deliveries: %w", err)
	}

	return nil
}
