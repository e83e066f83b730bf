package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/kv"
)

var errRefused = errors.New("the closure refused")

func testError(t *testing.T, b kv.Backend) {
	put(t, b, "a", "1", "b", "2")

	err := b.Update(t.Context(), func(w kv.Writer) error {
		if err := putPairs(w, "a", "3", "c", "4"); err != nil {
			return err
		}

		return errors.Join(w.Delete([]byte("b")), errRefused)
	})
	if !errors.Is(err, errRefused) {
		t.Errorf("the closure's error came back as %v", err)
	}

	expect(t, b, "a", "1")
	expect(t, b, "b", "2")
	expect(t, b, "c", "")
	put(t, b, "a", "5")
}

func testPanic(t *testing.T, b kv.Backend) {
	put(t, b, "a", "1")

	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("the closure's panic came back as %v", p)
			}
		}()

		_ = b.Update(t.Context(), func(w kv.Writer) error {
			if err := putPairs(w, "a", "2"); err != nil {
				return err
			}

			panic("boom")
		})
	}()

	expect(t, b, "a", "1")
	put(t, b, "a", "3") // no lock is left behind
	expect(t, b, "a", "3")
}

// testSnapshot reads in a View while others commit.
func testSnapshot(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "c", "vc")

	err := b.View(t.Context(), func(r kv.Reader) error {
		committed := make(chan error, 1)
		go func() {
			committed <- b.Update(context.Background(), func(w kv.Writer) error {
				return errors.Join(putPairs(w, "a", "new", "b", "vb"), w.Delete([]byte("c")))
			})
		}()

		select {
		case err := <-committed:
			if err != nil {
				return err
			}
		case <-time.After(20 * time.Second):
			return errors.New("an Update waits for a View")
		}

		got, err := get(r, "a")
		if err != nil || got != "va" {
			t.Errorf("a View shows %q, which was committed later (%v)", got, err)
		}

		keys, err := scan(r, "a", "z", false)
		if err != nil || fmt.Sprint(keys) != "[a c]" {
			t.Errorf("a View scans %q while others commit (%v)", keys, err)
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}

	expect(t, b, "a", "new")
	expect(t, b, "c", "")
}

// testInside reads in a View inside an Update: what was committed, without waiting.
func testInside(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "b", "vb")

	update(t, b, func(w kv.Writer) error {
		if err := errors.Join(putPairs(w, "a", "new", "c", "vc"), w.Delete([]byte("b"))); err != nil {
			return err
		}

		seen := make(chan error, 1)
		go func() {
			seen <- view(b, func(r kv.Reader) error {
				keys, err := scan(r, "a", "z", true)
				if err == nil && fmt.Sprint(keys) != "[b a]" {
					err = fmt.Errorf("a View inside an Update scans %q", keys)
				}

				return err
			})
		}()

		select {
		case err := <-seen:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			return errors.New("a View waits for an Update")
		}

		if got, err := get(w, "a"); err != nil || got != "new" {
			t.Errorf("after a View the transaction reads %q (%v)", got, err)
		}

		return nil
	})
	expect(t, b, "a", "new")
	expect(t, b, "c", "vc")
}

func testViewError(t *testing.T, b kv.Backend) {
	if err := view(b, func(kv.Reader) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("the error of a View came back as %v", err)
	}
}

const goroutines = 16

// concurrently runs f in many goroutines, each again until it meets no conflict.
func concurrently(t *testing.T, b kv.Backend, f func(n int, w kv.Writer) error) {
	t.Helper()

	var done sync.WaitGroup

	for n := range goroutines {
		done.Go(func() {
			for {
				err := b.Update(context.Background(), func(w kv.Writer) error { return f(n, w) })
				if err == nil {
					return
				}

				if !errors.Is(err, fault.Conflict) {
					t.Errorf("goroutine %d: %v; a conflict is fault.Conflict", n, err)
					return
				}
			}
		})
	}

	done.Wait()
}

// testCounter adds to one number from many goroutines.
func testCounter(t *testing.T, b kv.Backend) {
	const each = 10

	for range each {
		concurrently(t, b, func(_ int, w kv.Writer) error {
			value, err := get(w, "counter")
			if err != nil {
				return err
			}

			count, _ := strconv.Atoi(value)

			return putPairs(w, "counter", strconv.Itoa(count+1))
		})
	}

	expect(t, b, "counter", strconv.Itoa(each*goroutines))
}

// testAbsent lets all take a key that does not exist: one gets it.
func testAbsent(t *testing.T, b kv.Backend) {
	for round := range 10 {
		taken := make([]bool, goroutines)

		concurrently(t, b, func(n int, w kv.Writer) error {
			key := fmt.Sprint("key/", round)

			value, err := get(w, key)
			if taken[n] = false; err != nil || value != "" {
				return err
			}

			taken[n] = true

			return putPairs(w, key, strconv.Itoa(n))
		})

		count := 0

		for n, mine := range taken {
			if mine {
				count++

				expect(t, b, fmt.Sprint("key/", round), strconv.Itoa(n))
			}
		}

		if count != 1 {
			t.Fatalf("%d goroutines took one key", count)
		}
	}
}

// testWriteSkew lets each write a key of its own if it finds nobody else's.
func testWriteSkew(t *testing.T, b kv.Backend) {
	for round := range 10 {
		concurrently(t, b, func(n int, w kv.Writer) error {
			for other := range goroutines {
				if value, err := get(w, fmt.Sprintf("skew/%d/%d", round, other)); err != nil || value != "" {
					return err
				}
			}

			return putPairs(w, fmt.Sprintf("skew/%d/%d", round, n), "mine")
		})

		count := 0

		for n := range goroutines {
			if read(t, b, fmt.Sprintf("skew/%d/%d", round, n)) != "" {
				count++
			}
		}

		if count != 1 {
			t.Fatalf("%d goroutines found nobody else's key", count)
		}
	}
}
