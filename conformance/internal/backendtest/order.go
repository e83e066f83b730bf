package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// orderKeys are keys in the order of their bytes: prefixes first, and no byte is special.
func orderKeys() []string {
	return []string{
		"\x00",
		"\x00\x00",
		"\x00\xff",
		"a",
		"a\x00",
		"a\x00b",
		"aa",
		"a\xff",
		"b",
		"z",
		"\x7f",
		"\x80",
		"\xc3\x28",
		"\xff",
		"\xff\x00",
		"\xff\xfe",
	}
}

func testOrder(t *testing.T, b kv.Backend) {
	keys := orderKeys()
	if !slices.IsSorted(keys) {
		t.Fatal("the suite's own keys are not in order")
	}

	update(t, b, func(w kv.Writer) error {
		for _, n := range []int{7, 3, 15, 0, 11, 1, 14, 2, 9, 4, 13, 5, 8, 6, 12, 10} {
			if err := putPairs(w, keys[n], "v"+keys[n]); err != nil {
				return err
			}
		}

		return nil
	})

	err := view(b, func(r kv.Reader) error {
		return expectScans(r, keys, append([]string{"a\x00a", "m", "\xff\xff"}, keys...))
	})
	if err != nil {
		t.Error(err)
	}
}

// expectScans compares the scans between all bounds, in both directions, with a loop over all keys. It returns
// the first that differs.
func expectScans(r kv.Reader, keys, bounds []string) error {
	for _, from := range bounds {
		for _, to := range bounds {
			for _, descending := range []bool{false, true} {
				if err := expectScan(r, keys, from, to, descending); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

func expectScan(r kv.Reader, keys []string, from, to string, descending bool) error {
	var want []string

	for _, key := range keys {
		if key >= from && key < to {
			want = append(want, key)
		}
	}

	if descending {
		slices.Reverse(want)
	}

	got, err := scan(r, from, to, descending)
	if err == nil && !slices.Equal(got, want) {
		err = errors.New(difference(got, want))
	}

	if err != nil {
		err = fmt.Errorf("Scan(%q, %q, descending %t): %w", from, to, descending, err)
	}

	return err
}

// difference says how the keys that a scan visited differ from those wanted.
func difference(got, want []string) string {
	const rule = "from is in the range, to is not, in both directions"

	for n, key := range got {
		switch {
		case !slices.Contains(want, key):
			return fmt.Sprintf("visits %q, which is not there or not in the range (%s)", key, rule)
		case slices.Contains(got[:n], key):
			return fmt.Sprintf("visits %q twice", key)
		}
	}

	for _, key := range want {
		if !slices.Contains(got, key) {
			return fmt.Sprintf("does not visit %q, the %d. of %d keys (%s)", key, slices.Index(want, key)+1, len(want), rule)
		}
	}

	return fmt.Sprintf("visits %.400q, want the order of bytes.Compare: %.400q", got, want)
}

// testStop ends scans before the end of their range.
func testStop(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "b", "vb", "c", "vc", "d", "vd")

	stop := func(r kv.Reader) error {
		for descending, want := range map[bool]string{false: "[a b]", true: "[d c]"} {
			var visited []string

			err := r.Scan([]byte("a"), []byte("z"), descending, func(key, _ []byte) bool {
				visited = append(visited, string(key))
				return len(visited) < 2
			})
			if got := fmt.Sprint(visited); err != nil || got != want {
				t.Errorf(
					"Scan(descending %t) visits %s (%v), want %s: it ends when visit returns false",
					descending, got, err, want,
				)
			}
		}

		return nil
	}

	update(t, b, func(w kv.Writer) error { return stop(w) })

	if err := view(b, stop); err != nil {
		t.Error(err)
	}
}

// testLong scans more keys than engines hand out at once, half of them the transaction's own.
func testLong(t *testing.T, b kv.Backend) {
	const count = 4000

	keys := make([]string, count)
	for n := range keys {
		keys[n] = fmt.Sprintf("long/%06d", n)
	}

	putEvery := func(w kv.Writer, first int) error {
		for n := first; n < count; n += 2 {
			if err := putPairs(w, keys[n], "v"+keys[n]); err != nil {
				return err
			}
		}

		return nil
	}

	update(t, b, func(w kv.Writer) error { return putEvery(w, 0) })
	update(t, b, func(w kv.Writer) error {
		return errors.Join(putEvery(w, 1), expectScans(w, keys, []string{"long/", "long0"}))
	})

	if err := view(b, func(r kv.Reader) error { return expectScans(r, keys, []string{"long/", "long0"}) }); err != nil {
		t.Error(err)
	}
}

// testOwnWrites scans and gets what the transaction itself wrote and deleted, between what was committed.
func testOwnWrites(t *testing.T, b kv.Backend) {
	keys := []string{"b", "c", "d", "e", "g", "i", "k"}

	put(t, b, "a", "va", "c", "vc", "e", "old", "f", "vf", "g", "vg", "h", "vh", "k", "vk")

	update(t, b, func(w kv.Writer) error {
		if err := errors.Join(
			putPairs(w, "i", "vi", "b", "vb", "e", "ve", "d", "vd"),
			writeAll(w, "a", []string{""}),          // committed, deleted
			writeAll(w, "f", []string{"new", ""}),   // committed, replaced, deleted
			writeAll(w, "g", []string{"", "vg"}),    // committed, deleted, put again
			writeAll(w, "h", []string{"", "x", ""}), // committed, and deleted twice
			writeAll(w, "j", []string{"new", ""}),   // its own, deleted
		); err != nil {
			return err
		}

		for _, key := range append([]string{"a", "f", "h", "j"}, keys...) {
			want := ""
			if slices.Contains(keys, key) {
				want = "v" + key
			}

			if got, err := get(w, key); err != nil || got != want {
				t.Errorf("Get(%q) in the transaction that wrote it is %q (%v), want %q", key, got, err, want)
			}
		}

		if err := expectScans(w, keys, strings.Split("abcdefghijklm", "")); err != nil {
			t.Errorf("in the transaction that wrote the keys: %v", err)
		}

		return nil
	})

	if err := view(b, func(r kv.Reader) error { return expectScans(r, keys, []string{"a", "z"}) }); err != nil {
		t.Errorf("after the commit: %v", err)
	}
}

func testGetInsideScan(t *testing.T, b kv.Backend) {
	put(t, b, "i/1", "r/2", "i/2", "r/1", "r/1", "one", "r/2", "two")

	read := func(r kv.Reader) error {
		var found []byte

		err := r.Scan([]byte("i/"), []byte("i0"), false, func(_, value []byte) bool {
			record, err := r.Get(bytes.Clone(value))
			found = append(found, record...)

			return err == nil
		})
		if err != nil || string(found) != "twoone" {
			t.Errorf("the records of an index are %q (%v)", found, err)
		}

		return nil
	}

	update(t, b, func(w kv.Writer) error { return read(w) })

	if err := view(b, read); err != nil {
		t.Error(err)
	}
}
