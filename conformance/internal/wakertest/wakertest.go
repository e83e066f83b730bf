// Package wakertest is the suite behind conformance.TestWaker.
package wakertest

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

// Harness is conformance.WakerHarness: two processes of one service, and another service.
type Harness struct {
	A, B store.Waker
	// Stranger is the waker of another service on the same server.
	Stranger store.Waker
	// Cut closes the connections of listeners.
	Cut func()
}

// patience is how long a wake-up may take on a busy machine.
const patience = 20 * time.Second

// Run runs every case against a harness of its own.
func Run(t *testing.T, factory func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"EverybodyHears", testAll},
		{"NobodyElseHears", testStranger},
		{"ManyAtOnce", testMany},
		{"EndsWithTheContext", testEnds},
		{"HearsAgainAfterACut", testCut},
		{"EndedContext", testCanceled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, factory(t)) })
	}
}

// listener is a running call of Wakes.
type listener struct {
	t        *testing.T
	received chan string
	done     chan error
	stop     context.CancelFunc
}

// listen starts a listener and returns when it listens.
func listen(t *testing.T, waker store.Waker) *listener {
	t.Helper()

	ctx, stop := context.WithCancel(context.Background())
	l := &listener{t: t, received: make(chan string, 1000), done: make(chan error, 1), stop: stop}

	var ended sync.WaitGroup
	ended.Go(func() { l.done <- waker.Wakes(ctx, func(from string) { l.received <- from }) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})

	if from := l.next(); from != "" {
		t.Fatalf("the first call is about %q, want none: for what went by before", from)
	}

	return l
}

// next waits for a call.
func (l *listener) next() string {
	l.t.Helper()

	select {
	case from := <-l.received:
		return from
	case err := <-l.done:
		l.t.Fatalf("Wakes ended: %v", err)
	case <-time.After(patience):
		l.t.Fatalf("nothing is received within %s", patience)
	}

	return ""
}

func (l *listener) expect(want string) {
	l.t.Helper()

	if from := l.next(); from != want {
		l.t.Errorf("received %q, want %q", from, want)
	}
}

func wake(t *testing.T, waker store.Waker, from string) {
	t.Helper()

	if err := waker.Wake(t.Context(), from); err != nil {
		t.Fatalf("Wake: %v", err)
	}
}

func testAll(t *testing.T, h Harness) {
	a, b := listen(t, h.A), listen(t, h.B)

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

func testStranger(t *testing.T, h Harness) {
	a, stranger := listen(t, h.A), listen(t, h.Stranger)
	wake(t, h.A, "ours")
	wake(t, h.Stranger, "theirs")
	a.expect("ours")
	stranger.expect("theirs")
	wake(t, h.A, "again")
	a.expect("again")
}

func testMany(t *testing.T, h Harness) {
	b := listen(t, h.B)

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

	received := map[string]bool{}
	for range 8 * each {
		received[b.next()] = true
	}

	done.Wait()

	if len(received) != 8*each {
		t.Errorf("%d of %d wake-ups were received", len(received), 8*each)
	}
}

func testEnds(t *testing.T, h Harness) {
	a := listen(t, h.A)
	a.stop()

	select {
	case err := <-a.done:
		if err != nil {
			t.Errorf("Wakes ended with %v when its context did, want nil", err)
		}
	case <-time.After(patience):
		t.Error("Wakes does not end with its context")
	}

	select {
	case from := <-a.received:
		t.Errorf("received %q after the end", from)
	default:
	}
}

func testCut(t *testing.T, h Harness) {
	a := listen(t, h.A)
	h.Cut()

	select {
	case err := <-a.done:
		if !errors.Is(err, fault.Unavailable) {
			t.Errorf("a listener that was cut off answered %v, want fault.Unavailable", err)
		}
	case <-time.After(patience):
		t.Fatal("a listener does not notice that it was cut off")
	}

	relistening := listen(t, h.A)

	// A sender's connection may have been cut as well: the next one stands.
	err := h.B.Wake(t.Context(), "after")
	if err != nil && !errors.Is(err, fault.Unavailable) {
		t.Errorf("a sender that was cut off answered %v, want fault.Unavailable", err)
	}

	if err != nil {
		wake(t, h.B, "after")
	}

	relistening.expect("after")
}

func testCanceled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := h.A.Wake(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Wake under a canceled context answered %v", err)
	}

	if err := h.A.Wakes(ctx, func(string) {}); err != nil {
		t.Errorf("Wakes under a canceled context answered %v, want nil", err)
	}
}
