package webhook

import (
	"net/http"
	"slices"
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

// WithAttempt returns the delivery after an attempt that ended at a time. asked is the delay of its
// Retry-After header, 0 without one; jitter are 64 random bits, which spread retries by ±10 %. A delivery
// that ended while the attempt was in flight is not retried, but a successful attempt makes it succeeded.
func (d Delivery) WithAttempt(a Attempt, ended time.Time, asked time.Duration, jitter uint64) Delivery {
	d = d.Unclaimed()
	d.Log = append(slices.Clip(d.Log), a)
	d.Attempts++

	d.LastAttemptAt = a.At
	if a.Succeeded() {
		d.Status, d.DeliveredAt, d.NextAttemptAt = DeliverySucceeded, ended, time.Time{}
		return d
	}

	if d.Status != DeliveryPending {
		return d
	}

	delay, more := retryDelay(d.finished(), asked, jitter)
	if !more || a.Gone() {
		return d.Failed()
	}

	d.NextAttemptAt = ended.Add(delay)

	return d
}

// Interrupted is the error of an attempt whose outcome is unknown.
const Interrupted = "interrupted"

// Interrupted returns the delivery after an attempt whose process ended, or lost the store, before
// it stored the result. The attempt is logged, because the endpoint may have seen it, but does not
// count in the schedule.
func (d Delivery) Interrupted(a Attempt) Delivery {
	a.Error = Interrupted
	d.Log = append(slices.Clip(d.Log), a)
	d.Attempts++
	d.LastAttemptAt, d.LapsedAt = a.At, time.Time{}

	return d
}

// finished counts the attempts whose outcome is known.
func (d Delivery) finished() (n int) {
	for _, a := range d.Log {
		if a.Error != Interrupted {
			n++
		}
	}

	return n
}

// Failed returns a pending delivery as failed, without its claim.
func (d Delivery) Failed() Delivery {
	if d.Status == DeliveryPending {
		d.Status, d.NextAttemptAt = DeliveryFailed, time.Time{}
	}

	return d.Unclaimed()
}

// Postponed returns the delivery without its claim, due again at a time.
func (d Delivery) Postponed(until time.Time) Delivery {
	if d.Status == DeliveryPending {
		d.NextAttemptAt = until
	}

	return d.Unclaimed()
}

// DueSince returns since when a delivery is due, and whether it is at a time. One that was never tried is due since
// it was made, however often it was put off.
func (d Delivery) DueSince(now time.Time) (since time.Time, due bool) {
	since = d.NextAttemptAt
	if d.Attempts == 0 {
		since = d.CreatedAt
	}

	return since, d.Status == DeliveryPending && !since.After(now)
}

// Unclaimed returns the delivery without its claim. The fence stays, so that no other claim's
// results are stored.
func (d Delivery) Unclaimed() Delivery {
	d.ClaimedBy, d.ClaimedUntil = "", time.Time{}
	return d
}

// Succeeded reports whether the endpoint answered 2xx.
func (a Attempt) Succeeded() bool { return a.Error == "" } // spec D8.14

// Gone reports whether the endpoint answered 410 Gone.
func (a Attempt) Gone() bool { return a.HTTPStatus == http.StatusGone }
