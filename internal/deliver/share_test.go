package deliver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

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

// A backlog of test mode, which may have half of the slots, is sent as fast as these allow: next to nothing of it is
// claimed in vain and put off.
func TestBacklogOfTestModeFlows(t *testing.T) {
	const slots, endpoints, each, answer = 32, 40, 20, 20 * time.Millisecond

	synctest.Test(t, func(t *testing.T) {
		merchants := &inMemory{
			answer: func(string, int) (int, http.Header, time.Duration) { return 200, nil, answer },
		}
		h := bubble(t, merchants, func(c *Config) { c.Concurrency = slots })

		var owners []event.Owner

		for i := range endpoints {
			if i%10 == 0 {
				owners = append(
					owners,
					event.Owner{AccountID: fmt.Sprintf("65a0000000000000000001%02d", len(owners))},
				)
			}

			h.endpoint(owners[len(owners)-1], fmt.Sprintf("https://m%d.example/", i), event.InvoicePaid)
		}

		for range each {
			for _, owner := range owners {
				h.happen(owner, event.InvoicePaid)
			}
		}

		began := time.Now()
		stop := h.run()

		// Four accounts share 16 slots: each has one in five of them, so that 12 are in use.
		const answers = endpoints * each / 12

		time.Sleep((answers + 2) * answer)
		synctest.Wait()
		stop()

		// A claim that is made while slots are taken may put off a few.
		if n := len(merchants.requests); n < endpoints*each*95/100 {
			t.Errorf("%d of %d deliveries are sent after %s", n, endpoints*each, time.Since(began))
		}
	})
}
