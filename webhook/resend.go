package webhook

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// This file holds the merchants' operations on events and deliveries: read, resend, and test an endpoint.

// Test sends a ping to an endpoint, whatever its subscription.
//
// Errors: fault.State, code webhook_endpoint_disabled.
func (s *Service) Test(ctx context.Context, owner event.Owner, endpointID string) (d Delivery, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		d, err = s.ping(ctx, tx, owner, endpointID)
		return err
	})

	return d, err
}

// ping is Test inside a transaction. It sets the ping's event id, because the delivery refers to it: the
// engine must keep an id that is set.
func (s *Service) ping(ctx context.Context, tx Tx, owner event.Owner, endpointID string) (Delivery, error) {
	// spec D8.21
	e, err := receiving(ctx, tx, owner, endpointID)
	if err != nil {
		return Delivery{}, err
	}

	e.Sequence++
	if err := tx.PutEndpoint(ctx, &e); err != nil {
		return Delivery{}, err
	}

	ping := eventctx.About(e, event.Ping)[0]
	ping.ID = s.ids.Event()

	if err := tx.AppendEvents(ctx, ping); err != nil {
		return Delivery{}, err
	}

	d := NewDelivery(s.ids.Next(), ping, e.ID, ByTest, s.stamp())
	err = putDeliveries(ctx, tx, d)

	return *d, err
}

// ResendEvent makes new deliveries of an event to every endpoint that is now subscribed to its type. A ping
// goes to the endpoint that it tests.
//
// Errors: fault.State, code webhook_endpoint_none, when there is no such endpoint.
func (s *Service) ResendEvent(
	ctx context.Context,
	owner event.Owner,
	eventID string,
) (ds []Delivery, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		ds, err = s.resendEvent(ctx, tx, owner, eventID)
		return err
	})

	return ds, err
}

// resendEvent is ResendEvent inside a transaction.
func (s *Service) resendEvent(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	eventID string,
) ([]Delivery, error) { // spec D8.20
	ev, err := eventOf(ctx, tx, owner, eventID)
	if err != nil {
		return nil, err
	}

	endpoints, err := tx.WebhookEndpoints(ctx, EndpointFilter{Owner: owner, Limit: maxEndpoints})
	if err != nil {
		return nil, fmt.Errorf("list the webhook endpoints of account %s: %w", owner.AccountID, err)
	}

	at := s.stamp()

	var ds []*Delivery

	for _, e := range endpoints {
		if ev.Type == event.Ping && (e.ID != ev.ObjectID || e.Status == Disabled) ||
			ev.Type != event.Ping && !e.Wants(ev.Type) {
			continue
		}

		ds = append(ds, NewDelivery(s.ids.Next(), ev, e.ID, ByResend, at))
	}

	if len(ds) == 0 {
		return nil, fault.New(
			fault.State,
			"webhook_endpoint_none",
			"no enabled webhook endpoint is subscribed to %s: subscribe one, or resend a delivery to its own endpoint",
			ev.Type,
		)
	}

	if err := putDeliveries(ctx, tx, ds...); err != nil {
		return nil, err
	}

	out := make([]Delivery, len(ds))
	for i, d := range ds {
		out[i] = *d
	}

	return out, nil
}

// ResendDelivery makes a new delivery of the same event to the same endpoint.
//
// Errors: fault.State, code webhook_endpoint_disabled.
func (s *Service) ResendDelivery(
	ctx context.Context,
	owner event.Owner,
	deliveryID string,
) (d Delivery, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		d, err = s.resendDelivery(ctx, tx, owner, deliveryID)
		return err
	})

	return d, err
}

// resendDelivery is ResendDelivery inside a transaction.
func (s *Service) resendDelivery(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	deliveryID string,
) (Delivery, error) {
	old, err := tx.Delivery(ctx, owner, deliveryID)
	if err != nil {
		return Delivery{}, notFound(err, "webhook delivery", deliveryID)
	}

	if _, err := receiving(ctx, tx, owner, old.EndpointID); err != nil {
		return Delivery{}, err
	}

	ev, err := eventOf(ctx, tx, owner, old.EventID)
	if err != nil {
		return Delivery{}, err
	}

	d := NewDelivery(s.ids.Next(), ev, old.EndpointID, ByResend, s.stamp())
	err = putDeliveries(ctx, tx, d)

	return *d, err
}

// receiving returns an endpoint.
//
// Errors: fault.State, code webhook_endpoint_disabled.
func receiving(ctx context.Context, tx Tx, owner event.Owner, id string) (Endpoint, error) {
	e, err := endpoint(ctx, tx, owner, id)
	if err == nil && e.Status == Disabled {
		err = fault.New(
			fault.State, "webhook_endpoint_disabled",
			"webhook endpoint %s is disabled: enable it before anything is sent to it",
			id,
		)
	}

	return e, err
}

func putDeliveries(ctx context.Context, tx interface {
	PutDeliveries(context.Context, ...*Delivery) error
}, ds ...*Delivery,
) error {
	if err := tx.PutDeliveries(ctx, ds...); err != nil {
		return fmt.Errorf("store webhook deliveries: %w", err)
	}

	return nil
}

// GetDelivery returns a delivery, or fault.NotFound.
func (s *Service) GetDelivery(ctx context.Context, owner event.Owner, id string) (Delivery, error) {
	d, err := s.db.Delivery(ctx, owner, id)
	return d, notFound(err, "webhook delivery", id)
}

// ListDeliveries returns a page of deliveries, newest first, and whether there are more. A limit of 0 is 50;
// limits outside 1 to 100 are set to the nearest bound.
//
// Errors: fault.NotFound for an event or endpoint in the filter that the owner does not have.
func (s *Service) ListDeliveries(
	ctx context.Context,
	f DeliveryFilter,
) (page []Delivery, more bool, err error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	if page, err = s.db.Deliveries(ctx, f); err != nil {
		return nil, false, err
	}

	if len(page) == 0 && f.After == "" { // an empty list may belong to an unknown object
		if f.EventID != "" {
			_, err = eventOf(ctx, s.db, f.Owner, f.EventID)
		}

		if f.EndpointID != "" && err == nil {
			_, err = endpoint(ctx, s.db, f.Owner, f.EndpointID)
		}
	}

	return paging.Page(page, limit, err)
}

// GetEvent returns an event, or fault.NotFound.
func (s *Service) GetEvent(ctx context.Context, owner event.Owner, id string) (event.Event, error) {
	return eventOf(ctx, s.db, owner, id)
}

// ListEvents returns a page of events, newest first, and whether there are more. A limit of 0 is 50; limits
// outside 1 to 100 are set to the nearest bound.
func (s *Service) ListEvents(ctx context.Context, f event.Filter) (page []event.Event, more bool, err error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err = s.db.Events(ctx, f)

	return paging.Page(page, limit, err)
}

func eventOf(ctx context.Context, r event.Reader, owner event.Owner, id string) (event.Event, error) {
	e, err := r.Event(ctx, owner, id)
	return e, notFound(err, "event", id)
}
