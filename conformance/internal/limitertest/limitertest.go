// Package limitertest is the suite behind conformance.TestLimiter.
//
// The limiter's clock may be real. What was allowed is compared with what the time that passed
// meanwhile allows, so that a slow machine does not fail.
package limitertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store"
)

// Harness is conformance.LimiterHarness: a limiter with its clock.
type Harness struct {
	Limiter store.Limiter
	// Now is the limiter's clock.
	Now func() time.Time
	// Wait lets the clock go on by at least d: a fake one is set, a real one is waited for.
	Wait func(d time.Duration)
}

// Run runs every case against a limiter of its own.
func Run(t *testing.T, factory func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, l run)
	}{
		{"BurstThenRefused", testBurst},
		{"RefillsAtTheRate", testRefill},
		{"FullIsFull", testFull},
		{"RetryAfterIsEnough", testRetry},
		{"RefusalTakesNothing", testRefusals},
		{"KeysAreApart", testKeys},
		{"SmallerBurst", testSettings},
		{"Concurrent", testConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, run{factory(t), t}) })
	}
}

// goroutines is how many callers ask at once.
const goroutines = 32

type run struct {
	Harness
	t *testing.T
}

// take asks once.
func (l run) take(key string, perSecond, burst int) bool {
	l.t.Helper()

	ok, after, err := l.Limiter.Allow(l.t.Context(), key, perSecond, burst)
	if err != nil {
		l.t.Fatalf("Allow: %v", err)
	}

	if !ok && after != 1 { // at one token a second or more there is always one within a second
		l.t.Errorf("a refusal at %d a second says to come back after %d s, want 1", perSecond, after)
	}

	return ok
}

// drain asks so many times, and checks that a bucket with so many tokens allowed as many as it had
// to and could.
func (l run) drain(key string, perSecond, burst, tokens, asks int) {
	l.t.Helper()

	began, allowed := l.Now(), 0
	for range asks {
		if l.take(key, perSecond, burst) {
			allowed++
		}
	}

	l.between(allowed, tokens, tokens+refilled(l.Now().Sub(began), perSecond), asks)
}

func (l run) between(allowed, least, most, asks int) {
	l.t.Helper()

	if least, most := min(least, asks), min(most, asks); allowed < least || allowed > most {
		l.t.Errorf("%d of %d requests were allowed, want %d to %d", allowed, asks, least, most)
	}
}

// refilled is how many tokens may have come in a time, the one that was nearly there included.
func refilled(d time.Duration, perSecond int) int {
	return int((d*time.Duration(perSecond) + time.Second - 1) / time.Second)
}

func testBurst(t *testing.T, l run) {
	l.drain("a", 1, 5, 5, 9)
	l.drain("b", 7, 1, 1, 5)
	l.drain("c", 300, 100, 100, 150)
}

func testRefill(t *testing.T, l run) {
	began := l.Now()
	allowed := 0

	for range 20 {
		if l.take("a", 20, 4) {
			allowed++
		}
	}

	for range 3 {
		l.Wait(150 * time.Millisecond) // three tokens

		for range 5 {
			if l.take("a", 20, 4) {
				allowed++
			}
		}
	}

	l.between(allowed, 4+3*3-1, 4+refilled(l.Now().Sub(began), 20), 1000)
}

// testFull leaves a bucket alone for long: it holds a burst and no more.
func testFull(t *testing.T, l run) {
	l.drain("a", 50, 5, 5, 5)
	l.Wait(500 * time.Millisecond) // 25 tokens
	l.drain("a", 50, 5, 5, 20)
}

func testRetry(t *testing.T, l run) {
	l.drain("a", 1, 2, 2, 3)
	l.Wait(time.Second)

	if !l.take("a", 1, 2) {
		t.Error("refused after the time that a refusal named")
	}
}

// testRefusals keeps asking without a token: that does not put the next one off.
func testRefusals(t *testing.T, l run) {
	l.drain("a", 2, 1, 1, 50)
	l.Wait(500 * time.Millisecond)

	if !l.take("a", 2, 1) {
		t.Error("refusals used tokens up")
	}
}

func testKeys(t *testing.T, l run) {
	l.drain("a", 1, 3, 3, 5)
	l.drain("b", 1, 3, 3, 5)
}

// testSettings makes a burst smaller: from then on no more than that is allowed at once.
func testSettings(t *testing.T, l run) {
	l.drain("a", 2, 50, 10, 10)

	began, allowed := l.Now(), 0
	for range 10 {
		if l.take("a", 2, 3) {
			allowed++
		}
	}

	l.between(allowed, 0, 3+refilled(l.Now().Sub(began), 2), 10)
	l.Wait(2 * time.Second)
	l.drain("a", 2, 3, 3, 6)
}

func testConcurrent(t *testing.T, l run) {
	const asks, burst, perSecond = 25, 100, 10

	var (
		mu      sync.Mutex
		allowed int
		done    sync.WaitGroup
	)

	began := l.Now()

	for range goroutines {
		done.Go(func() {
			for range asks {
				ok, _, err := l.Limiter.Allow(context.WithoutCancel(t.Context()), "a", perSecond, burst)
				if err != nil {
					t.Errorf("Allow: %v", err)
				}

				if ok {
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}

	done.Wait()
	l.between(allowed, burst, burst+refilled(l.Now().Sub(began), perSecond), goroutines*asks)
}
