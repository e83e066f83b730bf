package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var notifyTests = []testCase{
	{"BlockIsAnnounced", nil, testAnnounced},
	{"ContextEndsIt", nil, testNotifyEnds},
	{"UnreachableIsUnavailable", []Capability{UnreachableNode}, testNotifyUnreachable},
}

// subscription is a NotifyHeads that runs.
type subscription struct {
	announced atomic.Int32
	end       context.CancelFunc
	ended     chan error
}

// subscribe starts NotifyHeads, and waits until blocks are announced: those of a node that just connected may
// not be.
func (e *env) subscribe() *subscription {
	e.t.Helper()

	ctx, end := context.WithCancel(e.ctx)
	e.t.Cleanup(end)

	s := &subscription{end: end, ended: make(chan error, 1)}

	go func() {
		s.ended <- as[chain.HeadNotifier](e).NotifyHeads(ctx, func() { s.announced.Add(1) })
	}()

	e.eventually("a block is announced", func() error {
		e.mine(1)

		if s.announced.Load() == 0 {
			return errors.New("none was")
		}

		return nil
	})

	return s
}

func testAnnounced(e *env) {
	s := e.subscribe()

	for range 3 {
		// What was mined before may still be announced: that this block is, shows in a second one.
		before := s.announced.Load()

		e.mine(2)
		e.eventually("two blocks are announced", func() error {
			if n := s.announced.Load() - before; n < 2 {
				return fmt.Errorf("%d were", n)
			}

			return nil
		})
	}
}

func testNotifyEnds(e *env) {
	s := e.subscribe()
	s.end()

	select {
	case err := <-s.ended:
		if !errors.Is(err, context.Canceled) {
			e.t.Errorf("NotifyHeads ended with %v, not the context's error", err)
		}
	case <-e.ctx.Done():
		e.t.Error("NotifyHeads went on after its context had ended")
	}
}

func testNotifyUnreachable(e *env) {
	unreachable, ok := e.Unreachable.(chain.HeadNotifier)
	if !ok {
		e.t.Fatal("DriverHarness.Unreachable is no chain.HeadNotifier, as Driver is")
	}

	e.expectFault("NotifyHeads", unreachable.NotifyHeads(e.ctx, func() {}), fault.Unavailable, "")
}
