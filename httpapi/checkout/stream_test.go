package checkout

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments/internal/limit"
)

// openLimiter lets everything through.
type openLimiter struct{}

func (openLimiter) Allow(context.Context, string, int, int) (bool, int, error) { return true, 0, nil }

// brokenLimiter cannot be reached.
type brokenLimiter struct{}

func (brokenLimiter) Allow(context.Context, string, int, int) (bool, int, error) {
	return false, 0, errors.New("connection refused")
}

// events opens an event stream and returns a function that waits for the next state.
func events(ctx context.Context, t *testing.T, url string) func() (pageState, error) {
	t.Helper()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { resp.Body.Close() })

	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s %s", url, resp.Status, resp.Header.Get("Content-Type"))
	}

	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)

	return func() (pageState, error) {
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok && name == "heartbeat" {
				lines.Scan() // its data

				continue
			}

			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var s pageState
				return s, json.Unmarshal([]byte(data), &s)
			}
		}

		return pageState{}, errors.Join(lines.Err(), errors.New("the stream ended"))
	}
}

func TestStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()

	first := named(t, "pay")
	b := newFake(first)
	p := newTestPages(t, b, nil)

	server := httptest.NewServer(p)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	next := events(ctx, t, server.URL+"/checkout/"+first.invoice.ID+"/events")
	expect := func(want phase) {
		t.Helper()

		if s, err := next(); err != nil || s.Phase != want {
			t.Fatalf("%s, %v; want %s", s.Phase, err, want)
		}
	}
	expect(phasePay)

	for _, name := range []string{"seen", "confirming", "paid"} {
		e := named(t, name)
		e.invoice.ID = first.invoice.ID
		b.set(e)
		expect(e.phase)
	}
	// A change that a payer does not see sends nothing; the next one does.
	e := named(t, "paid")
	e.invoice.ID, e.invoice.OrderID = first.invoice.ID, "changed"
	b.set(e)

	r := named(t, "refunded")
	r.invoice.ID = first.invoice.ID
	b.set(r)
	expect(phaseRefunded)
	cancel()

	for deadline := time.Now().Add(10 * time.Second); ; {
		p.streams.mu.Lock()
		open := len(p.streams.open)
		p.streams.mu.Unlock()

		if open == 0 {
			break
		}

		if time.Now().After(deadline) {
			t.Fatal("the stream is still counted after its client left")
		}
	}
}

// A quote that expires is sent at that time, although nothing was stored.
func TestStreamSendsWhatOnlyTimeChanged(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()

	e := named(t, "pay")
	b := newFake(e)
	start := time.Now()

	b.mu.Lock()
	b.now = start
	b.mu.Unlock()

	e.invoice.Options[0].QuoteExpiresAt = start.Add(300 * time.Millisecond)
	e.invoice.ExpiresAt = start.Add(time.Hour)
	b.set(e)

	server := httptest.NewServer(newTestPages(t, clocked{b}, nil))
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()

	next := events(ctx, t, server.URL+"/checkout/"+e.invoice.ID+"/events")
	if s, err := next(); err != nil || s.Phase != phasePay {
		t.Fatal(s.Phase, err)
	}

	if s, err := next(); err != nil || s.Phase != phaseQuoteExpired {
		t.Fatal(s.Phase, err)
	}
}

// clocked is a backend on the real clock.
type clocked struct{ *fakeBackend }

func (clocked) Now() time.Time { return time.Now() }

func TestStreamsPerClient(t *testing.T) {
	e := named(t, "pay")

	p := newTestPages(t, newFake(e), nil)
	for range limit.Defaults().StreamsPerClient {
		if !p.streams.acquire("192.0.2.1") {
			t.Fatal("a place is refused too early")
		}
	}

	w := get(p, "/checkout/"+e.invoice.ID+"/events") // httptest's client address
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d", w.Code)
	}

	p.streams.release("192.0.2.1")

	if !p.streams.acquire("192.0.2.1") {
		t.Error("a place that was left is not free")
	}
}

func TestStreamOfNothing(t *testing.T) {
	p := newTestPages(t, newFake(), nil)
	if w := get(
		p, "/checkout/"+strings.Repeat("a", 24)+"/events",
	); w.Code != http.StatusNotFound ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
}

// Paying matters more than counting.
func TestBrokenLimiterLetsThrough(t *testing.T) {
	e := named(t, "pay")
	if w := get(
		newTestPages(t, newFake(e), &Options{Limiter: brokenLimiter{}}), pageOf(e),
	); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
}
