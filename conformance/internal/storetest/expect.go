package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store"
)

// sameRecord are the options under which a record read equals the record put.
var sameRecord = cmp.Options{
	cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// expectEqual compares a record that was read with the one that was put.
func expectEqual(t testing.TB, when string, put, got any) {
	t.Helper()

	if diff := cmp.Diff(put, got, sameRecord); diff != "" {
		t.Errorf("%s the record is another (- put, + got):\n%s", when, diff)
	}

	eachTime(reflect.ValueOf(got), "", func(path string, at time.Time) {
		if !at.IsZero() && at.Location() != time.UTC {
			t.Errorf("%s %s is not in UTC: %v", when, path, at)
		}
	})
}

// eachTime calls f for every time in v.
func eachTime(v reflect.Value, path string, f func(path string, at time.Time)) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		f(path, v.Interface().(time.Time))
		return
	}

	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachTime(v.Elem(), path, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				eachTime(v.Field(i), path+"."+field.Name, f)
			}
		}
	}
}

// expectError checks that an update fails with an error of a kind.
func expectError(t *testing.T, st store.Store, kind error, what string, f closure) {
	t.Helper()

	if err := st.Update(t.Context(), f); !errors.Is(err, kind) {
		t.Errorf("%s answered %v, want %v", what, err, kind)
	}
}

// expectIDs compares the ids of a list with those wanted, in order or in any.
func expectIDs[T any](
	t *testing.T,
	what string,
	got []T,
	err error,
	id func(T) string,
	want []string,
	anyOrder bool,
) {
	t.Helper()

	ids := idsOf(got, id)
	if anyOrder {
		slices.Sort(ids)

		want = slices.Sorted(slices.Values(want))
	}

	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("%s: %v (%v), want %v", what, ids, err, want)
	}
}

// idsOf returns the ids of records.
func idsOf[T any](records []T, id func(T) string) []string {
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = id(record)
	}

	return ids
}
