package conformance

// TestWaker: the suite for wake-ups between processes.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// WakerHarness is what two processes of one service have.
type WakerHarness struct {
	A, B store.Waker
	// Stranger is the waker of another service on the same server.
	Stranger store.Waker
	// Cut takes the connections of listeners away, as a network or a restart does; the server itself stays.
	Cut func()
}

// wakerPatience is how long a wake-up may take on a machine with much else to do.
const wakerPatience = 20 * time.Second

// TestWaker runs the suite against wakers that factory makes.
func TestWaker(t *testing.T, factory func(t *testing.T) WakerHarness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h WakerHarness)
	}{
		{"EverybodyHears", testWakerAll},
		{"NobodyElseHears", testWakerStranger},
		{"ManyAtOnce", testWakerMany},
		{"EndsWithTheContext", testWakerEnds},
		{"HearsAgainAfterACut", testWakerCut},
		{"EndedContext", testWakerCanceled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, factory(t)) })
	}
}

// ears is a running Wakes.
type ears struct {
	t     *testing.T
	heard chan string
	done  chan error
	stop  context.CancelFunc
}

// wakerListen starts to listen, and returns when it does.
func wakerListen(t *testing.T, w store.Waker) *ears {
	t.Helper()

	ctx, stop := context.WithCancel(context.Background())
	e := &ears{t: t, heard: make(chan string, 1000), done: make(chan error, 1), stop: stop}

	var ended sync.WaitGroup
	ended.Go(func() { e.done <- w.Wakes(ctx, func(from string) { e.heard <- from }) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})

	if from := e.next(); from != "" {
		t.Fatalf("the first call is about %q, want none: for what went by before", from)
	}

	return e
}

// next waits for a call.
func (e *ears) next() string {
	e.t.Helper()

	select {
	case from := <-e.heard:
		return from
	case err := <-e.done:
		e.t.Fatalf("Wakes ended: %v", err)
	case <-time.After(wakerPatience):
		e.t.Fatalf("nothing is heard within %s", wakerPatience)
	}

	return ""
}

func (e *ears) expect(want string) {
	e.t.Helper()

	if from := e.next(); from != want {
		e.t.Errorf("heard of %q, want %q", from, want)
	}
}

func wake(t *testing.T, w store.Waker, from string) {
	t.Helper()

	if err := w.Wake(t.Context(), from); err != nil {
		t.Fatalf("Wake: %v", err)
	}
}

func testWakerAll(t *testing.T, h WakerHarness) {
	a, b := wakerListen(t, h.A), wakerListen(t, h.B)

	long := strings.Repeat(`a'"\é `, 28) // 196 bytes
	for _, from := range []string{"process 1", long} {
		wake(t, h.A, from)
		a.expect(from)
		b.expect(from)
	}

	wake(t, h.B, "process 2")
	a.expect("process 2")
	b.expect("process 2")
}

func testWakerStranger(t *testing.T, h WakerHarness) {
	a, stranger := wakerListen(t, h.A), wakerListen(t, h.Stranger)
	wake(t, h.A, "ours")
	wake(t, h.Stranger, "theirs")
	a.expect("ours")
	stranger.expect("theirs")
	wake(t, h.A, "again")
	a.expect("again")
}

func testWakerMany(t *testing.T, h WakerHarness) {
	b := wakerListen(t, h.B)

	const each = 25

	var done sync.WaitGroup
	for n := range 8 {
		done.Go(func() {
			for i := range each {
				if err := h.A.Wake(t.Context(), fmt.Sprint(n, "/", i)); err != nil {
					t.Errorf("Wake: %v", err)
				}
			}
		})
	}

	heard := map[string]bool{}
	for range 8 * each {
		heard[b.next()] = true
	}

	done.Wait()

	if len(heard) != 8*each {
		t.Errorf("%d of %d wake-ups were heard", len(heard), 8*each)
	}
}

func testWakerEnds(t *testing.T, h WakerHarness) {
	a := wakerListen(t, h.A)
	a.stop()

	select {
	case err := <-a.done:
		if err != nil {
			t.Errorf("Wakes ended with %v when its context did, want nil", err)
		}
	case <-time.After(wakerPatience):
		t.Error("Wakes does not end with its context")
	}

	select {
	case from := <-a.heard:
		t.Errorf("heard of %q after the end", from)
	default:
	}
}

func testWakerCut(t *testing.T, h WakerHarness) {
	a := wakerListen(t, h.A)
	h.Cut()

	select {
	case err := <-a.done:
		if !errors.Is(err, fault.Unavailable) {
			t.Errorf("a listener that was cut off answered %v, want fault.Unavailable", err)
		}
	case <-time.After(wakerPatience):
		t.Fatal("a listener does not notice that it was cut off")
	}

	again := wakerListen(t, h.A)
	// A sender's connection may have been cut as well: the next one stands.
	err := h.B.Wake(t.Context(), "after")
	if err != nil && !errors.Is(err, fault.Unavailable) {
		t.Errorf("a sender that was cut off answered %v, want fault.Unavailable", err)
	}

	if err != nil {
		wake(t, h.B, "after")
	}

	again.expect("after")
}

func testWakerCanceled(t *testing.T, h WakerHarness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := h.A.Wake(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Wake under a canceled context answered %v", err)
	}

	if err := h.A.Wakes(ctx, func(string) {}); err != nil {
		t.Errorf("Wakes under a canceled context answered %v, want nil", err)
	}
}
