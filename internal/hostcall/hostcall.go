// Package hostcall calls code of the host: its panic becomes an error, and a call that does not return blocks
// no caller.
package hostcall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"time"
)

// Catch calls f and returns its error. A panic of f becomes an error, as in Recover.
func Catch(ctx context.Context, log *slog.Logger, name string, f func() error) (err error) {
	defer Recover(ctx, log, name, &err)

	return f()
}

// Recover is deferred by a function. It logs a panic of the function with its stack, and turns it into the
// function's error: a goroutine that panics would end the host's process.
func Recover(ctx context.Context, log *slog.Logger, name string, err *error) {
	if p := recover(); p != nil {
		log.ErrorContext(
			ctx, "a call panicked",
			"call", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()),
		)

		*err = fmt.Errorf("%s panicked: %v; the log has the stack", name, p)
	}
}

// ErrTooLong is the error of a call that has not returned within Limited.Limit, and of the calls that would
// follow it.
var ErrTooLong = errors.New("the call took longer than its time limit")

// errExited is the error of a call that ended its goroutine.
var errExited = errors.New("the call ended its goroutine")

// Limited makes calls that may hang, even after their context ends. It makes calls with the same key K one
// after the other. If a call takes longer than Limit, its caller gets ErrTooLong. Other callers get it at
// once, until the call has returned and Pause has passed: calls that hang do not pile up.
type Limited[K comparable, T any] struct {
	// Name names the called code, in the log and in errors.
	Name         string
	Limit, Pause time.Duration
	Log          *slog.Logger

	mu    sync.Mutex
	calls map[K]*call[T]
}

// call is a running call, or one that exceeded its limit.
type call[T any] struct {
	deadline time.Time
	// pausedUntil is when another call may follow one that exceeded its limit; zero for other calls. The
	// mutex guards it.
	pausedUntil time.Time

	returned chan struct{} // closed when value and err are set
	value    T
	err      error
}

// Do calls f with a context that ends after Limit, and returns its answer. It drops an answer that comes
// after the end of the context.
//
// Errors: ErrTooLong, that of ctx, that of f.
func (l *Limited[K, T]) Do(ctx context.Context, key K, f func(ctx context.Context) (T, error)) (T, error) {
	var none T

	c, err := l.begin(ctx, key)
	if err != nil {
		return none, err
	}

	limited, cancel := context.WithDeadlineCause(ctx, c.deadline, ErrTooLong)
	defer cancel()

	go func() {
		defer close(c.returned)

		c.err = errExited
		c.err = Catch(limited, l.Log, l.Name, func() (err error) {
			c.value, err = f(limited)
			return err
		})
	}()

	select {
	case <-c.returned:
	case <-limited.Done():
	}

	if limited.Err() == nil {
		return c.value, c.err
	}

	if context.Cause(limited) == ErrTooLong { //nolint:errorlint // it is the cause itself
		l.mu.Lock()
		defer l.mu.Unlock()

		c.pausedUntil = time.Now().Add(l.Pause)

		return none, l.tooLong()
	}

	return none, ctx.Err()
}

// begin waits for the previous call with the same key, if there is one, and returns a new call.
func (l *Limited[K, T]) begin(ctx context.Context, key K) (*call[T], error) {
	for ctx.Err() == nil {
		before, mine := l.replace(key)
		if mine != nil {
			return mine, nil
		}

		if before == nil {
			return nil, l.tooLong()
		}

		late := time.NewTimer(time.Until(before.deadline))

		select {
		case <-before.returned:
			late.Stop()
		case <-late.C:
			return nil, l.tooLong()
		case <-ctx.Done():
			late.Stop()
		}
	}

	return nil, ctx.Err()
}

// replace returns a new call, or the previous one if it is within its limit; neither if that exceeded its
// limit.
func (l *Limited[K, T]) replace(key K) (before, mine *call[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := time.Now()

	maps.DeleteFunc(
		l.calls,
		func(_ K, c *call[T]) bool { return c.hasReturned() && !now.Before(c.pausedUntil) },
	)

	before = l.calls[key]

	switch {
	case before == nil:
		mine = &call[T]{deadline: now.Add(l.Limit), returned: make(chan struct{})}

		if l.calls == nil {
			l.calls = map[K]*call[T]{}
		}

		l.calls[key] = mine

		return nil, mine
	case !before.pausedUntil.IsZero():
		return nil, nil
	default:
		return before, nil
	}
}

func (c *call[T]) hasReturned() bool {
	select {
	case <-c.returned:
		return true
	default:
		return false
	}
}

func (l *Limited[K, T]) tooLong() error {
	return fmt.Errorf("%s did not return within %s: %w", l.Name, l.Limit, ErrTooLong)
}
