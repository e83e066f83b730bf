package deliver

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file takes deliveries and endpoints through days of fake time.

func TestDeliveryGoesThroughTheWholeSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(500)

		const poll = 30 * time.Second

		h := bubble(t, merchants, func(c *Config) { c.Poll = poll })
		e, secret := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		other, _ := h.endpoint(merchant, "https://other.example/", event.WebhookEndpointFailing)
		h.happen(merchant, event.InvoicePaid)

		begun := time.Now()

		stop := h.run()
		defer stop()

		time.Sleep(5 * day)
		synctest.Wait()

		tries := merchants.to("example.com")

		want := []time.Duration{0}
		for _, wait := range schedule {
			want = append(want, want[len(want)-1]+wait-wait/10) // no jitter but −10 %
		}

		if len(tries) != len(want) {
			t.Fatalf("%d tries, want %d", len(tries), len(want))
		}

		for i, q := range tries {
			// A due delivery is found at the next poll.
			if late := q.at.Sub(begun) - want[i]; late < 0 || late > time.Duration(i)*poll {
				t.Errorf("try %d came %s after the first, want %s", i+1, q.at.Sub(begun), want[i])
			}

			if q.body != tries[0].body {
				t.Errorf("try %d has another body", i+1)
			}

			if err := webhook.VerifyAt(
				[]byte(q.body), q.header.Get(webhook.SignatureHeader), q.at, secret,
			); err != nil {
				t.Errorf("try %d: %v", i+1, err)
			}
		}

		d := h.deliveries(e.ID)[0]
		if d.Status != webhook.DeliveryFailed || d.Attempts != 10 || len(d.Log) != 10 ||
			!d.NextAttemptAt.IsZero() ||
			d.ClaimedBy != "" {
			t.Errorf("the delivery ended as %+v", d)
		}

		if got := h.reread(
			e,
		); got.Status != webhook.Failing || got.FailingSince.IsZero() ||
			!got.FirstFailureAt.Equal(begun) {
			t.Errorf(
				"the endpoint is %s, failing since %s, first failure at %s",
				got.Status, got.FailingSince, got.FirstFailureAt,
			)
		}

		if n := h.events(event.WebhookEndpointFailing); n != 1 {
			t.Errorf("%d events of the failing", n)
		}

		if d := h.deliveries(other.ID); len(d) != 1 || d[0].EventType != event.WebhookEndpointFailing {
			t.Errorf("the other endpoint heard %+v", d)
		}
	})
}

func TestFailingEndpointIsEnabledByTheNextSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(200), nil)
		e, _ := h.endpoint(merchant, "https://example.com/hook")
		failing := e
		failing.Status, failing.FailingSince, failing.FirstFailureAt = webhook.Failing, time.Now().
			Add(-day),
			time.Now().
				Add(-2*day)
		h.db.rows.endpoints[e.ID] = failing
		h.happen(merchant, event.InvoicePaid)

		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		got := h.reread(e)
		if got.Status != webhook.Enabled || !got.FailingSince.IsZero() || !got.FirstFailureAt.IsZero() ||
			!got.LastSuccessAt.Equal(time.Now()) {
			t.Errorf("the endpoint is %+v", got)
		}

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded ||
			!d.DeliveredAt.Equal(time.Now()) ||
			d.Attempts != 1 {
			t.Errorf("the delivery is %+v", d)
		}

		if did, err := h.Step(t.Context()); did || err != nil {
			t.Errorf("an idle step: did %v, error %v", did, err)
		}
	})
}

