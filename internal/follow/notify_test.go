package follow_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// announcing is a driver whose node announces blocks as a test has it.
type announcing struct {
	*sim.Chain
	subscribe func(ctx context.Context, notify func()) error
}

func (a announcing) NotifyHeads(ctx context.Context, notify func()) error {
	return a.subscribe(ctx, notify)
}

// listener returns the follower of a driver.
func listener(t *testing.T, driver chain.Driver) *follow.Follower {
	t.Helper()

	c, d := sim.New(sim.Config{}), newDB()

	f, err := follow.New(
		follow.Config{Driver: driver, Handler: ledger{d, c}, DB: d, Owner: "a", Now: now, Log: quiet()},
	)
	if err != nil {
		t.Fatal(err)
	}

	return f
}

// A subscription that ends is made again after pauses that grow to a minute, sooner again after one that lasted;
// a node that has none is asked again in an hour.
func TestSubscriptionIsMadeAgain(t *testing.T) {
	down := fault.New(fault.Unavailable, "node_unavailable", "the node is down")

	for name, c := range map[string]struct {
		ends func(ctx context.Context, n int) error // the n-th subscription
		// shortest and longest are the bounds of each pause before the next subscription.
		shortest, longest []time.Duration
	}{
		"one that fails": {
			func(context.Context, int) error { return down },
			[]time.Duration{500 * time.Millisecond, 750 * time.Millisecond, time.Second},
			[]time.Duration{1500 * time.Millisecond, 2250 * time.Millisecond, 3500 * time.Millisecond},
		},
		"one that panics": {
			func(context.Context, int) error { panic("a driver's bug") },
			[]time.Duration{500 * time.Millisecond},
			[]time.Duration{1500 * time.Millisecond},
		},
		"one that lasts": {
			func(ctx context.Context, n int) error {
				time.Sleep(2 * time.Minute)
				return down
			},
			[]time.Duration{2 * time.Minute, 2 * time.Minute},
			[]time.Duration{2*time.Minute + 1500*time.Millisecond, 2*time.Minute + 1500*time.Millisecond},
		},
		"one that is not known": {
			func(context.Context, int) error {
				return fault.New(fault.Unsupported, "notify_unsupported", "the node has none")
			},
			[]time.Duration{time.Hour},
			[]time.Duration{time.Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())

				var began []time.Time

				f := listener(t, announcing{
					sim.New(sim.Config{}),
					func(ctx context.Context, _ func()) error {
						began = append(began, time.Now())
						if len(began) > len(c.longest) {
							cancel()
							return ctx.Err()
						}

						return c.ends(ctx, len(began))
					},
				})
				f.Listen(ctx, func() {})

				for i, longest := range c.longest {
					if pause := began[i+1].Sub(began[i]); pause < c.shortest[i] || pause > longest {
						t.Errorf(
							"subscription %d came after %s, not after %s to %s",
							i+2,
							pause,
							c.shortest[i],
							longest,
						)
					}
				}
			})
		})
	}
}

// Every announcement wakes, and a driver that announces nothing is not listened to.
func TestAnnouncementsWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var woken []time.Duration

		began := time.Now()
		f := listener(t, announcing{
			sim.New(sim.Config{}),
			func(ctx context.Context, notify func()) error {
				for range 3 {
					time.Sleep(12 * time.Second)
					notify()
				}

				<-ctx.Done()

				return ctx.Err()
			},
		})

		go f.Listen(ctx, func() { woken = append(woken, time.Since(began)) })

		time.Sleep(time.Minute)
		synctest.Wait()

		if want := []time.Duration{
			12 * time.Second,
			24 * time.Second,
			36 * time.Second,
		}; !slices.Equal(
			woken,
			want,
		) {
			t.Errorf("woken after %v, not after %v", woken, want)
		}

		listener(t, sim.New(sim.Config{})).Listen(ctx, func() { t.Error("woken by nobody") })
	})
}
