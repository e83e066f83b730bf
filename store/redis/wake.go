package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// pingAfter is how long a listener receives nothing before it pings the connection.
const pingAfter = 20 * time.Second

// channel returns the name of the wake-ups' channel.
func (s *Shared) channel() string { return s.options.Prefix + "wake" }

// Wake implements store.Waker: it publishes a wake-up to all processes.
func (s *Shared) Wake(ctx context.Context, note string) error {
	const doing = "publish a wake-up"

	if err := s.client.Publish(ctx, s.channel(), note).Err(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w: %w", doing, ctx.Err(), wrapError(err, doing))
		}

		return wrapError(err, doing)
	}

	return nil
}

// Wakes implements store.Waker: it calls f with each wake-up until ctx ends or the connection fails.
func (s *Shared) Wakes(ctx context.Context, f func(note string)) error {
	subscription := s.client.Subscribe(ctx, s.channel())
	defer func() { _ = subscription.Close() }()

	// A blocked read does not end with the context, only with its connection.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()

	err := s.receive(ctx, subscription, f)
	if ctx.Err() != nil {
		return nil
	}

	return wrapError(err, "receive wake-ups")
}

// receive calls f with each message, and with "" when the subscription starts. It fails if a ping is not
// answered.
func (s *Shared) receive(ctx context.Context, subscription *goredis.PubSub, f func(note string)) error {
	pinged := false

	for {
		message, err := subscription.ReceiveTimeout(ctx, pingAfter)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !pinged {
			pinged = true

			if err := subscription.Ping(ctx); err != nil {
				return err
			}

			continue
		}

		if err != nil {
			return err
		}

		pinged = false

		switch m := message.(type) {
		case *goredis.Subscription:
			f("")
		case *goredis.Message:
			f(m.Payload)
		}
	}
}
