// Package backendtest is the suite behind conformance.TestBackend: the guarantees of kv.Backend.
package backendtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// Open opens the backend whose files are in a directory.
type Open = func(dir string) (kv.Backend, error)

// Run tests all that does not outlive Close.
func Run(t *testing.T, open Open) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, kv.Backend){
		"Values":              testValues,
		"Values/Sizes":        testSizes,
		"Values/Kept":         testKept,
		"Order":               testOrder,
		"Order/OwnWrites":     testOwnWrites,
		"Order/GetInsideScan": testGetInsideScan,
		"Rollback/Error":      testError,
		"Rollback/Panic":      testPanic,
		"Isolation/Snapshot":  testSnapshot,
		"Isolation/Inside":    testInside,
		"Isolation/ViewError": testViewError,
		"Conflict/Counter":    testCounter,
		"Conflict/Absent":     testAbsent,
		"Conflict/WriteSkew":  testWriteSkew,
	} {
		t.Run(name, func(t *testing.T) {
			b := mustOpen(t, open, t.TempDir())
			t.Cleanup(func() { mustClose(t, b) })
			test(t, b)
		})
	}
}

func mustOpen(t *testing.T, open Open, dir string) kv.Backend {
	t.Helper()

	b, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func mustClose(t *testing.T, b kv.Backend) {
	t.Helper()

	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// update runs an Update that must succeed.
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
			return err
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
	if err == nil && value != nil && len(value) == 0 {
		err = fmt.Errorf("the value of %q is empty and not nil", key)
	}

	return string(value), err
}

// scan returns the keys of a range, and checks that each has the value v and its name.
func scan(r kv.Reader, from, to string, descending bool) (keys []string, err error) {
	var wrong error

	err = r.Scan([]byte(from), []byte(to), descending, func(key, value []byte) bool {
		if string(value) != "v"+string(key) {
			wrong = fmt.Errorf("a scan shows %q under %q", value, key)
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
		t.Errorf("%q is %.40q, want %.40q", key, got, want)
	}
}

// view runs a View in another goroutine's place: with a context that no Update has seen.
func view(b kv.Backend, f func(kv.Reader) error) error { return b.View(context.Background(), f) }
