package backendtest

import (
	"context"
	"errors"
	"testing"

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
		t.Errorf("Update returned %v: the closure's error comes back as it is, or wrapped with %%w", err)
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
				t.Errorf("the closure's panic came back as %v: it goes on after the rollback", p)
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

// testContext ends the context before an Update, and inside its closure: either it commits, or it returns an error
// and nothing remains.
func testContext(t *testing.T, b kv.Backend) {
	for _, when := range []string{"before", "inside"} {
		ctx, cancel := context.WithCancel(t.Context())
		if when == "before" {
			cancel()
		}

		err := b.Update(ctx, func(w kv.Writer) error {
			cancel()
			return putPairs(w, when, "committed")
		})

		want := "committed"
		if err != nil {
			want = ""
		}

		if got := read(t, b, when); got != want {
			t.Errorf(
				"the context ended %s an Update, which answered %v and committed %q: "+
					"nil is a commit, and an error is none", when, err, got,
			)
		}

		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the context ended %s an Update, which answered %v, not the context's error", when, err)
		}
	}
}
