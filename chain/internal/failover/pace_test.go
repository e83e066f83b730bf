package failover_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// provider is a node that refuses calls.
type provider struct {
	mu      sync.Mutex
	refuses refusing
	calls   int
	served  int
}

// limited refuses what is above so many calls in a second of the clock.
func limited(perSecond int, says func() *http.Response) refusing {
	var (
		second time.Time
		calls  int
	)

	return func(now time.Time) (bool, *http.Response) {
		if now := now.Truncate(time.Second); !now.Equal(second) {
			second, calls = now, 0
		}

		calls++

		return calls > perSecond, says()
	}
}

func tooMany() *http.Response { return status(http.StatusTooManyRequests) }

// suspending refuses everything for 5 seconds after a call too many, as TronGrid does.
func suspending(perSecond int) refusing {
	var until time.Time

	limit := limited(perSecond, tooMany)

	return func(now time.Time) (bool, *http.Response) {
		if now.Before(until) {
			return true, suspended()
		}

		refused, _ := limit(now)
		if refused {
			until = now.Add(5 * time.Second)
		}

		return refused, suspended()
	}
}

func suspended() *http.Response { return status(http.StatusForbidden, "Retry-After", "5") }

// atRandom refuses a share of the calls, in percent, whatever their rate.
func atRandom(percent int, says func() *http.Response) refusing {
	random := rand.New(rand.NewPCG(1, 2))

	return func(time.Time) (bool, *http.Response) { return random.IntN(100) < percent, says() }
}

// refusing reports whether a call of a moment is refused, and with what.
type refusing func(now time.Time) (refused bool, says *http.Response)

// since switches to another behavior after a time.
func since(after time.Duration, first, then refusing) refusing {
	var began time.Time

	return func(now time.Time) (bool, *http.Response) {
		if began.IsZero() {
			began = now
		}

		if now.Sub(began) < after {
			return first(now)
		}

		return then(now)
	}
}

// call answers after a moment.
func (p *provider) call(string) *http.Response {
	time.Sleep(20 * time.Millisecond)

	p.mu.Lock()
	defer p.mu.Unlock()

	p.calls++

	if refused, says := p.refuses(time.Now()); refused {
		return says
	}

	p.served++

	return status(http.StatusOK)
}

// A node with a limit is called about as often as it answers, and one that refuses calls whatever their rate is not
// starved. Some wait for each other at all times, as many as a driver has at once.
func TestTheRateIsThatOfWhatIsAnswered(t *testing.T) {
	never := func(time.Time) (bool, *http.Response) { return false, nil }

	for _, c := range []struct {
		name      string
		processes int
		refuses   refusing
		settle    time.Duration // until it is measured, for a minute
		served    float64       // calls that are answered in a second, at least
		refused   float64       // share of the calls that are refused, at most
	}{
		{"a limit of 3", 1, limited(3, tooMany), 30 * time.Second, 2.4, 0.12},
		{"a limit of 10", 1, limited(10, tooMany), 30 * time.Second, 8, 0.12},
		{"a limit of 50", 1, limited(50, tooMany), 30 * time.Second, 40, 0.12},
		{"a limit of 10 for two processes", 2, limited(10, tooMany), 30 * time.Second, 7, 0.6},
		{"a limit of 10 that says when", 1, limited(10, func() *http.Response {
			return status(http.StatusTooManyRequests, "Retry-After", "1")
		}), 30 * time.Second, 6, 0.05},
		{"a limit of 15 that suspends", 1, suspending(15), 30 * time.Second, 8, 0.05},
		{"a limit of 15 that suspends two processes", 2, suspending(15), 30 * time.Second, 8, 0.05},
		{"67 % at random that say when", 1, atRandom(67, func() *http.Response {
			return status(http.StatusTooManyRequests, "Retry-After", "1")
		}), 10 * time.Second, 1, 0.75},
		{"67 % at random", 1, atRandom(67, tooMany), 10 * time.Second, 12, 0.7},
		{"67 % at random for two processes", 2, atRandom(67, tooMany), 10 * time.Second, 24, 0.7},
		{"20 % at random", 1, atRandom(20, tooMany), 10 * time.Second, 40, 0.25},
		{"5 % at random", 1, atRandom(5, tooMany), 10 * time.Second, 60, 0.1},
		{"all for 30 s", 1, since(30*time.Second, atRandom(100, tooMany), never), 30 * time.Second, 100, 0.01},
		{
			"a limit of 50 that becomes 3", 1,
			since(30*time.Second, limited(50, tooMany), limited(3, tooMany)), 60 * time.Second, 2.4, 0.12,
		},
		{
			"a limit of 3 that becomes 50", 1,
			since(30*time.Second, limited(3, tooMany), limited(50, tooMany)), 90 * time.Second, 35, 0.12,
		},
		{
			"a limit of 5 that becomes 67 % at random", 1,
			since(30*time.Second, limited(5, tooMany), atRandom(67, tooMany)), 60 * time.Second, 10, 0.7,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{refuses: c.refuses}
				end := time.Now().Add(c.settle + time.Minute)

				var working sync.WaitGroup

				for range c.processes {
					node := &failover.Node{Host: "a"}
					node.SetAlone(true)

					client := node.Throttled(&http.Client{Transport: answers(p.call)}, time.Minute, nil)

					for range 4 {
						working.Go(func() {
							for time.Now().Before(end) {
								if post(t, client, "a") != http.StatusOK {
									time.Sleep(100 * time.Millisecond)
								}
							}
						})
					}
				}

				time.Sleep(c.settle)
				p.mu.Lock()
				before, servedBefore := p.calls, p.served
				p.mu.Unlock()

				working.Wait()

				calls, served := float64(p.calls-before), float64(p.served-servedBefore)
				if servedBefore == 0 && before > 250 {
					t.Errorf("%d calls were made of a node that answers none, in %v", before, c.settle)
				}

				t.Logf("%.1f calls a second, %.1f answered; %d before", calls/60, served/60, before)

				if served/60 < c.served {
					t.Errorf("%.1f calls a second are answered, want %.1f", served/60, c.served)
				}

				if refused := 1 - served/calls; refused > c.refused {
					t.Errorf("%.0f %% are refused, want at most %.0f", 100*refused, 100*c.refused)
				}
			})
		})
	}
}
