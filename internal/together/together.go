// Package together calls a function for many items, several at a time.
package together

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
)

// Each calls f for each item in order, at most limit at a time. With a limit of 1 it calls them one after the
// other on the caller's goroutine. After the first error, or when ctx ends, it begins no further call, waits
// for running ones and returns the first error. A panic of f becomes a panic of the caller.
func Each[T any](ctx context.Context, limit int, items []T, f func(ctx context.Context, item T) error) error {
	if limit <= 1 || len(items) <= 1 {
		return inTurn(ctx, items, f)
	}

	c := calls[T]{items: items}

	var wg sync.WaitGroup

	for range min(limit, len(items)) {
		wg.Go(func() {
			for item, ok := c.take(ctx); ok; item, ok = c.take(ctx) {
				c.call(ctx, item, f)
			}
		})
	}

	wg.Wait()

	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.failed != nil:
		return c.failed
	default:
		return ctx.Err()
	}
}

// calls are the calls of Each: the waiting items, and the outcome of earlier calls.
type calls[T any] struct {
	mu       sync.Mutex
	items    []T
	failed   error
	panicked any
}

// take returns the next item; ok is false if none may begin.
func (c *calls[T]) take(ctx context.Context) (item T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.items) == 0 || c.failed != nil || c.panicked != nil || ctx.Err() != nil {
		return item, false
	}

	item, c.items = c.items[0], c.items[1:]

	return item, true
}

// call calls f for an item, and records the first error and a panic.
func (c *calls[T]) call(ctx context.Context, item T, f func(ctx context.Context, item T) error) {
	defer func() {
		if p := recover(); p != nil {
			c.mu.Lock()
			defer c.mu.Unlock()

			c.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()

	if err := f(ctx, item); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()

		if c.failed == nil {
			c.failed = err
		}
	}
}

// inTurn calls f for each item, one after the other.
func inTurn[T any](ctx context.Context, items []T, f func(ctx context.Context, item T) error) error {
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}

		if err := f(ctx, item); err != nil {
			return err
		}
	}

	return nil
}

// Shuffle puts items into a random order, so that processes that find the same work begin with different
// parts of it.
func Shuffle[T any](items []T) {
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
}
