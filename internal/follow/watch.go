package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/heartbeat"
)

// A node that neither answers nor refuses holds work up for as long as the driver waits and repeats, and the work
// holds a lease all that time. Work may take long all the same, so it is not ended by its length: the node is
// asked for its tip meanwhile, and must answer.
const (
	// watchAfter is how long work goes on before the node is asked for its tip, again and again.
	watchAfter = heartbeat.LeaseFor / 3
	// watchLimit is how long the node may take to answer.
	watchLimit = heartbeat.LeaseFor / 3
)

// WhileAnswering returns a context for work that asks a driver's node and holds a lease. It ends when the node does
// not answer for its tip. The work's error goes through end, which stops watching and returns why it was canceled,
// the error of Answers, instead. end is also deferred, for a panic: it may be called again.
func WhileAnswering(ctx context.Context, d chain.Driver) (watched context.Context, end func(error) error) {
	watched, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})

	// Most steps are over before the node is asked: they cost no goroutine.
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

// Answers asks a driver's node for its tip, for a third of a lease at most.
//
// Errors: fault.Unavailable with code node_hangs when there was no answer; else the driver's.
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
