package webhook

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/event"
)

// This file holds the legal moves of a delivery and when it is tried again: pure functions.
//
//	pending → succeeded   an answer of 2xx
//	pending → failed      410 Gone, the last try failed, or its endpoint was disabled or deleted

// schedule is how long to wait after the first failed try, the second, and so on: ten tries in all, over
// about three days. A table, so that no arithmetic can overflow into retries that run hot.
var schedule = [...]time.Duration{
	5 * time.Second,
	5 * time.Minute,
	30 * time.Minute,
	2 * time.Hour,
	5 * time.Hour,
	10 * time.Hour,
	10 * time.Hour,
	24 * time.Hour,
	24 * time.Hour,
}

// maxRetryAfter is the longest wait that an endpoint may ask for.
const maxRetryAfter = 24 * time.Hour

// retryDelay returns how long to wait after a number of failed tries, ±10 % as jitter says: a random
// number of 64 bits. asked is what the endpoint's Retry-After asked for; it is honoured when it is longer,
// up to 24 h. ok is false when there are no more tries.
func retryDelay(tries int, asked time.Duration, jitter uint64) (delay time.Duration, ok bool) {
	if tries < 1 || tries > len(schedule) {
		return 0, false
	}

	delay = schedule[tries-1]
	delay += time.Duration(jitter%uint64(delay/5+1)) - delay/10

	return max(delay, min(asked, maxRetryAfter)), true
}

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

// Tried notes one try that ended at a time; asked and jitter are as for retryDelay. A delivery that was ended
// while the try was under way is not tried again, but if that try succeeded it is delivered.
func (d Delivery) Tried(a Attempt, ended time.Time, asked time.Duration, jitter uint64) Delivery {
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

// Interrupted is the error of a try of which nobody knows whether it arrived.
const Interrupted = "interrupted"

// Interrupted notes a try whose process ended, or was cut off from the store, before it could say
// what came of it. It stays in the log, because the endpoint may have seen it, but spends nothing
// of the schedule.
func (d Delivery) Interrupted(a Attempt) Delivery {
	a.Error = Interrupted
	d.Log = append(slices.Clip(d.Log), a)
	d.Attempts++
	d.LastAttemptAt, d.LapsedAt = a.At, time.Time{}

	return d
}

// finished counts the tries whose outcome is known.
func (d Delivery) finished() (n int) {
	for _, a := range d.Log {
		if a.Error != Interrupted {
			n++
		}
	}

	return n
}

// Failed ends a pending delivery without success.
func (d Delivery) Failed() Delivery {
	if d.Status == DeliveryPending {
		d.Status, d.NextAttemptAt = DeliveryFailed, time.Time{}
	}

	return d.Unclaimed()
}

// PutOff gives a claim back; the delivery is due again at a time.
func (d Delivery) PutOff(until time.Time) Delivery {
	if d.Status == DeliveryPending {
		d.NextAttemptAt = until
	}

	return d.Unclaimed()
}

// Unclaimed gives a claim back. The fence stays, so that nobody else's results fit.
func (d Delivery) Unclaimed() Delivery {
	d.ClaimedBy, d.ClaimedUntil = "", time.Time{}
	return d
}

// Succeeded reports whether the endpoint took the event.
func (a Attempt) Succeeded() bool { return a.Error == "" }

// Gone reports whether the endpoint answered that it is there no more.
func (a Attempt) Gone() bool { return a.HTTPStatus == http.StatusGone }

// ParseRetryAfter reads a Retry-After header (RFC 9110, section 10.2.3), seconds or an HTTP date, as a wait
// from now of 0 to 24 h. Anything else is 0.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // digits that do not fit are very many seconds
		}

		return time.Duration(seconds) * time.Second
	}

	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}

	return min(max(at.Sub(now), 0), maxRetryAfter)
}
