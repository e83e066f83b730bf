package deliver

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// A hundred endpoints of seven accounts, with fewer slots than endpoints. One of them hangs: how
// long the deliveries of the others wait stays as it was. In fake time, so that nothing but the
// order of the work is measured.
func TestOneHangingEndpointOfAHundredDelaysNobodyElse(t *testing.T) {
	healthy, hanging := hundredEndpoints(t, false), hundredEndpoints(t, true)
	ratio := float64(hanging) / float64(healthy)
	t.Logf(
		"p99 from the event to the request: %s when all answer, %s when one hangs: %.2f",
		healthy, hanging, ratio,
	)

	if healthy == 0 {
		t.Error("nothing waited: the test shows nothing")
	}

	if ratio > 1.1 {
		t.Errorf("the others wait %.2f times as long", ratio)
	}
}

// hundredEndpoints returns the 99th percentile of the delay at 99 endpoints.
func hundredEndpoints(t *testing.T, hangs bool) (p99 time.Duration) {
	t.Helper()

	const endpoints, batches, bad = 100, 40, "m7.example"

	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(host string, _ int) (int, http.Header, time.Duration) {
				if hangs && host == bad {
					return 200, nil, time.Hour // until the time limit
				}

				return 200, nil, 20 * time.Millisecond
			},
		}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency = 64 })

		var owners []event.Owner

		for i := range endpoints {
			if i%maxEndpoints == 0 {
				owners = append(
					owners,
					event.Owner{
						AccountID: fmt.Sprintf("65a0000000000000000001%02d", len(owners)),
						Livemode:  true,
					},
				)
			}

			h.endpoint(owners[len(owners)-1], fmt.Sprintf("https://m%d.example/", i), event.InvoicePaid)
		}

		if len(owners) < 7 {
			t.Fatalf("%d accounts", len(owners))
		}

		stop := h.run()

		for range batches {
			for _, owner := range owners {
				h.happen(owner, event.InvoicePaid)
			}

			h.Wake()
			time.Sleep(500 * time.Millisecond)
		}

		stop()

		var delays []time.Duration

		for _, r := range merchants.requests {
			if r.host != bad {
				delays = append(
					delays,
					r.at.Sub(h.db.rows.events[r.header.Get(webhook.EventIDHeader)].CreatedAt),
				)
			}
		}

		if len(delays) != batches*(endpoints-1) {
			t.Errorf("%d deliveries to the others, want %d", len(delays), batches*(endpoints-1))
		}

		slices.Sort(delays)
		p99 = delays[len(delays)*99/100]
	})

	return p99
}
