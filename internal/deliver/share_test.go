package deliver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// A thousand endpoints over fifty accounts, 64 of them slow, in test mode or live: everybody else's deliveries
// come when they are due, plus the time of one slot.
func TestDrippingEndpointsDelayNobodyElse(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprint("live=", live), func(t *testing.T) {
			alone, beside := worstDelay(t, 0, live), worstDelay(t, 64, live)
			t.Logf("the others' worst delay: %s, beside slow endpoints %s", alone, beside)

			if slot := DefaultTimeout; beside > alone+slot {
				t.Errorf("the others wait %s, and %s without slow endpoints", beside, alone)
			}
		})
	}
}

// worstDelay returns the longest time from an event to its request, at endpoints that are not slow.
func worstDelay(t *testing.T, slow int, live bool) (worst time.Duration) {
	t.Helper()

	const accounts, perAccount = 50, 20

	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{answer: func(host string, _ int) (int, http.Header, time.Duration) {
			if strings.HasPrefix(host, "slow") {
				return 200, nil, DefaultTimeout - time.Second
			}

			return 200, nil, 20 * time.Millisecond
		}}
		h := bubble(t, merchants, func(*Config) {})

		owners := make([]event.Owner, accounts)
		for i := range owners {
			// The first four accounts have the slow endpoints.
			mode := i >= 4 || live
			owners[i] = event.Owner{AccountID: fmt.Sprintf("65a0000000000000000001%02d", i), Livemode: mode}
		}

		for i, n := 0, 0; i < accounts; i++ {
			for e := range min(perAccount, webhook.MaxEndpoints) {
				name := "quick"
				if i < 4 && n < slow && e < 16 {
					name = "slow"
					n++
				}

				h.endpoint(owners[i], fmt.Sprintf("https://%s-%d-%d.example/", name, i, e), event.InvoicePaid)
			}
		}

		stop := h.run()

		for range 10 {
			for _, owner := range owners {
				h.happen(owner, event.InvoicePaid)
			}

			h.Wake()
			time.Sleep(3 * time.Second)
		}

		stop()

		for _, r := range merchants.requests {
			if strings.HasPrefix(r.host, "slow") {
				continue
			}

			made := h.db.rows.events[r.header.Get(webhook.EventIDHeader)].CreatedAt
			worst = max(worst, r.at.Sub(made))
		}
	})

	return worst
}

// An endpoint that takes up to 3 s and gets ten events a second keeps up.
func TestSlowEndpointThatAnswersKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		merchants := &inMemory{answer: func(string, int) (int, http.Header, time.Duration) {
			return 200, nil, time.Duration(random.Int64N(int64(3 * time.Second)))
		}}
		h := bubble(t, merchants, func(*Config) {})
		h.endpoint(merchant, "https://m.example/", event.InvoicePaid)

		stop := h.run()

		const events = 1200

		for range events {
			h.happen(merchant, event.InvoicePaid)
			time.Sleep(100 * time.Millisecond)
		}

		time.Sleep(10 * time.Second)
		stop()

		var late []time.Duration

		for _, r := range merchants.requests[len(merchants.requests)/2:] {
			made := h.db.rows.events[r.header.Get(webhook.EventIDHeader)].CreatedAt
			late = append(late, r.at.Sub(made))
		}

		if worst := slices.Max(late); len(merchants.requests) < events || worst > 5*time.Second {
			t.Errorf("%d of %d sent, the latest after %s", len(merchants.requests), events, worst)
		}
	})
}
