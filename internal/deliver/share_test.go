package deliver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Endpoints that answer a moment before their deadline delay no others. The short form has 8 accounts,
// TestSoakSlowEndpointsDelayNobodyElse 50.
func TestDrippingEndpointsDelayNobodyElse(t *testing.T) { slowDelayNobody(t, 8, 12) }

func TestSoakSlowEndpointsDelayNobodyElse(t *testing.T) {
	if os.Getenv("SOAKTIME") == "" {
		t.Skip("make soak plays 800 endpoints of 50 accounts")
	}

	slowDelayNobody(t, 50, 10)
}

func slowDelayNobody(t *testing.T, accounts, rounds int) {
	t.Helper()

	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprint("live=", live), func(t *testing.T) {
			alone := worstDelay(t, accounts, rounds, 0, live)
			beside := worstDelay(t, accounts, rounds, 64, live)
			t.Logf("the others' worst delay: %s, beside slow endpoints %s", alone, beside)

			if beside > alone+time.Second {
				t.Errorf("the others wait %s, and %s without slow endpoints", beside, alone)
			}
		})
	}
}

// worstDelay returns the longest time from an event to its request, at endpoints that are not slow.
func worstDelay(t *testing.T, accounts, rounds, slow int, live bool) (worst time.Duration) {
	t.Helper()

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
			for e := range webhook.MaxEndpoints {
				name := "quick"
				if i < 4 && n < slow && e < 16 {
					name = "slow"
					n++
				}

				h.endpoint(owners[i], fmt.Sprintf("https://%s-%d-%d.example/", name, i, e), event.InvoicePaid)
			}
		}

		stop := h.run()

		for range rounds {
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
