package deliver

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// change updates an endpoint while an attempt may be in flight.
func (h *harness) change(e webhook.Endpoint, u webhook.EndpointUpdate) {
	h.t.Helper()

	if _, err := h.UpdateEndpoint(h.t.Context(), e.Owner, e.ID, u); err != nil {
		h.t.Error(err)
	}
}

// stepDuring takes one step in which the endpoint gets a request, which change answers after it has updated the
// endpoint.
func stepDuring(t *testing.T, url string, change func(h *harness, e webhook.Endpoint) (status int)) (
	h *harness, e webhook.Endpoint,
) {
	t.Helper()

	h = bubble(t, &inMemory{
		answer: func(string, int) (int, http.Header, time.Duration) { return change(h, e), nil, time.Second },
	}, nil)
	e, _ = h.endpoint(merchant, url, event.InvoicePaid)
	h.happen(merchant, event.InvoicePaid)

	if did, err := h.Step(t.Context()); !did || err != nil {
		t.Fatalf("did %v, error %v", did, err)
	}

	return h, e
}

const oldHost, newHost, newURL = "old.example", "new.example", "https://new.example/hook"

// A merchant moves: the server of the old URL changes the URL and answers 410, also to what else is in flight.
func TestGoneOfTheOldURLDoesNotDisableTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			h *harness
			e webhook.Endpoint
		)

		merchants := &inMemory{
			answer: func(host string, n int) (int, http.Header, time.Duration) {
				if host == newHost {
					return 200, nil, 0
				}

				if n == 0 {
					h.change(e, webhook.EndpointUpdate{URL: ptr(newURL)})
				}

				return 410, nil, time.Second
			},
		}
		h = bubble(t, merchants, nil)
		e, _ = h.endpoint(merchant, "https://"+oldHost+"/hook", event.InvoicePaid)

		for range 3 {
			h.happen(merchant, event.InvoicePaid)
		}

		stop := h.run()

		time.Sleep(time.Minute)
		stop()

		got := h.reread(e)
		if got.Status != webhook.Enabled || !got.FirstFailureAt.IsZero() || got.LastSuccessAt.IsZero() ||
			h.events(event.WebhookEndpointDisabled) != 0 {
			t.Errorf("the endpoint is %+v", got)
		}

		for _, d := range h.deliveries(e.ID) {
			if d.Status != webhook.DeliverySucceeded || d.Attempts != 2 || d.Log[0].HTTPStatus != 410 {
				t.Errorf("the delivery is %+v", d)
			}
		}

		if to := len(merchants.to(newHost)); to != 3 || len(merchants.to(oldHost)) != 3 {
			t.Errorf("%d requests went to the new URL", to)
		}
	})
}

func TestLastFailureOfTheOldURLDoesNotMakeTheEndpointFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			h *harness
			e webhook.Endpoint
		)

		h = bubble(t, &inMemory{
			answer: func(_ string, n int) (int, http.Header, time.Duration) {
				if n == len(retryDelays) {
					h.change(e, webhook.EndpointUpdate{URL: ptr(newURL)})
				}

				return 500, nil, time.Second
			},
		}, func(c *Config) { c.Poll = time.Minute })
		e, _ = h.endpoint(merchant, "https://"+oldHost+"/hook", event.InvoicePaid)
		h.happen(merchant, event.InvoicePaid)

		stop := h.run()

		time.Sleep(4 * day)
		stop()

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliveryFailed || d.Attempts != 10 {
			t.Errorf("the delivery is %s after %d attempts", d.Status, d.Attempts)
		}

		if got := h.reread(e); got.Status != webhook.Enabled || !got.FirstFailureAt.IsZero() ||
			h.events(event.WebhookEndpointFailing) != 0 {
			t.Errorf("the endpoint is %+v", got)
		}
	})
}

func TestSuccessOfTheOldURLIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, e := stepDuring(t, "https://"+oldHost+"/hook", func(h *harness, e webhook.Endpoint) int {
			h.change(e, webhook.EndpointUpdate{URL: ptr(newURL)})
			return 200
		})

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded || d.Attempts != 1 {
			t.Errorf("the delivery is %+v", d)
		}

		if got := h.reread(e); !got.LastSuccessAt.Equal(time.Now()) || got.URL != newURL {
			t.Errorf("the endpoint is %+v", got)
		}
	})
}

// Enabling forgets the failures before it, and those of attempts that began before it.
func TestFailureFromBeforeAnEndpointWasEnabledDoesNotCount(t *testing.T) {
	for _, status := range []int{410, 500} {
		synctest.Test(t, func(t *testing.T) {
			h, e := stepDuring(t, "https://example.com/hook", func(h *harness, e webhook.Endpoint) int {
				h.change(e, webhook.EndpointUpdate{Status: ptr(webhook.Disabled)})
				h.change(e, webhook.EndpointUpdate{Status: ptr(webhook.Enabled)})

				return status
			})

			if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliveryFailed || d.Attempts != 1 {
				t.Errorf("%d: the delivery is %+v", status, d)
			}

			if got := h.reread(e); got.Status != webhook.Enabled || !got.FirstFailureAt.IsZero() ||
				h.events(event.WebhookEndpointDisabled) != 1 {
				t.Errorf("%d: the endpoint is %+v", status, got)
			}
		})
	}
}

// Results of the old and the new URL are stored together: only those of the new one count.
func TestResultsOfBothURLsInOneBatch(t *testing.T) {
	for _, c := range []struct {
		status   int // of the new URL
		endpoint webhook.EndpointStatus
		old      webhook.DeliveryStatus // of the delivery that went to the old URL
	}{
		{200, webhook.Enabled, webhook.DeliveryPending},
		{500, webhook.Enabled, webhook.DeliveryPending},
		{410, webhook.Disabled, webhook.DeliveryFailed},
	} {
		h := newHarness(t, nil)
		e, _ := h.endpoint(merchant, "https://"+oldHost+"/hook", event.InvoicePaid)

		for range 2 {
			h.happen(merchant, event.InvoicePaid)
		}

		due, err := h.claim(t.Context(), webhook.Claim{Limit: 2, PerEndpoint: 2})
		if err != nil || len(due) != 2 {
			t.Fatalf("claimed %d, error %v", len(due), err)
		}

		h.change(e, webhook.EndpointUpdate{URL: ptr(newURL)})

		attempt := func(status int) webhook.Attempt {
			a := webhook.Attempt{At: start, HTTPStatus: status}
			if status != 200 {
				a.Error = "http_error"
			}

			return a
		}
		ended := start.Add(time.Second)

		if err := h.record(t.Context(), []result{
			{claimed: due[0], url: e.URL, answer: answer{attempt: attempt(410), ended: start}},
			{claimed: due[1], url: newURL, answer: answer{attempt: attempt(c.status), ended: ended}},
		}); err != nil {
			t.Fatal(err)
		}

		got, failed := h.reread(e), c.status != 200
		if got.Status != c.endpoint || failed != got.FirstFailureAt.Equal(ended) ||
			!failed && !got.FirstFailureAt.IsZero() {
			t.Errorf("%d: the endpoint is %+v", c.status, got)
		}

		for _, d := range h.deliveries(e.ID) {
			if d.ID == due[0].ID && d.Status != c.old {
				t.Errorf("%d: the delivery to the old URL is %s", c.status, d.Status)
			}
		}
	}
}
