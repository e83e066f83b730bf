package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
)

// A node that neither answers nor refuses blocks work for as long as the driver waits and repeats, and the
// work holds a lease all that time. But long work is legitimate, so its duration alone does not end it.
// Instead the node is asked for its tip meanwhile, and must answer.
const (
	// watchAfter is the time after which the node is asked for its tip, and the interval after that.
	watchAfter = heartbeat.LeaseFor / 3
	// watchLimit is the time in which the node must answer.
	watchLimit = heartbeat.LeaseFor / 3
)

// WhileAnswering returns a context for work that calls a driver's node and holds a lease. The context ends
// when the node does not answer for its tip. The caller must pass the work's error to end, which stops
// watching. If the context was canceled for the node, end returns that reason, the error of Answers, instead.
// The caller must also defer end, for a panic: it may be called again.
func WhileAnswering(ctx context.Context, d chain.Driver) (watched context.Context, end func(error) error) {
	watched, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})

	// Most steps end before the node is asked: they need no goroutine.
	timer := time.AfterFunc(watchAfter, func() {
		defer close(ended)

		watchNode(watched, d, cancel)
	})

	over := false

	return watched, func(err error) error {
		cause := context.Cause(watched)

		cancel(nil)

		if !over && !timer.Stop() {
			<-ended
		}

		over = true

		if err != nil && ctx.Err() == nil && cause != nil {
			return cause
		}

		return err
	}
}

// watchNode asks the node for its tip now and every watchAfter, and cancels when it does not answer.
func watchNode(ctx context.Context, d chain.Driver, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(watchAfter)
	defer ticker.Stop()

	for ctx.Err() == nil {
		if err := Answers(ctx, d); err != nil {
			cancel(err)
			return
		}

		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Answers asks a driver's node for its tip and waits at most a third of a lease.
//
// Errors: fault.Unavailable with code node_hangs if there was no answer; else the driver's error.
func Answers(ctx context.Context, d chain.Driver) error {
	limited, stop := context.WithTimeout(ctx, watchLimit)
	defer stop()

	_, err := d.Head(limited)
	if err == nil || ctx.Err() != nil {
		return nil
	}

	if limited.Err() != nil {
		return fault.Wrap(
			err, fault.Unavailable, "node_hangs", "the node of %s did not answer within %s",
			d.Network().Slug, watchLimit,
		)
	}

	return fmt.Errorf("asking %s for its tip: %w", d.Network().Slug, err)
}
