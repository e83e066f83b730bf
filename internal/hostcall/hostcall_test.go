package hostcall_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/internal/hostcall"
)

func TestPanicIsAnErrorAndItsStackIsLogged(t *testing.T) {
	var logged bytes.Buffer

	err := hostcall.Catch(
		t.Context(), slog.New(slog.NewTextHandler(&logged, nil)), "the hook", func() error { panic("boom") },
	)
	if err == nil || !strings.Contains(err.Error(), "the hook panicked: boom") {
		t.Errorf("Catch = %v", err)
	}

	if !strings.Contains(logged.String(), "hostcall_test.go") {
		t.Errorf("the log has no stack: %s", &logged)
	}
}

func TestErrorOfACallIsReturned(t *testing.T) {
	want := errors.New("refused")

	if err := hostcall.Catch(
		t.Context(),
		nil,
		"the hook",
		func() error { return want },
	); !errors.Is(
		err,
		want,
	) {
		t.Errorf("Catch = %v", err)
	}
}

const (
	limit = 10 * time.Second
	pause = time.Minute
)

// newLimited returns calls by name that are limited to 10 s, with a pause of a minute after one that took longer.
func newLimited() *hostcall.Limited[string, int] {
	return &hostcall.Limited[string, int]{
		Name:  "the source",
		Limit: limit,
		Pause: pause,
		Log:   slog.New(slog.DiscardHandler),
	}
}

func answer(context.Context) (int, error) { return 7, nil }

// A call that ignores the end of its context: its answer is dropped, and no other is made while it goes on and in the
// minute after.
func TestCallThatHangsIsLeftAndNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := newLimited(), make(chan struct{})

		began := time.Now()
		hang := func(context.Context) (int, error) {
			<-release
			return 1, nil
		}

		if got, err := l.Do(t.Context(), "a", hang); !errors.Is(err, hostcall.ErrTooLong) || got != 0 {
			t.Errorf("Do = %d, %v", got, err)
		}

		if took := time.Since(began); took != limit {
			t.Errorf("it took %s", took)
		}

		time.Sleep(2 * pause)

		began = time.Now()

		if _, err := l.Do(
			t.Context(),
			"a",
			answer,
		); !errors.Is(err, hostcall.ErrTooLong) ||
			time.Since(began) != 0 {
			t.Errorf("while the call goes on: %v after %s", err, time.Since(began))
		}

		if got, err := l.Do(t.Context(), "b", answer); err != nil || got != 7 {
			t.Errorf("for another key: %d, %v", got, err)
		}

		close(release)
		synctest.Wait()

		if got, err := l.Do(t.Context(), "a", answer); err != nil || got != 7 {
			t.Errorf("once the call has returned: %d, %v", got, err)
		}
	})
}

// A call that ends with its context was over its limit all the same.
func TestNoCallInThePauseAfterOneThatTookTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited()

		obey := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 1, nil
		}
		if got, err := l.Do(t.Context(), "a", obey); !errors.Is(err, hostcall.ErrTooLong) || got != 0 {
			t.Errorf("Do = %d, %v", got, err)
		}

		time.Sleep(pause - time.Nanosecond)

		if _, err := l.Do(t.Context(), "a", answer); !errors.Is(err, hostcall.ErrTooLong) {
			t.Errorf("in the pause: %v", err)
		}

		time.Sleep(time.Nanosecond)

		if got, err := l.Do(t.Context(), "a", answer); err != nil || got != 7 {
			t.Errorf("after the pause: %d, %v", got, err)
		}
	})
}

// A caller that gives up says nothing about the call: the next caller waits for it, until its limit.
func TestCallThatItsCallerLeftIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := newLimited(), make(chan struct{})

		leave, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		hang := func(context.Context) (int, error) {
			<-release
			return 1, nil
		}
		if _, err := l.Do(leave, "a", hang); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller left: %v", err)
		}

		time.AfterFunc(time.Second, func() { close(release) })

		if got, err := l.Do(t.Context(), "a", answer); err != nil || got != 7 {
			t.Errorf("the next caller: %d, %v", got, err)
		}

		// One that still hangs.
		release = make(chan struct{})

		leave, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		_, _ = l.Do(leave, "a", hang)

		began := time.Now()

		if _, err := l.Do(t.Context(), "a", answer); !errors.Is(err, hostcall.ErrTooLong) {
			t.Errorf("a caller after one that hangs: %v", err)
		}

		if took := time.Since(began); took != limit-time.Second {
			t.Errorf("it took %s", took)
		}

		close(release)
	})
}

func TestPanicOfALimitedCallIsItsError(t *testing.T) {
	l := newLimited()

	_, err := l.Do(t.Context(), "a", func(context.Context) (int, error) { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "the source panicked: boom") {
		t.Errorf("Do = %v", err)
	}
}
