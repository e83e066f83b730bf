package conformance_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// announcing is the simulated driver with a node that announces new blocks.
type announcing struct {
	*sim.Chain
	subscribe func(ctx context.Context, notify func()) error
}

func (a announcing) NotifyHeads(ctx context.Context, notify func()) error {
	return a.subscribe(ctx, notify)
}

// announcer is the node: controls that announce each block that they mine.
type announcer struct {
	simControls
	mu        sync.Mutex
	listeners []func()
}

func (a *announcer) Mine(ctx context.Context, n int) error {
	for range n {
		if err := a.simControls.Mine(ctx, 1); err != nil {
			return err
		}

		a.mu.Lock()
		listeners := slices.Clone(a.listeners)
		a.mu.Unlock()

		for _, notify := range listeners {
			notify()
		}
	}

	return nil
}

func (a *announcer) subscribe(ctx context.Context, notify func()) error {
	a.mu.Lock()
	a.listeners = append(a.listeners, notify)
	a.mu.Unlock()

	<-ctx.Done()

	return ctx.Err()
}

// notifyMutants are subscriptions that break a sentence of chain.HeadNotifier.
var notifyMutants = map[string]struct {
	fails  string
	change func(subscribe func(context.Context, func()) error) func(context.Context, func()) error
}{
	"every second block is announced": {
		"BlockIsAnnounced",
		func(
			subscribe func(context.Context, func()) error,
		) func(context.Context, func()) error {
			return func(ctx context.Context, notify func()) error {
				n := 0

				return subscribe(ctx, func() {
					if n++; n%2 == 0 {
						notify()
					}
				})
			}
		},
	},
	"its end is no error": {
		"ContextEndsIt",
		func(
			subscribe func(context.Context, func()) error,
		) func(context.Context, func()) error {
			return func(ctx context.Context, notify func()) error {
				_ = subscribe(ctx, notify)
				return nil
			}
		},
	},
	"its end has another error": {
		"ContextEndsIt",
		func(
			subscribe func(context.Context, func()) error,
		) func(context.Context, func()) error {
			return func(ctx context.Context, notify func()) error {
				_ = subscribe(ctx, notify)
				return errors.New("closed")
			}
		},
	},
}

func TestDriverThatIsNotified(t *testing.T) {
	conformance.TestDriver(t, func(t *testing.T) conformance.DriverHarness {
		c := sim.New(sim.Config{MaxOutputs: 8})
		node := &announcer{simControls: simControls{c}}
		h := simulated(t, c)

		subscribe := node.subscribe
		if broken := notifyMutants[os.Getenv(mutantVariable)]; broken.change != nil {
			subscribe, h.Patience = broken.change(subscribe), 200*time.Millisecond
		}

		h.Driver, h.Network = announcing{c, subscribe}, node
		h.Unreachable = announcing{
			h.Unreachable.(*sim.Chain),
			func(context.Context, func()) error {
				return sim.Unavailable()
			},
		}
		h.Absent = slices.DeleteFunc(h.Absent, func(c string) bool {
			return c == "chain.HeadNotifier"
		})
		h.Absent = append(h.Absent, "control.NodeFaker", "control.Pruner")

		return h
	})
}

var _ chain.HeadNotifier = announcing{}
