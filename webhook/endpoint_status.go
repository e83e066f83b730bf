package webhook

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
)

// This file holds the state machine of an endpoint. Its functions are pure.
//
//	enabled  → failing   a delivery ran out of retries
//	failing  → enabled   at the next success
//	enabled, failing → disabled   by the merchant, by 410 Gone, or after 5 days in which every delivery failed
//	disabled → enabled   by the merchant

// disableAfter is how long every delivery must have failed until the endpoint is disabled.
const disableAfter = 5 * 24 * time.Hour // spec D8.8

// Succeeded returns the endpoint after a successful attempt that ended at a time.
func (e Endpoint) Succeeded(at time.Time) Endpoint { // spec D8.7
	if at.After(e.LastSuccessAt) {
		e.LastSuccessAt = at
	}

	if !e.FirstFailureAt.After(e.LastSuccessAt) {
		e.FirstFailureAt = time.Time{}
	}

	if e.Status == Failing {
		e.Status, e.FailingSince, e.UpdatedAt = Enabled, time.Time{}, at
	}

	return e
}

// Failed returns the endpoint after a failed attempt that ended at a time. ranOut reports that it was the
// delivery's last attempt, gone that the endpoint answered 410 Gone. Failures may come in any order: a
// failure from before the last success does not set FirstFailureAt.
func (e Endpoint) Failed(at time.Time, ranOut, gone bool) Endpoint {
	if e.Status == Disabled {
		return e
	}

	if at.After(e.LastSuccessAt) && (e.FirstFailureAt.IsZero() || at.Before(e.FirstFailureAt)) {
		e.FirstFailureAt = at
	}

	switch {
	case gone: // spec D8.24
		return e.disabled(at)
	case !e.FirstFailureAt.IsZero() && at.Sub(e.FirstFailureAt) >= disableAfter:
		return e.disabled(at)
	case ranOut && e.Status == Enabled: // spec D8.6
		e.Status, e.FailingSince, e.UpdatedAt = Failing, at, at
	}

	return e
}

// disabled returns the endpoint as disabled.
func (e Endpoint) disabled(at time.Time) Endpoint {
	if e.Status != Disabled {
		e.Status, e.UpdatedAt = Disabled, at
	}

	return e
}

// enabled returns a disabled endpoint as enabled, without its failures. A failing endpoint already gets
// deliveries, and stays failing until one succeeds.
func (e Endpoint) enabled(at time.Time) Endpoint {
	if e.Status == Disabled {
		e.Status, e.UpdatedAt = Enabled, at
		e.FailingSince, e.FirstFailureAt = time.Time{}, time.Time{}
	}

	return e
}

// withStatusEvent returns the endpoint with the event of its change of status, if its status changed.
func (e Endpoint) withStatusEvent(before EndpointStatus) (Endpoint, []event.Event) {
	var t event.Type

	switch {
	case e.Status == before:
		return e, nil
	case e.Status == Failing:
		t = event.WebhookEndpointFailing
	case e.Status == Disabled:
		t = event.WebhookEndpointDisabled
	default:
		return e, nil
	}

	e.Sequence++

	events := eventctx.About(e, t)
	events[0].Previous = map[string]any{"status": before}

	return e, events
}
