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
	// Wait returns when the clock has gone on by at least d.
	Wait func(d time.Duration)
}

// Run runs every case against a limiter of its own.
func Run(t *testing.T, factory func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, e env)
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
		t.Run(test.name, func(t *testing.T) { test.run(t, env{factory(t), t}) })
	}
}

// goroutines is how many callers ask at once.
const goroutines = 32

// env is the harness of one subtest.
type env struct {
	Harness
	t *testing.T
}

// take asks for one token and reports whether it was allowed.
func (e env) take(key string, perSecond, burst int) bool {
	e.t.Helper()

	ok, after, err := e.Limiter.Allow(e.t.Context(), key, perSecond, burst)
	if err != nil {
		e.t.Fatalf("Allow: %v", err)
	}

	if !ok && after != 1 { // at one token a second or more there is always one within a second
		e.t.Errorf("a refusal at %d a second says to come back after %d s, want 1", perSecond, after)
	}

	return ok
}

// drain asks so many times. A bucket with so many tokens has to allow them, and no more than it
// refills meanwhile.
func (e env) drain(key string, perSecond, burst, tokens, asks int) {
	e.t.Helper()

	began, allowed := e.Now(), 0
	for range asks {
		if e.take(key, perSecond, burst) {
			allowed++
		}
	}

	e.expectBetween(allowed, tokens, tokens+refilled(e.Now().Sub(began), perSecond), asks)
}

// expectBetween checks how many of the requests were allowed.
func (e env) expectBetween(allowed, least, most, asks int) {
	e.t.Helper()

	if least, most := min(least, asks), min(most, asks); allowed < least || allowed > most {
		e.t.Errorf("%d of %d requests were allowed, want %d to %d", allowed, asks, least, most)
	}
}

// refilled returns how many tokens a bucket may have got in a time, the one that was nearly there
// included.
func refilled(d time.Duration, perSecond int) int {
	return int((d*time.Duration(perSecond) + time.Second - 1) / time.Second)
}

func testBurst(t *testing.T, e env) {
	e.drain("a", 1, 5, 5, 9)
	e.drain("b", 7, 1, 1, 5)
	e.drain("c", 300, 100, 100, 150)
}

func testRefill(t *testing.T, e env) {
	began := e.Now()
	allowed := 0

	for range 20 {
		if e.take("a", 20, 4) {
			allowed++
		}
	}

	for range 3 {
		e.Wait(150 * time.Millisecond) // three tokens

		for range 5 {
			if e.take("a", 20, 4) {
				allowed++
			}
		}
	}

	e.expectBetween(allowed, 4+3*3-1, 4+refilled(e.Now().Sub(began), 20), 1000)
}

// testFull waits for more tokens than a burst: a bucket holds a burst and no more.
func testFull(t *testing.T, e env) {
	e.drain("a", 50, 5, 5, 5)
	e.Wait(500 * time.Millisecond) // 25 tokens
	e.drain("a", 50, 5, 5, 20)
}

func testRetry(t *testing.T, e env) {
	e.drain("a", 1, 2, 2, 3)
	e.Wait(time.Second)

	if !e.take("a", 1, 2) {
		t.Error("refused after the time that a refusal named")
	}
}

// testRefusals asks without a token: that does not delay the next one.
func testRefusals(t *testing.T, e env) {
	e.drain("a", 2, 1, 1, 50)
	e.Wait(500 * time.Millisecond)

	if !e.take("a", 2, 1) {
		t.Error("refusals used tokens up")
	}
}

func testKeys(t *testing.T, e env) {
	e.drain("a", 1, 3, 3, 5)
	e.drain("b", 1, 3, 3, 5)
}

// testSettings makes a burst smaller: from then on no more than that is allowed at once.
func testSettings(t *testing.T, e env) {
	e.drain("a", 2, 50, 10, 10)

	began, allowed := e.Now(), 0
	for range 10 {
		if e.take("a", 2, 3) {
			allowed++
		}
	}

	e.expectBetween(allowed, 0, 3+refilled(e.Now().Sub(began), 2), 10)
	e.Wait(2 * time.Second)
	e.drain("a", 2, 3, 3, 6)
}

func testConcurrent(t *testing.T, e env) {
	const asks, burst, perSecond = 25, 100, 10

	var (
		mu      sync.Mutex
		allowed int
		done    sync.WaitGroup
	)

	began := e.Now()

	for range goroutines {
		done.Go(func() {
			for range asks {
				ok, _, err := e.Limiter.Allow(context.WithoutCancel(t.Context()), "a", perSecond, burst)
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
	e.expectBetween(allowed, burst, burst+refilled(e.Now().Sub(began), perSecond), goroutines*asks)
}
