package deliver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file starts, disturbs and stops Run.

func TestStoppingWaitsForTriesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(host string, _ int) (int, http.Header, time.Duration) {
				if host == "stuck.example" {
					return 200, nil, time.Hour
				}

				return 200, nil, 3 * time.Second
			},
		}
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

		count := map[webhook.DeliveryStatus]int{}
		for _, d := range h.deliveries(slow.ID) {
			count[d.Status]++
			if d.ClaimedBy != "" {
				t.Errorf("delivery %s is still claimed", d.ID)
			}
		}

		if count[webhook.DeliverySucceeded] != 1 || count[webhook.DeliveryPending] != 2 {
			t.Errorf("at the slow endpoint: %v", count)
		}

		cut := 0

		for _, d := range h.deliveries(stuck.ID) {
			// A try that we cut short may have arrived, so the log has it; the delivery is due at
			// once, for whichever process comes next.
			if d.Status != webhook.DeliveryPending || d.Attempts != len(d.Log) || d.ClaimedBy != "" ||
				d.NextAttemptAt.After(time.Now()) {
				t.Errorf("the stuck delivery is %+v", d)
			}

			for _, a := range d.Log {
				if a.Error != webhook.Interrupted || a.Request.Headers["service-delivery-id"] != d.ID {
					t.Errorf("a try that was cut short is logged as %+v", a)
				}

				cut++
			}
		}

		if cut != len(merchants.to("stuck.example")) || cut != 1 {
			t.Errorf(
				"%d tries are logged as cut short, %d were sent",
				cut, len(merchants.to("stuck.example")),
			)
		}
	})
}

// With one slot and one result in flight, more deliveries wait than any channel holds.
func TestStoppingWithManyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(string, int) (int, http.Header, time.Duration) { return 500, nil, 100 * time.Millisecond },
		}

		h := bubble(
			t, merchants,
			func(c *Config) { c.Concurrency, c.PerEndpoint, c.Poll = 6, 2, time.Millisecond },
		)
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

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded {
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

		if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded {
			t.Errorf("the delivery is %s", d.Status)
		}
	})
}

// Started and stopped again and again, over real connections: nothing is left behind (TestMain
// looks for goroutines).
func TestStartStopStress(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	h := newHarness(t, func(c *Config) {
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
		if d.Status != webhook.DeliverySucceeded {
			t.Errorf("delivery %+v", d)
		}
	}

	if bytes.Contains(h.log.Bytes(), []byte("level=ERROR")) {
		t.Errorf("the log says %s", h.log)
	}
}
