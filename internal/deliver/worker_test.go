package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook"
)

// inMemory is a transport to merchants that live in the test; time may stand still in it.
type inMemory struct {
	mu       sync.Mutex
	answer   func(host string, n int) (status int, header http.Header, wait time.Duration)
	requests []request
}

type request struct {
	at     time.Time
	host   string
	body   string
	header http.Header
}

func (m *inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	m.mu.Lock()
	n := 0

	for _, q := range m.requests {
		if q.host == r.URL.Host {
			n++
		}
	}

	m.requests = append(m.requests, request{time.Now(), r.URL.Host, string(body), r.Header.Clone()})
	status, header, wait := m.answer(r.URL.Host, n)
	m.mu.Unlock()

	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}

	if header == nil {
		header = http.Header{}
	}

	return &http.Response{
		StatusCode: status,
		Header:     header,
		Body:       io.NopCloser(strings.NewReader("")),
		Request:    r,
	}, nil
}

func (m *inMemory) to(host string) (out []request) {
	m.mu.Lock()
	defer m.mu.Unlock()

	for _, q := range m.requests {
		if q.host == host {
			out = append(out, q)
		}
	}

	return out
}

// always answers every request the same.
func always(status int) *inMemory {
	return &inMemory{answer: func(string, int) (int, http.Header, time.Duration) { return status, nil, 0 }}
}

// bubble returns a harness in which time is the fake one of a synctest bubble.
func bubble(t *testing.T, transport *inMemory, change func(*Config)) *harness {
	t.Helper()
	h := newHarness(t, func(c *Config) {
		c.Now, c.Entropy = time.Now, steady{}
		if change != nil {
			change(c)
		}
	})
	h.client.Transport = transport

	return h
}

// run runs the worker until the returned function is called, which checks that it ended well.
func (h *harness) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())

	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()

	return func() {
		cancel()

		if err := <-done; err != nil {
			h.t.Errorf("Run: %v", err)
		}
	}
}

// pitfall 24: one slow endpoint, with more due than there are slots, does not delay another's deliveries.
func TestSlowEndpointDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, now := 0, 0

		var mu sync.Mutex

		merchants := &inMemory{
			answer: func(host string, _ int) (int, http.Header, time.Duration) {
				if host != "slow.example" {
					return 200, nil, 10 * time.Millisecond
				}

				return 200, nil, time.Hour // until the time limit
			},
		}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint = 8, 3 })
		h.client.Transport = counting{
			merchants,
			func(host string, d int) {
				mu.Lock()
				defer mu.Unlock()

				if host == "slow.example" {
					now += d
					most = max(most, now)
				}
			},
		}
		slow, _ := h.endpoint(merchant, "https://slow.example/", event.InvoicePaid)

		quick, _ := h.endpoint(merchant, "https://quick.example/", event.InvoicePending)
		for range 50 {
			h.happen(merchant, event.InvoicePaid)
		}

		stop := h.run()

		time.Sleep(time.Minute)

		for range 40 {
			h.happen(merchant, event.InvoicePending)
		}

		begun := time.Now()

		h.Wake()
		time.Sleep(2 * time.Second)
		synctest.Wait()

		for _, d := range h.deliveries(quick.ID) {
			if d.Status != webhook.DeliverySucceeded {
				t.Errorf("a delivery to the quick endpoint is %s after %s", d.Status, time.Since(begun))
			}
		}

		if most > 3 {
			t.Errorf("%d tries at once went to the slow endpoint", most)
		}

		timeouts := 0

		for _, d := range h.deliveries(slow.ID) {
			for _, a := range d.Log {
				timeouts++

				if a.Error != "timeout" || a.DurationMS != 15_000 || a.HTTPStatus != 0 || a.Response != nil {
					t.Errorf("a slow try is logged as %+v", a)
				}
			}
		}

		if timeouts < 4 {
			t.Errorf("%d tries timed out in a minute", timeouts)
		}

		stop()
	})
}

