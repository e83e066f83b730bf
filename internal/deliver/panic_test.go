package deliver

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// bomb panics in one of the places where the host's code runs, once.
type bomb struct {
	*memory
	io.Reader
	place string
	armed atomic.Bool
}

func (b *bomb) goesOffIn(place string) {
	if place == b.place && b.armed.Swap(false) {
		panic("the host's bug")
	}
}

func (b *bomb) Read(p []byte) (int, error) {
	b.goesOffIn("entropy")
	return b.Reader.Read(p)
}

func (b *bomb) EventsByID(ctx context.Context, ids []string) ([]event.Event, error) {
	b.goesOffIn("load")
	return b.memory.EventsByID(ctx, ids)
}

// A panic of the host's code ends neither the process nor the worker: the delivery is sent later.
func TestPanicOfTheHostEndsNoDelivery(t *testing.T) {
	for _, place := range []string{"claim", "load", "entropy", "record"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bomb{place: place, Reader: steady{}}

				h := bubble(t, always(200), func(c *Config) {
					b.memory, c.DB, c.Entropy = c.DB.(*memory), b, b
				})
				e, _ := h.endpoint(merchant, "https://example.com/hook")
				h.happen(merchant, event.InvoicePaid)

				updates := []string{"claim", "record"}
				h.db.refuse = func() error {
					if len(updates) > 0 {
						next := updates[0]
						updates = updates[1:]

						b.goesOffIn(next)
					}

					return nil
				}

				b.armed.Store(true)

				stop := h.run()

				time.Sleep(2*claimFor + maxPause)
				stop()

				if b.armed.Load() {
					t.Error("nothing panicked")
				}

				if d := h.deliveries(e.ID)[0]; d.Status != webhook.DeliverySucceeded {
					t.Errorf("the delivery is %s", d.Status)
				}

				if !strings.Contains(h.log.String(), "panic_test.go") {
					t.Errorf("the log has no stack: %s", h.log)
				}
			})
		})
	}
}
