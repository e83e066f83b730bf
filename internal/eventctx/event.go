package eventctx

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
)

// About returns one event of each type about a record, whose Sequence already counts the published ones. The
// last published one has the record's number.
func About(record event.Payload, types ...event.Type) []event.Event { // spec D8.1
	object := record.EventObject()
	number := object.Sequence - int64(published(types))

	events := make([]event.Event, len(types))
	for i, t := range types {
		if !t.Internal() { // a number for an internal event would look like a lost event
			number++
		}

		events[i] = event.Event{
			Owner:     object.Owner,
			Type:      t,
			ObjectID:  object.ID,
			InvoiceID: object.InvoiceID,
			PaymentID: object.PaymentID,
			Sequence:  number,
			Payload:   record,
		}
	}

	return events
}

// published counts the types that are not internal.
func published(types []event.Type) int {
	count := 0

	for _, t := range types {
		if !t.Internal() {
			count++
		}
	}

	return count
}

type requestKey struct{}

// WithRequest returns a context whose events carry the request.
func WithRequest(ctx context.Context, r event.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf returns the request that WithRequest stored in the context, or the zero Request.
func RequestOf(ctx context.Context) event.Request {
	r, _ := ctx.Value(requestKey{}).(event.Request)
	return r
}