type counting struct {
	http.RoundTripper
	count func(host string, d int)
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count(r.URL.Host, 1)
	defer c.count(r.URL.Host, -1)

	return c.RoundTripper.RoundTrip(r)
}

// Many dead endpoints together do not take all slots either: each gets one, once it failed.
func TestManyDeadEndpointsLeaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(host string, _ int) (int, http.Header, time.Duration) {
				if host == "quick.example" {
					return 200, nil, 0
				}

				return 200, nil, time.Hour
			},
		}

		h := bubble(
			t, merchants,
			func(c *Config) { c.Concurrency, c.PerEndpoint, c.Poll = 16, 4, 20*time.Second },
		)
		for i := range 4 {
			h.endpoint(merchant, fmt.Sprintf("https://dead%d.example/", i), event.InvoicePaid)
		}

		quick, _ := h.endpoint(merchant, "https://quick.example/", event.InvoicePending)
		for range 300 {
			h.happen(merchant, event.InvoicePaid)
		}

		stop := h.run()

		time.Sleep(time.Minute)
		h.happen(merchant, event.InvoicePending) // behind all that the dead ones have due
		h.Wake()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()

		if d := h.deliveries(quick.ID)[0]; d.Status != webhook.DeliverySucceeded {
			t.Errorf("the delivery to the quick endpoint is %s", d.Status)
		}

		stop()
	})
}

func TestABacklogIsDeliveredOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(string, int) (int, http.Header, time.Duration) { return 200, nil, 20 * time.Millisecond },
		}

		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint = 16, 4 })
		for i := range 5 {
			h.endpoint(merchant, fmt.Sprintf("https://m%d.example/", i))
		}

		for range 40 {
			h.happen(merchant, event.InvoicePaid)
		}

		begun := time.Now()
		// Three processes share the work.
		first, second, third := h.run(), h.run(), h.run()

		time.Sleep(30 * time.Second)
		first()
		second()
		third()

		for _, d := range h.deliveries("") {
			if d.Status != webhook.DeliverySucceeded || d.Attempts != 1 {
				t.Errorf("delivery %s is %s after %d tries", d.ID, d.Status, d.Attempts)
			}
		}

		if len(merchants.requests) != 200 {
			t.Errorf("%d requests", len(merchants.requests))
		}

		if last := merchants.requests[len(merchants.requests)-1].at.Sub(begun); last > 10*time.Second {
			t.Errorf("the backlog took %s", last)
		}
	})
}

func TestACrashBetweenSendAndStoreSendsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(200)
		h := bubble(t, merchants, nil)
		e, _ := h.endpoint(merchant, "https://example.com/hook")
		h.happen(merchant, event.InvoicePaid)

		claimed := false

		h.db.refuse = func() error {
			if claimed {
				return errors.New("the process died")
			}

			claimed = true

			return nil
		}
		if did, err := h.Step(t.Context()); !did || err == nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		h.db.refuse = nil
		if did, err := h.Step(t.Context()); did || err != nil {
			t.Errorf("the claim had not lapsed: did %v, error %v", did, err)
		}

		time.Sleep(claimFor)

		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Errorf("after the claim lapsed: did %v, error %v", did, err)
		}

		d := h.deliveries(e.ID)[0]
		if d.Status != webhook.DeliverySucceeded || d.Fence != 2 || d.Attempts != 2 || len(d.Log) != 2 {
			t.Fatalf("the delivery is %+v", d)
		}
		// The log has the attempt whose outcome is unknown.
		if lost := d.Log[0]; lost.Error != webhook.Interrupted || !lost.At.Equal(d.CreatedAt) ||
			d.Log[1].Error != "" ||
			!d.LapsedAt.IsZero() {
			t.Errorf("the log is %+v", d.Log)
		}

		tries := merchants.to("example.com")
		if len(tries) != 2 || tries[0].body != tries[1].body ||
			tries[0].header.Get(webhook.EventIDHeader) != tries[1].header.Get(webhook.EventIDHeader) {
			t.Errorf("tried %d times", len(tries))
		}
	})
}

func TestResultOfALostClaimIsThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(500), nil)
		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		h.happen(merchant, event.InvoicePaid)

		h.client.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			// Meanwhile another process thinks that this one is dead, and delivers.
			h.db.mu.Lock()
			defer h.db.mu.Unlock()

			d := page(h.db.rows.deliveries, "", 1, func(webhook.Delivery) bool { return true })[0]
			d.Fence++
			d.Version++
			d.Status, d.NextAttemptAt = webhook.DeliverySucceeded, time.Time{}
			h.db.rows.deliveries[d.ID] = d

			return nil, io.EOF
		})
		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded || d.Attempts != 0 {
			t.Errorf("the delivery is %+v", d)
		}

		if got := h.reread(e); !got.FirstFailureAt.IsZero() {
			t.Error("the endpoint was judged by a result that was thrown away")
		}

		if !strings.Contains(h.log.String(), "another process took over") {
			t.Errorf("the log says %q", h.log)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestResultsAreStoredOnceTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(200)
		h := bubble(t, merchants, nil)
		e, _ := h.endpoint(merchant, "https://example.com/hook")
		h.happen(merchant, event.InvoicePaid)

		claimed, until := false, time.Now().Add(5*time.Second)

		h.db.refuse = func() error {
			if claimed && time.Now().Before(until) {
				return fault.New(fault.Unavailable, "store_unavailable", "the database restarts")
			}

			claimed = true

			return nil
		}
		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Errorf("did %v, error %v", did, err)
		}

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded || len(merchants.requests) != 1 {
			t.Errorf("the delivery is %s after %d requests", d.Status, len(merchants.requests))
		}
	})
}

func TestOneBadRowTakesNoOtherWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(200), nil)
		bad, _ := h.endpoint(merchant, "https://bad.example/")
		good, _ := h.endpoint(merchant, "https://good.example/")
		h.happen(merchant, event.InvoicePaid)
		damaged := h.reread(bad)
		damaged.SealedSecret = []byte("not sealed")
		h.db.rows.endpoints[bad.ID] = damaged

		did, err := h.Step(t.Context())
		if !did || !errors.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "not sealed") {
			t.Errorf("did %v, error %v", did, err)
		}

		if d := h.deliveries(good.ID)[0]; d.Status != webhook.DeliverySucceeded {
			t.Errorf("the good delivery is %s", d.Status)
		}

		if d := h.deliveries(bad.ID)[0]; d.Status != webhook.DeliveryPending || d.Attempts != 0 ||
			d.ClaimedBy != "" ||
			time.Until(d.NextAttemptAt) != claimFor {
			// our fault: no try is spent, and it is due again a little later
			t.Errorf("the bad delivery is %+v", d)
		}
	})
}

// One event cannot be read, which fails the query for all that were claimed with it: those are read
// one by one.
func TestOneUnreadableRowTakesNoOtherWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(200), nil)

		e, _ := h.endpoint(merchant, "https://example.com/hook")
		for range 3 {
			h.happen(merchant, event.InvoicePaid)
		}

		all := h.deliveries(e.ID)

		h.db.damaged = all[1].EventID
		if did, err := h.Step(t.Context()); !did || err == nil || !strings.Contains(err.Error(), all[1].ID) {
			t.Errorf("did %v, error %v", did, err)
		}

		for i, d := range h.deliveries(e.ID) {
			if want := map[bool]webhook.DeliveryStatus{
				true:  webhook.DeliveryPending,
				false: webhook.DeliverySucceeded,
			}[i == 1]; d.Status != want ||
				d.ClaimedBy != "" {
				t.Errorf("delivery %d is %+v", i, d)
			}
		}
	})
}

func TestGoneDisablesAndFailsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := &inMemory{
			answer: func(string, int) (int, http.Header, time.Duration) { return 410, nil, time.Second },
		}
		h := bubble(t, both, func(c *Config) { c.PerEndpoint = 2 })

		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		for range 5 {
			h.happen(merchant, event.InvoicePaid)
		}

		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		if got := h.reread(
			e,
		); got.Status != webhook.Disabled || h.events(event.WebhookEndpointDisabled) != 1 ||
			h.events(event.WebhookEndpointFailing) != 0 {
			t.Errorf("the endpoint is %s", got.Status)
		}

		tries := 0

		for _, d := range h.deliveries(e.ID) {
			if d.Status != webhook.DeliveryFailed || !d.NextAttemptAt.IsZero() {
				t.Errorf("delivery %+v", d)
			}

			tries += d.Attempts
		}

		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}

// What was pending for an endpoint that is disabled or deleted at the moment of the try is ended
// without one: the store may have missed it when it failed the pending ones.
func TestNothingIsSentToADisabledOrDeletedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(200)
		h := bubble(t, merchants, nil)
		off, _ := h.endpoint(merchant, "https://off.example/")
		gone, _ := h.endpoint(merchant, "https://gone.example/")
		pruned, _ := h.endpoint(merchant, "https://pruned.example/", event.InvoicePaid)
		h.happen(merchant, event.InvoicePending)
		h.happen(merchant, event.InvoicePaid)

		off.Status = webhook.Disabled
		h.db.rows.endpoints[off.ID] = off
		delete(h.db.rows.endpoints, gone.ID)

		for id, ev := range h.db.rows.events {
			if ev.Type == event.InvoicePaid {
				delete(h.db.rows.events, id)
			}
		}

		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}

		for _, d := range h.deliveries("") {
			if d.Status != webhook.DeliveryFailed || d.Attempts != 0 || d.ClaimedBy != "" ||
				!d.NextAttemptAt.IsZero() {
				t.Errorf("delivery %+v", d)
			}
		}

		if len(merchants.requests) != 0 || h.reread(pruned).Status != webhook.Enabled {
			t.Errorf("%d requests were sent", len(merchants.requests))
		}
	})
}

// The store hands out more of a busy endpoint than may be sent: it waits here, and nothing is lost
// or delayed for long.
func TestClaimsBeyondTheSlotsOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(host string, _ int) (int, http.Header, time.Duration) {
				if host == "slow.example" {
					return 200, nil, 14 * time.Second
				}

				return 200, nil, 10 * time.Millisecond
			},
		}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint = 8, 3 })
		h.endpoint(merchant, "https://slow.example/", event.InvoicePaid)
		h.endpoint(merchant, "https://quick.example/", event.InvoicePaid)

		for range 60 {
			h.happen(merchant, event.InvoicePaid)
		}

		stop := h.run()
		defer stop()

		time.Sleep(10 * time.Minute)
		synctest.Wait()

		for _, d := range h.deliveries("") {
			if d.Status != webhook.DeliverySucceeded || d.Attempts != 1 {
				t.Errorf("delivery %s is %s after %d tries", d.ID, d.Status, d.Attempts)
			}
		}

		quick := merchants.to("quick.example")
		if took := quick[len(quick)-1].at.Sub(quick[0].at); len(quick) != 60 || took > 15*time.Second {
			t.Errorf("%d deliveries to the quick endpoint took %s", len(quick), took)
		}

		if slow := merchants.to("slow.example"); len(slow) != 60 {
			t.Errorf("%d deliveries to the slow endpoint", len(slow))
		}
	})
}

// What one endpoint has due does not pile up here: a few wait, the others stay in the store.
func TestFewDeliveriesWaitForOneEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(string, int) (int, http.Header, time.Duration) { return 200, nil, 14 * time.Second },
		}
		h := bubble(t, merchants, func(c *Config) { c.PerEndpoint, c.Poll = 2, 100*time.Millisecond })

		e, _ := h.endpoint(merchant, "https://slow.example/")
		for range 100 {
			h.happen(merchant, event.InvoicePaid)
		}

		stop := h.run()
		defer stop()

		for range 100 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()

			held := 0

			for _, d := range h.deliveries(e.ID) {
				if d.ClaimedBy != "" {
					held++
				}
			}

			if held > 2+2 { // in flight, and one claim
				t.Fatalf("%d deliveries are held", held)
			}
		}
	})
}
