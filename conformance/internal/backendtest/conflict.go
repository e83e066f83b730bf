package backendtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/kv"
)

const (
	goroutines = 16
	// serialize says what a backend has to do against conflicts that it did not see.
	serialize = "a transaction that got a key, or found none, must not commit after another one changed it " +
		"(one lock around all of Update does this, or a comparison of all keys that were read at the commit)"
)

// concurrently runs f in many goroutines, each again until it meets no conflict.
func concurrently(t *testing.T, b kv.Backend, f func(n int, w kv.Writer) error) {
	t.Helper()

	var (
		done   sync.WaitGroup
		failed sync.Once
	)

	for n := range goroutines {
		done.Go(func() {
			for {
				runs := 0

				err := b.Update(context.Background(), func(w kv.Writer) error {
					runs++
					return f(n, w)
				})

				switch {
				case runs > 1 || runs == 0 && err == nil:
					failed.Do(func() {
						t.Errorf("Update called its closure %d times: it calls it once, the store runs it again", runs)
					})

					return
				case err == nil:
					return
				case !errors.Is(err, fault.Conflict):
					failed.Do(func() {
						t.Errorf("Update answered %v: transactions in conflict wait, or are fault.Conflict", err)
					})

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

			runtime.Gosched() // lets the others read, too

			return putPairs(w, "counter", strconv.Itoa(count+1))
		})
	}

	if got, want := read(t, b, "counter"), strconv.Itoa(each*goroutines); got != want {
		t.Errorf("%s goroutines that each added 1 made %s: %s", want, got, serialize)
	}
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

			runtime.Gosched()

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
			t.Fatalf("%d goroutines found a key absent and put it: %s", count, serialize)
		}
	}
}

// testDelete lets all take a key by deleting it: one gets it.
func testDelete(t *testing.T, b kv.Backend) {
	for round := range 10 {
		key := fmt.Sprint("token/", round)
		put(t, b, key, "free")

		concurrently(t, b, func(n int, w kv.Writer) error {
			value, err := get(w, key)
			if err != nil || value == "" {
				return err
			}

			runtime.Gosched()

			return errors.Join(w.Delete([]byte(key)), putPairs(w, fmt.Sprint(key, "/", n), "mine"))
		})

		count := 0

		for n := range goroutines {
			if read(t, b, fmt.Sprint(key, "/", n)) != "" {
				count++
			}
		}

		if count != 1 {
			t.Fatalf("%d goroutines found a key and deleted it: %s", count, serialize)
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

			runtime.Gosched()

			return putPairs(w, fmt.Sprintf("skew/%d/%d", round, n), "mine")
		})

		count := 0

		for n := range goroutines {
			if read(t, b, fmt.Sprintf("skew/%d/%d", round, n)) != "" {
				count++
			}
		}

		if count != 1 {
			t.Fatalf("%d goroutines found no key of the others and put one: %s", count, serialize)
		}
	}
}
