package conformance

import (
	"testing"

	"github.com/seed-8ee7f392/payments/conformance/internal/wakertest"
	"github.com/seed-8ee7f392/payments/store"
)

// WakerHarness is the wakers of two processes of one service, and of another service.
type WakerHarness struct {
	// A and B are wakers of two processes of one service.
	A, B store.Waker

	// Stranger is the waker of another service on the same server.
	Stranger store.Waker

	// Cut breaks the connections of listeners, like a network failure or a restart. The server stays up.
	Cut func()
}

// TestWaker tests wake-ups between processes against store.Waker:
//
//   - Every process of the service receives each wake-up, including the sender; no other service does.
//   - A listener is called with an empty note as soon as it listens.
//   - It returns nil when its context ends, and fault.Unavailable when its connection is lost.
//
// A wake-up may take 20 s.
func TestWaker(t *testing.T, factory func(t *testing.T) WakerHarness) {
	wakertest.Run(t, func(t *testing.T) wakertest.Harness { return wakertest.Harness(factory(t)) })
}
