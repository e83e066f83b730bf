// Package storetest is the suite behind conformance.TestStore: the guarantees of package store and
// of the domains' Readers and Txs.
//
// Each exported function is a part of the suite and is in the file of its name. Every case gets a
// new, empty store. The records come from recordKinds, with every field filled by reflection.
//
// It is one package because every part of the suite fills and compares the same records, a file for each part.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
)

// Factory returns a new, empty store.
type Factory = func(t *testing.T) store.Store

// testCase is one subtest with a store of its own.
type testCase struct {
	name string
	run  func(t *testing.T, st store.Store)
}

func run(t *testing.T, factory Factory, cases []testCase) {
	t.Helper()

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, factory(t)) })
	}
}

// closure is what runs in one transaction.
type closure = func(ctx context.Context, tx store.Tx) error

// update runs a closure that must succeed.
func update(t testing.TB, st store.Store, f closure) {
	t.Helper()

	if err := st.Update(t.Context(), f); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// epoch is the time that the suite counts from.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// owners are two accounts in two modes. The first two differ in mode alone.
var owners = []event.Owner{
	{AccountID: "one"},
	{AccountID: "one", Livemode: true},
	{AccountID: "two", Livemode: true},
}

// recordID returns the n-th id of the suite, as the engine would make it at timeAt(n): ids sort as their numbers.
func recordID(n int) string { return fmt.Sprintf("%012x%012x", timeAt(n).UnixMilli(), n+1) }

// timeAt returns the time of the n-th record: n minutes after epoch.
func timeAt(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// cycle returns the n-th of some values, in an order that has no common period with others of
// another length.
func cycle[V any](n int, values ...V) V {
	round := n / len(owners)
	return values[(round*7+round/len(values))%len(values)]
}

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
