package webhook

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// This file holds the state machine of a delivery. Its functions are pure.
//
//	pending → succeeded   an answer of 2xx
//	pending → failed      410 Gone, the last attempt failed, or its endpoint was disabled or deleted

// NewDelivery returns a delivery of an event to an endpoint that is due at once.
func NewDelivery(id string, e event.Event, endpointID string, why Trigger, at time.Time) *Delivery {
	return &Delivery{
		ID:            id,
		Owner:         e.Owner,
		EventID:       e.ID,
		EventType:     e.Type,
		InvoiceID:     e.InvoiceID,
		PaymentID:     e.PaymentID,
		EndpointID:    endpointID,
		Trigger:       why,
		Status:        DeliveryPending,
		NextAttemptAt: at,
		CreatedAt:     at,
	}
}

// Interrupted is the error of an attempt whose outcome is unknown.
const Interrupted = "interrupted"

// DueSince returns when a delivery became due, and whether it is due at now. A delivery that was never tried
// is due since it was made, even if it was put off.
func (d Delivery) DueSince(now time.Time) (since time.Time, due bool) {
	since = d.NextAttemptAt
	if d.Attempts == 0 {
		since = d.CreatedAt
	}

	return since, d.Status == DeliveryPending && !since.After(now)
}
