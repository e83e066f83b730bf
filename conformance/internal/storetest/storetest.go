// Package storetest is the suite behind conformance.TestStore: the guarantees of package store and
// of the domains' Readers and Txs.
//
// Each exported function is a part of the suite and is in the file of its name. Every case gets a
// new, empty store. The records come from recordKinds, with every field filled by reflection.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// recordID returns the n-th id of the suite: ids sort as their numbers.
func recordID(n int) string { return fmt.Sprintf("%024x", n+1) }

// timeAt returns the time of the n-th record: n minutes after epoch.
func timeAt(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// cycle returns the n-th of some values, in an order that has no common period with others of
// another length.
func cycle[V any](n int, values ...V) V {
	round := n / len(owners)
	return values[(round*7+round/len(values))%len(values)]
}
