package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
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

// bubble returns a house in which time is the fake one of a synctest bubble.
func bubble(t *testing.T, transport *inMemory, change func(*Config)) *house {
	t.Helper()
	h := newHouse(t, func(c *Config) {
		c.Now, c.Entropy = time.Now, steady{}
		if change != nil {
			change(c)
		}
	})
	h.client.Transport = transport
	return h
}

// run runs the worker until the returned function is called, which checks that it ended well.
func (h *house) run() (stop func()) {
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
			if err := Verify([]byte(q.body), q.header.Get(SignatureHeader), q.at, secret); err != nil {
				t.Errorf("try %d: %v", i+1, err)
			}
		}
		d := h.deliveries(e.ID)[0]
		if d.Status != DeliveryFailed || d.Attempts != 10 || len(d.Log) != 10 || !d.NextAttemptAt.IsZero() || d.ClaimedBy != "" {
			t.Errorf("the delivery ended as %+v", d)
		}
		if got := h.reread(e); got.Status != Failing || got.FailingSince.IsZero() || !got.FirstFailureAt.Equal(begun) {
			t.Errorf("the endpoint is %s, failing since %s, first failure at %s", got.Status, got.FailingSince, got.FirstFailureAt)
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
		failing.Status, failing.FailingSince, failing.FirstFailureAt = Failing, time.Now().Add(-day), time.Now().Add(-2*day)
		h.db.rows.endpoints[e.ID] = failing
		h.happen(merchant, event.InvoicePaid)
		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}
		got := h.reread(e)
		if got.Status != Enabled || !got.FailingSince.IsZero() || !got.FirstFailureAt.IsZero() || !got.LastSuccessAt.Equal(time.Now()) {
			t.Errorf("the endpoint is %+v", got)
		}
		if d := h.deliveries(e.ID)[0]; d.Status != DeliverySucceeded || !d.DeliveredAt.Equal(time.Now()) || d.Attempts != 1 {
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
		if got.Status != Disabled || got.UpdatedAt.Sub(begun) < disableAfter || got.UpdatedAt.Sub(begun) > disableAfter+10*time.Hour {
			t.Fatalf("the endpoint is %s since %s after the first failure", got.Status, got.UpdatedAt.Sub(begun))
		}
		for _, d := range h.deliveries(e.ID) {
			if d.Status != DeliveryFailed {
				t.Errorf("delivery %s is %s", d.ID, d.Status)
			}
		}
		if h.events(event.WebhookEndpointFailing) != 1 || h.events(event.WebhookEndpointDisabled) != 1 {
			t.Errorf("%d failing and %d disabled events", h.events(event.WebhookEndpointFailing), h.events(event.WebhookEndpointDisabled))
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
		merchants := &inMemory{answer: func(_ string, n int) (int, http.Header, time.Duration) {
			if n%4 == 3 {
				return 200, nil, 0
			}
			return 500, nil, 0
		}}
		h := bubble(t, merchants, func(c *Config) { c.Poll = time.Minute })
		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		stop := h.run()
		defer stop()
		for range 12 {
			h.happen(merchant, event.InvoicePaid)
			time.Sleep(day)
		}
		if got := h.reread(e); got.Status != Enabled {
			t.Errorf("the endpoint is %s", got.Status)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		asks := []string{"3600", begun.Add(12 * time.Hour).UTC().Format(http.TimeFormat), "999999", "1"}
		merchants := &inMemory{answer: func(_ string, n int) (int, http.Header, time.Duration) {
			if n < len(asks) {
				return 429, http.Header{"Retry-After": {asks[n]}}, 0
			}
			return 200, nil, 0
		}}
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
			header := q.header.Get(SignatureHeader)
			if n := strings.Count(header, ",v1="); within && n != 2 || !within && n != 1 {
				t.Errorf("try %d has %d signatures", i+1, n)
			}
			if err := Verify([]byte(q.body), header, q.at, second); err != nil {
				t.Errorf("try %d with the new secret: %v", i+1, err)
			}
			if err := Verify([]byte(q.body), header, q.at, first); within != (err == nil) {
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

// pitfall 24: one slow endpoint, with more due than there are slots, does not delay another's deliveries.
func TestSlowEndpointDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, now := 0, 0
		var mu sync.Mutex
		merchants := &inMemory{answer: func(host string, _ int) (int, http.Header, time.Duration) {
			if host != "slow.example" {
				return 200, nil, 10 * time.Millisecond
			}
			return 200, nil, time.Hour // until the time limit
		}}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint = 8, 3 })
		h.client.Transport = counting{merchants, func(host string, d int) {
			mu.Lock()
			defer mu.Unlock()
			if host == "slow.example" {
				now += d
				most = max(most, now)
			}
		}}
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
			if d.Status != DeliverySucceeded {
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
func TestManyDeadEndpointsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(host string, _ int) (int, http.Header, time.Duration) {
			if host == "quick.example" {
				return 200, nil, 0
			}
			return 200, nil, time.Hour
		}}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint, c.Poll = 16, 4, 20*time.Second })
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
		if d := h.deliveries(quick.ID)[0]; d.Status != DeliverySucceeded {
			t.Errorf("the delivery to the quick endpoint is %s", d.Status)
		}
		stop()
	})
}

func TestABacklogIsDeliveredOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(string, int) (int, http.Header, time.Duration) { return 200, nil, 20 * time.Millisecond }}
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
			if d.Status != DeliverySucceeded || d.Attempts != 1 {
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
		if d.Status != DeliverySucceeded || d.Fence != 2 || d.Attempts != 1 {
			t.Errorf("the delivery is %+v", d)
		}
		tries := merchants.to("example.com")
		if len(tries) != 2 || tries[0].body != tries[1].body || tries[0].header.Get(EventIDHeader) != tries[1].header.Get(EventIDHeader) {
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
			d := page(h.db.rows.deliveries, "", 1, func(Delivery) bool { return true })[0]
			d.Fence++
			d.Version++
			d.Status, d.NextAttemptAt = DeliverySucceeded, time.Time{}
			h.db.rows.deliveries[d.ID] = d
			return nil, io.EOF
		})
		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}
		if d := h.deliveries(e.ID)[0]; d.Status != DeliverySucceeded || d.Attempts != 0 {
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
		if d := h.deliveries(e.ID)[0]; d.Status != DeliverySucceeded || len(merchants.requests) != 1 {
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
		if d := h.deliveries(good.ID)[0]; d.Status != DeliverySucceeded {
			t.Errorf("the good delivery is %s", d.Status)
		}
		if d := h.deliveries(bad.ID)[0]; d.Status != DeliveryPending || d.Attempts != 0 || d.ClaimedBy == "" {
			t.Errorf("the bad delivery is %+v", d) // our fault: no try is spent, and it is due when the claim lapses
		}
	})
}

func TestGoneDisablesAndFailsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := &inMemory{answer: func(string, int) (int, http.Header, time.Duration) { return 410, nil, time.Second }}
		h := bubble(t, both, func(c *Config) { c.PerEndpoint = 2 })
		e, _ := h.endpoint(merchant, "https://example.com/hook", event.InvoicePaid)
		for range 5 {
			h.happen(merchant, event.InvoicePaid)
		}
		if did, err := h.Step(t.Context()); !did || err != nil {
			t.Fatalf("did %v, error %v", did, err)
		}
		if got := h.reread(e); got.Status != Disabled || h.events(event.WebhookEndpointDisabled) != 1 || h.events(event.WebhookEndpointFailing) != 0 {
			t.Errorf("the endpoint is %s", got.Status)
		}
		tries := 0
		for _, d := range h.deliveries(e.ID) {
			if d.Status != DeliveryFailed || !d.NextAttemptAt.IsZero() {
				t.Errorf("delivery %+v", d)
			}
			tries += d.Attempts
		}
		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}

// What was pending for an endpoint that is disabled or deleted at the moment of the try is ended without one: the
// store may have missed it when it failed the pending ones.
func TestNothingIsSentToADisabledOrDeletedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := always(200)
		h := bubble(t, merchants, nil)
		off, _ := h.endpoint(merchant, "https://off.example/")
		gone, _ := h.endpoint(merchant, "https://gone.example/")
		pruned, _ := h.endpoint(merchant, "https://pruned.example/", event.InvoicePaid)
		h.happen(merchant, event.InvoicePending)
		h.happen(merchant, event.InvoicePaid)
		off.Status = Disabled
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
			if d.Status != DeliveryFailed || d.Attempts != 0 || d.ClaimedBy != "" || !d.NextAttemptAt.IsZero() {
				t.Errorf("delivery %+v", d)
			}
		}
		if len(merchants.requests) != 0 || h.reread(pruned).Status != Enabled {
			t.Errorf("%d requests were sent", len(merchants.requests))
		}
	})
}

func TestStoppingWaitsForTriesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(host string, _ int) (int, http.Header, time.Duration) {
			if host == "stuck.example" {
				return 200, nil, time.Hour
			}
			return 200, nil, 3 * time.Second
		}}
		h := bubble(t, merchants, func(c *Config) { c.PerEndpoint = 1 })
		slow, _ := h.endpoint(merchant, "https://slow.example/")
		stuck, _ := h.endpoint(merchant, "https://stuck.example/")
		for range 3 {
			h.happen(merchant, event.InvoicePaid)
		}
		stop := h.run()
		time.Sleep(2500 * time.Millisecond) // several claims: deliveries wait for a slot
		begun := time.Now()
		stop()
		if took := time.Since(begun); took != drainLimit {
			t.Errorf("stopping took %s", took)
		}
		count := map[DeliveryStatus]int{}
		for _, d := range h.deliveries(slow.ID) {
			count[d.Status]++
			if d.ClaimedBy != "" {
				t.Errorf("delivery %s is still claimed", d.ID)
			}
		}
		if count[DeliverySucceeded] != 1 || count[DeliveryPending] != 2 {
			t.Errorf("at the slow endpoint: %v", count)
		}
		for _, d := range h.deliveries(stuck.ID) {
			// A try that we cut short is none: it is due at once, for whichever process comes next.
			if d.Status != DeliveryPending || d.Attempts != 0 || d.ClaimedBy != "" || d.NextAttemptAt.After(time.Now()) {
				t.Errorf("the stuck delivery is %+v", d)
			}
		}
	})
}

// With one slot and one result in flight, more deliveries wait than any channel holds.
func TestStoppingWithManyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(string, int) (int, http.Header, time.Duration) { return 500, nil, 100 * time.Millisecond }}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency, c.PerEndpoint, c.Poll = 6, 2, time.Millisecond })
		for i := range 5 {
			h.endpoint(merchant, fmt.Sprintf("https://m%d.example/", i), event.InvoicePaid)
		}
		for range 30 {
			h.happen(merchant, event.InvoicePaid)
		}
		for range 20 {
			stop := h.run()
			time.Sleep(150 * time.Millisecond)
			stop()
			for _, d := range h.deliveries("") {
				if d.ClaimedBy != "" && d.ClaimedUntil.Before(time.Now()) {
					t.Errorf("delivery %s is claimed until %s", d.ID, d.ClaimedUntil)
				}
			}
		}
	})
}

func TestRunSurvivesAStoreThatCannotClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(200), nil)
		e, _ := h.endpoint(merchant, "https://example.com/hook")
		h.happen(merchant, event.InvoicePaid)
		claims := 0
		h.db.refuse = func() error {
			claims++
			return fault.New(fault.Unavailable, "store_unavailable", "the database is down")
		}
		stop := h.run()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if claims > 10 {
			t.Errorf("%d claims in two minutes", claims)
		}
		h.db.mu.Lock()
		h.db.refuse = nil
		h.db.mu.Unlock()
		time.Sleep(maxPause + time.Second)
		if d := h.deliveries(e.ID)[0]; d.Status != DeliverySucceeded {
			t.Errorf("the delivery is %s", d.Status)
		}
		stop()
		if !strings.Contains(h.log.String(), "cannot be claimed") {
			t.Errorf("the log says %q", h.log)
		}
	})
}

func TestWakeIsFasterThanThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bubble(t, always(200), func(c *Config) { c.Poll = time.Hour })
		e, _ := h.endpoint(merchant, "https://example.com/hook")
		stop := h.run()
		defer stop()
		time.Sleep(time.Second)
		h.happen(merchant, event.InvoicePaid)
		h.Wake()
		h.Wake()
		synctest.Wait()
		if d := h.deliveries(e.ID)[0]; d.Status != DeliverySucceeded {
			t.Errorf("the delivery is %s", d.Status)
		}
	})
}

// The store hands out more of a busy endpoint than may be sent: it waits here, and nothing is lost or delayed for long.
func TestClaimsBeyondTheSlotsOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(host string, _ int) (int, http.Header, time.Duration) {
			if host == "slow.example" {
				return 200, nil, 14 * time.Second
			}
			return 200, nil, 10 * time.Millisecond
		}}
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
			if d.Status != DeliverySucceeded || d.Attempts != 1 {
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

// What one endpoint has due does not pile up here: a few wait, the others go back to the queue.
func TestFewDeliveriesWaitForOneEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(string, int) (int, http.Header, time.Duration) { return 200, nil, 14 * time.Second }}
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
			if held > 2+parked*2 {
				t.Fatalf("%d deliveries are held", held)
			}
		}
	})
}

// Started and stopped again and again, over real connections: nothing is left behind (TestMain looks for goroutines).
func TestStartStopStress(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	h := newHouse(t, func(c *Config) {
		c.Now = time.Now
		c.HTTP.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	h.endpoint(tester, server.URL)
	for range 20 {
		var stops []func()
		for range 3 {
			stops = append(stops, h.run())
		}
		h.happen(tester, event.InvoicePaid)
		h.Wake()
		for _, stop := range stops {
			stop()
		}
	}
	for {
		did, err := h.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !did {
			break
		}
	}
	for _, d := range h.deliveries("") {
		if d.Status != DeliverySucceeded {
			t.Errorf("delivery %+v", d)
		}
	}
	if bytes.Contains(h.log.Bytes(), []byte("level=ERROR")) {
		t.Errorf("the log says %s", h.log)
	}
}
