package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// silence is how long a listener hears nothing before it asks whether the connection still stands.
const silence = 20 * time.Second

func (s *Shared) channel() string { return s.options.Prefix + "wake" }

// Wake tells all processes that there is work; see store.Waker.
func (s *Shared) Wake(ctx context.Context, from string) error {
	const doing = "tell other processes of work"

	if err := s.client.Publish(ctx, s.channel(), from).Err(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w: %w", doing, ctx.Err(), explain(err, doing))
		}

		return explain(err, doing)
	}

	return nil
}

// Wakes listens; see store.Waker.
func (s *Shared) Wakes(ctx context.Context, f func(from string)) error {
	subscription := s.client.Subscribe(ctx, s.channel())
	defer func() { _ = subscription.Close() }()
	// A read from Redis does not end with the context, but with its connection.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()

	err := s.hear(ctx, subscription, f)
	if ctx.Err() != nil {
		return nil
	}

	return explain(err, "listen for work that other processes make")
}

func (s *Shared) hear(ctx context.Context, subscription *goredis.PubSub, f func(from string)) error {
	asked := false

	for {
		message, err := subscription.ReceiveTimeout(ctx, silence)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !asked {
			asked = true

			if err := subscription.Ping(ctx); err != nil {
				return err
			}

			continue
		}

		if err != nil {
			return err
		}

		asked = false

		switch m := message.(type) {
		case *goredis.Subscription:
			f("")
		case *goredis.Message:
			f(m.Payload)
		}
	}
}
