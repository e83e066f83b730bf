package together_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/internal/together"
)

func TestEach(t *testing.T) {
	for _, limit := range []int{0, 1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			var (
				mu   sync.Mutex
				done []int
				now  atomic.Int32
				most int32
			)

			began := time.Now()

			err := together.Each(
				t.Context(),
				limit,
				[]int{1, 2, 3, 4, 5, 6},
				func(_ context.Context, n int) error {
					at := now.Add(1)
					defer now.Add(-1)

					mu.Lock()
					most = max(most, at)

					done = append(done, n)
					mu.Unlock()
					time.Sleep(time.Second)

					return nil
				},
			)
			if err != nil {
				t.Fatal(err)
			}

			slices.Sort(done)

			at := min(max(limit, 1), 6)
			if !slices.Equal(done, []int{1, 2, 3, 4, 5, 6}) || int(most) != at {
				t.Errorf("limit %d: %v, %d at once", limit, done, most)
			}

			if took := time.Since(began); took != time.Duration(6/at)*time.Second {
				t.Errorf("limit %d took %s", limit, took)
			}
		})
	}
}

func TestEachEndsAtAnError(t *testing.T) {
	broken := errors.New("broken")

	for _, limit := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var done atomic.Int32

			err := together.Each(
				t.Context(),
				limit,
				[]int{1, 2, 3, 4, 5, 6},
				func(_ context.Context, n int) error {
					time.Sleep(time.Duration(n) * time.Second)
					done.Add(1)

					if n >= 2 {
						return broken
					}

					return nil
				},
			)

			// With two at a time 3 is under way when 2 fails.
			if !errors.Is(err, broken) || int(done.Load()) != limit+1 {
				t.Errorf("limit %d: %v after %d", limit, err, done.Load())
			}
		})
	}
}

func TestEachEndsWithItsContext(t *testing.T) {
	for _, limit := range []int{1, 2} {
		ctx, cancel := context.WithCancel(t.Context())

		var done atomic.Int32

		err := together.Each(ctx, limit, []int{1, 2, 3, 4, 5, 6}, func(context.Context, int) error {
			done.Add(1)
			cancel()

			return nil
		})
		if !errors.Is(err, context.Canceled) || int(done.Load()) > limit {
			t.Errorf("limit %d: %v after %d", limit, err, done.Load())
		}
	}
}

func TestEachPanics(t *testing.T) {
	for _, limit := range []int{1, 2} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("limit %d: the panic is lost", limit)
				}
			}()

			_ = together.Each(
				t.Context(),
				limit,
				[]int{1, 2, 3},
				func(context.Context, int) error { panic("broken") },
			)
		}()
	}
}
