// Package together calls a function for many items, several at a time.
package together

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
)

// Each calls f for each item, at most limit at a time, in their order; with a limit of 1 one after the other on the
// caller's goroutine. After the first error, or when ctx ends, it begins no other, waits for those under way and
// returns the error that came first. A panic of f is one of the caller's.
func Each[T any](ctx context.Context, limit int, items []T, f func(ctx context.Context, item T) error) error {
	if limit <= 1 || len(items) <= 1 {
		return inTurn(ctx, items, f)
	}

	var (
		mu       sync.Mutex
		next     int
		failed   error
		panicked any
		wg       sync.WaitGroup
	)

	// take returns the next item; ok is false when there is none to begin.
	take := func() (item T, ok bool) {
		mu.Lock()
		defer mu.Unlock()

		if next == len(items) || failed != nil || panicked != nil || ctx.Err() != nil {
			return item, false
		}

		next++

		return items[next-1], true
	}

	call := func(item T) {
		defer func() {
			if p := recover(); p != nil {
				mu.Lock()
				defer mu.Unlock()

				panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()

		if err := f(ctx, item); err != nil {
			mu.Lock()
			defer mu.Unlock()

			if failed == nil {
				failed = err
			}
		}
	}

	for range min(limit, len(items)) {
		wg.Go(func() {
			for item, ok := take(); ok; item, ok = take() {
				call(item)
			}
		})
	}

	wg.Wait()

	switch {
	case panicked != nil:
		panic(panicked)
	case failed != nil:
		return failed
	default:
		return ctx.Err()
	}
}

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

// Shuffle brings items into a random order: processes that find the same work begin with different parts of it.
func Shuffle[T any](items []T) {
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
}
