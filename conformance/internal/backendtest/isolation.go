package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// testSnapshot reads in a View while others commit.
func testSnapshot(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "c", "vc")

	var late <-chan error

	err := b.View(t.Context(), func(r kv.Reader) error {
		committed := make(chan error, 1)
		go func() {
			committed <- b.Update(context.Background(), func(w kv.Writer) error {
				return errors.Join(putPairs(w, "a", "new", "b", "vb"), w.Delete([]byte("c")))
			})
		}()

		if !arrives(t, committed, "an Update waits for a View: a View must not stop writers") {
			late = committed
			return nil
		}

		got, err := get(r, "a")
		if err != nil || got != "va" {
			t.Errorf("a View gets %q, which was committed later (%v): it is a snapshot", got, err)
		}

		keys, err := scan(r, "a", "z", false)
		if err != nil || fmt.Sprint(keys) != "[a c]" {
			t.Errorf("a View scans %q while others commit (%v), want [a c]: it is a snapshot", keys, err)
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}

	if late != nil {
		arrives(t, late, "an Update that waited for a View does not go on after it")
		return
	}

	expect(t, b, "a", "new")
	expect(t, b, "c", "")
}

// testInside reads in a View inside an Update: what was committed, without waiting.
func testInside(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "b", "vb")

	var late <-chan error

	update(t, b, func(w kv.Writer) error {
		if err := errors.Join(putPairs(w, "a", "new", "c", "vc"), w.Delete([]byte("b"))); err != nil {
			return err
		}

		seen := make(chan error, 1)
		go func() {
			seen <- view(b, func(r kv.Reader) error {
				keys, err := scan(r, "a", "z", true)
				if err == nil && fmt.Sprint(keys) != "[b a]" {
					err = fmt.Errorf("a View inside an Update scans %q, want [b a]: it sees nothing of it", keys)
				}

				return err
			})
		}()

		if !arrives(t, seen, "a View waits for an Update: it reads what was committed, without a lock") {
			late = seen
			return nil
		}

		if got, err := get(w, "a"); err != nil || got != "new" {
			t.Errorf("after a View the transaction reads %q (%v)", got, err)
		}

		return nil
	})

	if late != nil {
		arrives(t, late, "a View that waited for an Update does not go on after it")
		return
	}

	expect(t, b, "a", "new")
	expect(t, b, "c", "vc")
}

func testViewError(t *testing.T, b kv.Backend) {
	if err := view(b, func(kv.Reader) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("View returned %v: the closure's error comes back as it is, or wrapped with %%w", err)
	}
}
