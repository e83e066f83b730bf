package conformance

// TestLimiter: the suite for rate limiters, whose clock may be real. What was allowed is compared
// with what the time that passed meanwhile allows, so that a slow machine changes no verdict.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store"
)

// LimiterHarness is a limiter with its clock.
type LimiterHarness struct {
	Limiter store.Limiter
	// Now is the limiter's clock.
	Now func() time.Time
	// Wait lets the clock go on by at least d: a fake one is set, a real one is waited for.
	Wait func(d time.Duration)
}

// TestLimiter runs the suite against limiters that factory makes: one without any bucket per call.
func TestLimiter(t *testing.T, factory func(t *testing.T) LimiterHarness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, l limiterTest)
	}{
		{"BurstThenRefused", testLimiterBurst},
		{"RefillsAtTheRate", testLimiterRefill},
		{"FullIsFull", testLimiterFull},
		{"RetryAfterIsEnough", testLimiterRetry},
		{"RefusalTakesNothing", testLimiterRefusals},
		{"KeysAreApart", testLimiterKeys},
		{"SmallerBurst", testLimiterSettings},
		{"Concurrent", testLimiterConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, limiterTest{factory(t), t}) })
	}
}

type limiterTest struct {
	LimiterHarness
	t *testing.T
}

// take asks once.
func (l limiterTest) take(key string, perSecond, burst int) bool {
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
func (l limiterTest) drain(key string, perSecond, burst, tokens, asks int) {
	l.t.Helper()

	began, allowed := l.Now(), 0
	for range asks {
		if l.take(key, perSecond, burst) {
			allowed++
		}
	}

	l.between(allowed, tokens, tokens+refilled(l.Now().Sub(began), perSecond), asks)
}

func (l limiterTest) between(allowed, least, most, asks int) {
	l.t.Helper()

	if least, most := min(least, asks), min(most, asks); allowed < least || allowed > most {
		l.t.Errorf("%d of %d requests were allowed, want %d to %d", allowed, asks, least, most)
	}
}

// refilled is how many tokens may have come in a time, the one that was nearly there included.
func refilled(d time.Duration, perSecond int) int {
	return int((d*time.Duration(perSecond) + time.Second - 1) / time.Second)
}

func testLimiterBurst(t *testing.T, l limiterTest) {
	l.drain("a", 1, 5, 5, 9)
	l.drain("b", 7, 1, 1, 5)
	l.drain("c", 300, 100, 100, 150)
}

func testLimiterRefill(t *testing.T, l limiterTest) {
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

// testLimiterFull leaves a bucket alone for long: it holds a burst and no more.
func testLimiterFull(t *testing.T, l limiterTest) {
	l.drain("a", 50, 5, 5, 5)
	l.Wait(500 * time.Millisecond) // 25 tokens
	l.drain("a", 50, 5, 5, 20)
}

func testLimiterRetry(t *testing.T, l limiterTest) {
	l.drain("a", 1, 2, 2, 3)
	l.Wait(time.Second)

	if !l.take("a", 1, 2) {
		t.Error("refused after the time that a refusal named")
	}
}

// testLimiterRefusals keeps asking without a token: that does not put the next one off.
func testLimiterRefusals(t *testing.T, l limiterTest) {
	l.drain("a", 2, 1, 1, 50)
	l.Wait(500 * time.Millisecond)

	if !l.take("a", 2, 1) {
		t.Error("refusals used tokens up")
	}
}

func testLimiterKeys(t *testing.T, l limiterTest) {
	l.drain("a", 1, 3, 3, 5)
	l.drain("b", 1, 3, 3, 5)
}

// testLimiterSettings makes a burst smaller: from then on no more than that is allowed at once.
func testLimiterSettings(t *testing.T, l limiterTest) {
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

func testLimiterConcurrent(t *testing.T, l limiterTest) {
	const asks, burst, perSecond = 25, 100, 10

	var (
		mu      sync.Mutex
		allowed int
		done    sync.WaitGroup
	)

	began := l.Now()

	for range storeGoroutines {
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
	l.between(allowed, burst, burst+refilled(l.Now().Sub(began), perSecond), storeGoroutines*asks)
}
