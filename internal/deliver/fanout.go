package deliver

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds how an event becomes deliveries.

// FanOut is what FanOutTx asks of a transaction.
type FanOut interface {
	// EndpointsOf returns the endpoints of an owner that are not disabled.
	EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error)
	PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error
}

// FanOutTx makes one delivery of each event to each endpoint of its owner that is subscribed to it,
// in the transaction that stores the events: none is ever lost between the two. Facts that stay
// inside the house are passed over, and so is a ping, whose one delivery TestTx made.
func (s *Deliverer) FanOutTx(ctx context.Context, tx FanOut, events []event.Event) error {
	at := s.stamp()
	endpoints := make(map[event.Owner][]webhook.Endpoint, 1)

	var ds []*webhook.Delivery

	for _, ev := range events {
		if ev.Type.Internal() || ev.Type == event.Ping {
			continue
		}

		there, known := endpoints[ev.Owner]
		if !known {
			var err error
			if there, err = tx.EndpointsOf(ctx, ev.Owner); err != nil {
				return fmt.Errorf("find the webhook endpoints of account %s: %w", ev.Owner.AccountID, err)
			}

			endpoints[ev.Owner] = there
		}

		for _, e := range there {
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
