package deliver

import (
	"net/http"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

// WithAttempt returns the delivery after an attempt that ended at a time. gone reports that its endpoint
// answered 410 Gone, which ends the delivery. asked is the delay of its Retry-After header, 0 without one.
// jitter are 64 random bits, which spread retries by ±10 %. A delivery that ended while the attempt was in
// flight is not retried, but a successful attempt still makes it succeeded.
func WithAttempt(
	d webhook.Delivery,
	a webhook.Attempt,
	ended time.Time,
	gone bool,
	asked time.Duration,
	jitter uint64,
) webhook.Delivery {
	d = Unclaimed(d)
	d.Log = append(slices.Clip(d.Log), a)
	d.Attempts++

	d.LastAttemptAt = a.At
	if AttemptSucceeded(a) {
		d.Status, d.DeliveredAt, d.NextAttemptAt = webhook.DeliverySucceeded, ended, time.Time{}
		return d
	}

	if d.Status != webhook.DeliveryPending {
		return d
	}

	delay, more := retryDelay(finished(d), asked, jitter)
	if gone || !more {
		return DeliveryFailed(d)
	}

	d.NextAttemptAt = ended.Add(delay)

	return d
}

// DeliveryInterrupted returns the delivery after an attempt whose process ended, or lost the store, before it
// stored the result. The attempt is logged, because the endpoint may have seen it, but does not count in the
// schedule.
func DeliveryInterrupted(d webhook.Delivery, a webhook.Attempt) webhook.Delivery {
	a.Error = webhook.Interrupted
	d.Log = append(slices.Clip(d.Log), a)
	d.Attempts++
	d.LastAttemptAt, d.LapsedAt = a.At, time.Time{}

	return d
}

// finished counts the attempts whose outcome is known.
func finished(d webhook.Delivery) (n int) {
	for _, a := range d.Log {
		if a.Error != webhook.Interrupted {
			n++
		}
	}

	return n
}

// DeliveryFailed returns a pending delivery as failed, without its claim.
func DeliveryFailed(d webhook.Delivery) webhook.Delivery {
	if d.Status == webhook.DeliveryPending {
		d.Status, d.NextAttemptAt = webhook.DeliveryFailed, time.Time{}
	}

	return Unclaimed(d)
}

// DeliveryPostponed returns the delivery without its claim, due again at a time.
func DeliveryPostponed(d webhook.Delivery, until time.Time) webhook.Delivery {
	if d.Status == webhook.DeliveryPending {
		d.NextAttemptAt = until
	}

	return Unclaimed(d)
}

// Unclaimed returns the delivery without its claim. The fence stays, so that no other claim's
// results are stored.
func Unclaimed(d webhook.Delivery) webhook.Delivery {
	d.ClaimedBy, d.ClaimedUntil = "", time.Time{}
	return d
}

// AttemptSucceeded reports whether the endpoint answered 2xx.
func AttemptSucceeded(a webhook.Attempt) bool { return a.Error == "" } // spec D8.14

// AttemptGone reports whether the endpoint answered 410 Gone.
func AttemptGone(a webhook.Attempt) bool { return a.HTTPStatus == http.StatusGone }
