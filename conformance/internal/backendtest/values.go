package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/store/kv"
)

func testValues(t *testing.T, b kv.Backend) {
	expect(t, b, "a", "")
	put(t, b, "a", "1", "b", "2")
	expect(t, b, "a", "1")
	put(t, b, "a", "3")
	expect(t, b, "a", "3")
	expect(t, b, "b", "2")

	update(t, b, func(w kv.Writer) error {
		if err := w.Delete([]byte("a")); err != nil {
			return err
		}

		if err := w.Delete([]byte("absent")); err != nil {
			return fmt.Errorf("Delete of a key without a value is no error: %w", err)
		}

		return nil
	})
	expect(t, b, "a", "")
	expect(t, b, "b", "2")
}

// What the store needs, beside the keys and values of ordinary records.
const (
	longestKey   = 8 << 10
	longestValue = 1 << 20
	// mostPuts and mostBytes are what one transaction has to hold.
	mostPuts  = 10_000
	mostBytes = 8 << 20
)

// testSizes puts the longest key, the longest value, many keys in one transaction, and many bytes.
func testSizes(t *testing.T, b kv.Backend) {
	key, value := strings.Repeat("k", longestKey), strings.Repeat("v", longestValue)
	putMany(t, b, "a key of 8 KiB and a value of 1 MiB", 1, func(int) (string, string) { return key, value })
	expect(t, b, key, value)

	many := func(n int) (string, string) { return fmt.Sprintf("many/%06d", n), fmt.Sprint(n) }
	putMany(t, b, "10,000 keys in one transaction", mostPuts, many)

	for _, n := range []int{0, mostPuts / 2, mostPuts - 1} {
		key, value := many(n)
		expect(t, b, key, value)
	}

	const values = mostBytes / longestValue

	large := func(n int) (string, string) {
		return fmt.Sprint("large/", n), strings.Repeat(fmt.Sprint(n), longestValue)
	}
	putMany(t, b, "8 MiB in one transaction", values, large)

	for n := range values {
		key, value := large(n)
		expect(t, b, key, value)
	}
}

// putMany puts the pairs of 0 to count-1 in one transaction.
func putMany(t *testing.T, b kv.Backend, what string, count int, pair func(n int) (key, value string)) {
	t.Helper()

	err := b.Update(t.Context(), func(w kv.Writer) error {
		for n := range count {
			if err := putPairs(w, pairOf(pair(n))...); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatalf("the store needs %s: %v", what, err)
	}
}

func pairOf(key, value string) []string { return []string{key, value} }

// testKept checks that a backend neither changes nor mixes up the slices that it is given.
func testKept(t *testing.T, b kv.Backend) {
	key, value := []byte("key"), []byte("value")

	update(t, b, func(w kv.Writer) error {
		if err := w.Put(key, value); err != nil {
			return err
		}

		return w.Put([]byte("other"), []byte("longer than the first"))
	})

	if string(key) != "key" || string(value) != "value" {
		t.Errorf("Put changed the slices that it was passed, to %q and %q", key, value)
	}

	expect(t, b, "key", "value")
	expect(t, b, "other", "longer than the first")
}

// testGot keeps what Get returns while the transaction goes on: other gets, a scan and writes change none of it.
func testGot(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "b", "vb", "c", "vc", "d", "vd")

	update(t, b, func(w kv.Writer) error {
		if err := putPairs(w, "b", "own b", "e", "own e"); err != nil {
			return err
		}

		check, err := keepGot(w, "a", "b", "c", "d", "e")
		if err != nil {
			return err
		}

		// Writes of the keys that were got, then reads that may use the same memory.
		if err := errors.Join(putPairs(w, "a", "zz", "b", "zzzzz"), w.Delete([]byte("c"))); err != nil {
			return err
		}

		_, err = keepGot(w, "e", "d", "b", "a")
		check(t)

		return err
	})

	err := view(b, func(r kv.Reader) error {
		check, err := keepGot(r, "a", "b", "d", "e")
		if err != nil {
			return err
		}

		_, err = keepGot(r, "e", "d", "b", "a")
		check(t)

		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// keepGot gets some keys and scans all, and returns a check that the slices are as they were got.
func keepGot(r kv.Reader, keys ...string) (check func(t *testing.T), err error) {
	kept, copies := map[string][]byte{}, map[string]string{}

	for _, key := range keys {
		if kept[key], err = r.Get([]byte(key)); err != nil {
			return nil, err
		}

		copies[key] = string(kept[key])
		if copies[key] == "" {
			return nil, fmt.Errorf("Get(%q) finds nothing", key)
		}
	}

	err = r.Scan([]byte("a"), []byte("z"), false, func(_, _ []byte) bool { return true })

	return func(t *testing.T) {
		t.Helper()

		for key, want := range copies {
			if got := string(kept[key]); got != want {
				t.Errorf(
					"Get(%q) returned %q, which became %q before the transaction ended: return a copy",
					key, want, got,
				)
			}
		}
	}, err
}

// testLastWrite writes keys several times in one transaction: the last put or delete of each is committed.
func testLastWrite(t *testing.T, b kv.Backend) {
	for _, committed := range []string{"", "committed"} {
		for _, last := range []string{"", "last"} {
			for _, writes := range [][]string{{"x", last}, {"", last}, {"x", "", last}, {"", "x", last}} {
				key := fmt.Sprintf("%s/%s/%q", committed, last, writes)

				if committed != "" {
					put(t, b, key, committed)
				}

				update(t, b, func(w kv.Writer) error { return writeAll(w, key, writes) })
				expect(t, b, key, last)
			}
		}
	}
}

// writeAll puts the values of a key one after the other; "" deletes it.
func writeAll(w kv.Writer, key string, values []string) error {
	for _, value := range values {
		var err error
		if value == "" {
			err = w.Delete([]byte(key))
		} else {
			err = putPairs(w, key, value)
		}

		if err != nil {
			return err
		}

		got, err := get(w, key)
		if err == nil && got != value {
			err = fmt.Errorf("a transaction writes %q and then gets %q, want its last write", value, got)
		}

		if err != nil {
			return err
		}
	}

	return nil
}
