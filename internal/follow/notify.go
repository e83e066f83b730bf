package follow

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
)

// The shortest and the longest pause between two subscriptions. A subscription that lasts longestPause counts
// as working.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Listen calls wake for each block that the driver's node announces, until ctx ends. It returns at once for a
// driver whose node announces nothing. A subscription that ends is made again, after growing pauses. Step is
// called at its own pace all the same, so that nothing waits for an announcement.
func (f *Follower) Listen(ctx context.Context, wake func()) {
	notifier, ok := f.Driver.(chain.HeadNotifier)
	if !ok {
		return
	}

	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, longestPause

	for {
		began := time.Now()

		err := hostcall.Catch(
			ctx,
			f.Log,
			"NotifyHeads of "+f.network.Slug,
			func() error { return notifier.NotifyHeads(ctx, wake) },
		)
		if ctx.Err() != nil {
			return
		}

		if time.Since(began) > longestPause {
			pause.Reset()
		}

		retryIn := pause.NextBackOff()
		if errors.Is(err, fault.Unsupported) {
			retryIn = time.Hour // another version of the node may have it
		}

		f.Log.WarnContext(
			ctx, "no blocks are announced; the network is polled, and the subscription made again",
			"network", f.network.Slug, "again_in", retryIn.Round(time.Millisecond), "error", err,
		)

		select {
		case <-ctx.Done():
			return
		case <-time.After(retryIn):
		}
	}
}
