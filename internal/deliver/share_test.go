package deliver

import (
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
