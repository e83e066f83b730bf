package backendtest

import (
	"bytes"
	"fmt"
	"slices"
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

		return w.Delete([]byte("absent"))
	})
	expect(t, b, "a", "")
	expect(t, b, "b", "2")
}

// testSizes puts the longest key, a long value, and many keys in one transaction.
func testSizes(t *testing.T, b kv.Backend) {
	const longest, many = 8 << 10, 5000

	key, value := strings.Repeat("k", longest), strings.Repeat("v", 1<<20)
	put(t, b, key, value)
	expect(t, b, key, value)

	update(t, b, func(w kv.Writer) error {
		for n := range many {
			if err := putPairs(w, fmt.Sprintf("many/%06d", n), fmt.Sprint(n)); err != nil {
				return err
			}
		}

		return nil
	})
	expect(t, b, fmt.Sprintf("many/%06d", many-1), fmt.Sprint(many-1))
}

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
		t.Errorf("the slices of a Put became %q and %q", key, value)
	}

	expect(t, b, "key", "value")
	expect(t, b, "other", "longer than the first")
}

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

	bounds := append([]string{"a\x00a", "m", "\xff\xff"}, keys...)

	for _, from := range bounds {
		for _, to := range bounds {
			for _, descending := range []bool{false, true} {
				expectScan(t, b, keys, from, to, descending)
			}
		}
	}

	var first []string

	err := view(b, func(r kv.Reader) error {
		return r.Scan([]byte("\x00"), []byte("\xff\xff"), false, func(key, _ []byte) bool {
			first = append(first, string(key))
			return len(first) < 3
		})
	})
	if err != nil || !slices.Equal(first, keys[:3]) {
		t.Errorf("a scan that is stopped after 3 keys visits %q (%v)", first, err)
	}
}

// expectScan compares a scan with a loop over all keys.
func expectScan(t *testing.T, b kv.Backend, keys []string, from, to string, descending bool) {
	t.Helper()

	var want []string

	for _, key := range keys {
		if key >= from && key < to {
			want = append(want, key)
		}
	}

	if descending {
		slices.Reverse(want)
	}

	var got []string

	err := view(b, func(r kv.Reader) (err error) {
		got, err = scan(r, from, to, descending)
		return err
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("from %q to %q, descending %t: %q (%v), want %q", from, to, descending, got, err, want)
	}
}

// testOwnWrites scans and gets what the transaction itself wrote and deleted.
func testOwnWrites(t *testing.T, b kv.Backend) {
	put(t, b, "a", "va", "b", "vb", "d", "old")

	update(t, b, func(w kv.Writer) error {
		if err := putPairs(w, "c", "vc", "d", "vd", "e", "ve"); err != nil {
			return err
		}

		for _, key := range []string{"a", "e"} {
			if err := w.Delete([]byte(key)); err != nil {
				return err
			}
		}

		for _, descending := range []bool{false, true} {
			want := []string{"b", "c", "d"}
			if descending {
				slices.Reverse(want)
			}

			got, err := scan(w, "a", "z", descending)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("descending %t: %q (%v), want %q", descending, got, err, want)
			}
		}

		for key, want := range map[string]string{"a": "", "b": "vb", "d": "vd", "e": ""} {
			if got, err := get(w, key); err != nil || got != want {
				t.Errorf("%q is %q in the transaction (%v), want %q", key, got, err, want)
			}
		}

		return nil
	})
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
