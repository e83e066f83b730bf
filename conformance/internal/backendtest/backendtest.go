// Package backendtest is the suite behind conformance.TestBackend: the guarantees of kv.Backend.
package backendtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// Open opens the backend whose files are in a directory.
type Open = func(dir string) (kv.Backend, error)

const (
	// patience is how long a call may take that another one must not hold up.
	patience = 10 * time.Second
	// longestTest is how long a test may take, on a slow disk, too.
	longestTest = 45 * time.Second
)

// Run tests all that does not outlive Close.
func Run(t *testing.T, open Open) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, kv.Backend){
		"Values":              testValues,
		"Values/Sizes":        testSizes,
		"Values/Kept":         testKept,
		"Values/Got":          testGot,
		"Values/LastWrite":    testLastWrite,
		"Order":               testOrder,
		"Order/Stop":          testStop,
		"Order/Long":          testLong,
		"Order/OwnWrites":     testOwnWrites,
		"Order/GetInsideScan": testGetInsideScan,
		"Rollback/Error":      testError,
		"Rollback/Panic":      testPanic,
		"Rollback/Context":    testContext,
		"Isolation/Snapshot":  testSnapshot,
		"Isolation/Inside":    testInside,
		"Isolation/ViewError": testViewError,
		"Conflict/Counter":    testCounter,
		"Conflict/Absent":     testAbsent,
		"Conflict/Delete":     testDelete,
		"Conflict/WriteSkew":  testWriteSkew,
	} {
		t.Run(name, func(t *testing.T) {
			b := mustOpen(t, open, t.TempDir())
			if finishes(t, func() { test(t, b) }) {
				mustClose(t, b)
			}
		})
	}
}

// finishes runs a test, and reports whether it came to an end: a call that never returns must say so before
// the test binary's own timeout, which names nothing.
func finishes(t *testing.T, test func()) bool {
	t.Helper()

	done := make(chan struct{})
	go func() {
		defer close(done) // also after t.Fatal
		test()
	}()

	limit := time.NewTimer(longestTest)
	defer limit.Stop()

	select {
	case <-done:
		return true
	case <-limit.C:
		t.Errorf(
			"after %v a View or an Update has not returned: does one that failed or panicked leave a lock, "+
				"an open transaction or an open iterator behind, or does one wait for another?", longestTest,
		)

		return false
	}
}

// arrives waits for what another goroutine answers, and says that it is held up if that takes too long.
func arrives(t *testing.T, answer <-chan error, heldUp string) bool {
	t.Helper()

	limit := time.NewTimer(patience)
	defer limit.Stop()

	select {
	case err := <-answer:
		if err != nil {
			t.Error(err)
		}

		return true
	case <-limit.C:
		t.Error(heldUp)
		return false
	}
}

func mustOpen(t *testing.T, open Open, dir string) kv.Backend {
	t.Helper()

	b, err := open(dir)
	if err != nil {
		t.Fatalf("open: %v", err)
	}

	return b
}

func mustClose(t *testing.T, b kv.Backend) {
	t.Helper()

	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// update runs an Update that must succeed: nothing else runs, so that it meets no conflict.
func update(t *testing.T, b kv.Backend, f func(kv.Writer) error) {
	t.Helper()

	if err := b.Update(t.Context(), f); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

// put puts keys with values, in turns.
func put(t *testing.T, b kv.Backend, pairs ...string) {
	t.Helper()
	update(t, b, func(w kv.Writer) error { return putPairs(w, pairs...) })
}

func putPairs(w kv.Writer, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := w.Put([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
			return fmt.Errorf("Put(%.40q): %w", pairs[i], err)
		}
	}

	return nil
}

// read returns the value of a key, "" for none.
func read(t *testing.T, b kv.Backend, key string) (value string) {
	t.Helper()

	err := b.View(t.Context(), func(r kv.Reader) (err error) {
		value, err = get(r, key)
		return err
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}

	return value
}

func get(r kv.Reader, key string) (string, error) {
	value, err := r.Get([]byte(key))

	switch {
	case err != nil:
		err = fmt.Errorf("Get(%.40q): %w (a key without a value is nil, and no error)", key, err)
	case value != nil && len(value) == 0:
		err = fmt.Errorf("Get(%.40q) is empty and not nil: a key without a value is nil", key)
	}

	return string(value), err
}

// scan returns the keys of a range, and checks that each has the value v and its name.
func scan(r kv.Reader, from, to string, descending bool) (keys []string, err error) {
	var wrong error

	err = r.Scan([]byte(from), []byte(to), descending, func(key, value []byte) bool {
		if string(value) != "v"+string(key) {
			wrong = fmt.Errorf("Scan passes the value %.40q with the key %q, want %q", value, key, "v"+string(key))
		}

		keys = append(keys, string(key))

		return true
	})
	if err == nil {
		err = wrong
	}

	return keys, err
}

// expect compares the value of a committed key.
func expect(t *testing.T, b kv.Backend, key, want string) {
	t.Helper()

	if got := read(t, b, key); got != want {
		t.Errorf("after the commit %.40q is %.40q, want %.40q", key, got, want)
	}
}

// view runs a View in another goroutine's place: with a context that no Update has seen.
func view(b kv.Backend, f func(kv.Reader) error) error { return b.View(context.Background(), f) }