func TestEndpointIsDisabledAfterFiveDaysOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(503)
		h := bubble(t, merchants, func(c *Config) { c.Poll = time.Minute })
		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		begun := time.Now()

		stop := h.run()
		defer stop()

		for range 6 {
			h.happen(merchant, event.InvoicePaid)
			time.Sleep(day - time.Minute)
		}

		synctest.Wait()

		got := h.reread(e)
		if got.Status != webhook.Disabled || got.UpdatedAt.Sub(begun) < disableAfter ||
			got.UpdatedAt.Sub(begun) > disableAfter+10*time.Hour {
			t.Fatalf(
				"the endpoint is %s since %s after the first failure",
				got.Status, got.UpdatedAt.Sub(begun),
			)
		}

		for _, d := range h.deliveries(e.ID) {
			if d.Status != webhook.DeliveryFailed {
				t.Errorf("delivery %s is %s", d.ID, d.Status)
			}
		}

		if h.events(event.WebhookEndpointFailing) != 1 || h.events(event.WebhookEndpointDisabled) != 1 {
			t.Errorf(
				"%d failing and %d disabled events",
				h.events(event.WebhookEndpointFailing), h.events(event.WebhookEndpointDisabled),
			)
		}

		tries := len(merchants.to("example.com"))

		h.happen(merchant, event.InvoicePaid)
		time.Sleep(10 * day)

		if n := len(merchants.to("example.com")); n != tries {
			t.Errorf("a disabled endpoint got %d more tries", n-tries)
		}
	})
}

func TestOneSuccessKeepsAnEndpointEnabledForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(_ string, n int) (int, http.Header, time.Duration) {
				if n%4 == 3 {
					return 200, nil, 0
				}

				return 500, nil, 0
			},
		}
		h := bubble(t, merchants, func(c *Config) { c.Poll = time.Minute })
		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)

		stop := h.run()
		defer stop()

		for range 12 {
			h.happen(merchant, event.InvoicePaid)
			time.Sleep(day)
		}

		if got := h.reread(e); got.Status != webhook.Enabled {
			t.Errorf("the endpoint is %s", got.Status)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		asks := []string{"3600", begun.Add(12 * time.Hour).UTC().Format(http.TimeFormat), "999999", "1"}
		merchants := &inMemory{
			answer: func(_ string, n int) (int, http.Header, time.Duration) {
				if n < len(asks) {
					return 429, http.Header{"Retry-After": {asks[n]}}, 0
				}

				return 200, nil, 0
			},
		}
		h := bubble(t, merchants, func(c *Config) { c.Poll = time.Minute })
		h.endpoint(merchant, "https://example.com/hook")
		h.happen(merchant, event.InvoicePaid)

		stop := h.run()
		defer stop()

		time.Sleep(4 * day)

		var at []time.Duration
		for _, q := range merchants.to("example.com") {
			at = append(at, q.at.Sub(begun).Truncate(4*time.Minute))
		}

		want := []time.Duration{0, time.Hour, 12 * time.Hour, 36 * time.Hour, 36*time.Hour + 108*time.Minute}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
	})
}

func TestOverlapRunsOutBetweenTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(500)
		h := bubble(t, merchants, nil)
		e, first := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)

		_, second, err := h.RotateSecret(t.Context(), merchant, e.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		h.happen(merchant, event.InvoicePaid)

		stop := h.run()
		defer stop()

		time.Sleep(4 * time.Hour)
		synctest.Wait()

		for i, q := range merchants.to("example.com") {
			within := q.at.Before(h.reread(e).UpdatedAt.Add(time.Hour))

			header := q.header.Get(webhook.SignatureHeader)
			if n := strings.Count(header, ",v1="); within && n != 2 || !within && n != 1 {
				t.Errorf("try %d has %d signatures", i+1, n)
			}

			if err := webhook.VerifyAt([]byte(q.body), header, q.at, second); err != nil {
				t.Errorf("try %d with the new secret: %v", i+1, err)
			}

			if err := webhook.VerifyAt([]byte(q.body), header, q.at, first); within != (err == nil) {
				t.Errorf("try %d with the old secret: %v", i+1, err)
			}
		}

		if n := len(merchants.to("example.com")); n != 5 {
			t.Errorf("%d tries", n)
		}

		if got := h.reread(e); got.SealedPrevious != nil {
			t.Error("the previous secret is still stored after it ran out")
		}
	})
}
