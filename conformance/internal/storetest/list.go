package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// Lists tests every list. Each filter is compared with a plain loop over the same records. Pages
// are whole while rows come in, and owners never see each other's records.
func Lists(t *testing.T, factory Factory) {
	t.Helper()

	var cases []testCase
	for _, l := range listSuites() {
		cases = append(cases,
			testCase{"List/" + l.name() + "/Filters", l.testFilters},
			testCase{"List/" + l.name() + "/Pages", l.testPages},
			testCase{"List/" + l.name() + "/Owners", l.testOwners},
		)
	}

	cases = append(cases,
		testCase{"List/Invoices/Searches", testSearches},
		testCase{"List/Accounts", testAccounts},
		testCase{"List/Keys", testKeys},
		testCase{"List/Balances", testBalances},
	)
	run(t, factory, cases)
}

// listSuite is a list of records of one kind, with its tests.
type listSuite interface {
	name() string
	testFilters(t *testing.T, st store.Store)
	testPages(t *testing.T, st store.Store)
	testOwners(t *testing.T, st store.Store)
	testLimits(t *testing.T, st store.Store)
}

// listSuites returns the suites of all lists.
func listSuites() []listSuite {
	return []listSuite{
		invoiceList,
		paymentList,
		depositAddressList,
		settlementList,
		payoutList,
		refundList,
		eventList,
		endpointList,
		deliveryList,
	}
}

// listOf is a list of records T that a filter F selects.
type listOf[T, F any] struct {
	kind string

	// make returns the n-th record of an owner. Its values repeat in ways that let every filter
	// select some.
	make func(n int, owner event.Owner) T
	id   func(T) string

	put  func(tx store.Tx, ctx context.Context, record *T) error
	list func(r store.Reader, ctx context.Context, f F) ([]T, error)
	// one reads a record by its owner and id.
	one func(r store.Reader, ctx context.Context, owner event.Owner, id string) (T, error)

	// filter returns the filter of a page of an owner without conditions.
	filter func(owner event.Owner, after string, limit int) F
	// filters are conditions to add.
	filters []filterCase[T, F]
}

// filterCase is a condition of a filter with what passes it. The first word of its name is the
// filter's field.
type filterCase[T, F any] struct {
	name   string
	set    func(*F)
	passes func(T) bool
}

func (c filterCase[T, F]) field() string {
	field, _, _ := strings.Cut(c.name, " ")
	return field
}

// filterRecords is how many records of each owner the filters choose from.
const filterRecords = 40

func (l listOf[T, F]) name() string { return l.kind }

// testFilters tests every filter alone and every pair of them.
func (l listOf[T, F]) testFilters(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, filterRecords)

	l.testFilter(t, st, all)

	for i, first := range l.filters {
		l.testFilter(t, st, all, first)

		for _, second := range l.filters[i+1:] {
			if first.field() != second.field() {
				l.testFilter(t, st, all, first, second)
			}
		}
	}
}

// testFilter tests filters together, on one page and on pages of 7.
func (l listOf[T, F]) testFilter(t *testing.T, st store.Store, all []T, filters ...filterCase[T, F]) {
	t.Helper()

	var (
		names  []string
		passes []func(T) bool
	)

	for _, condition := range filters {
		names = append(names, condition.name)
		passes = append(passes, condition.passes)
	}

	name := strings.Join(names, " and ")
	if name == "" {
		name = "no filter"
	}

	want := l.want(all, 1, passes...)
	if len(filters) < 2 && (len(want) == 0 || len(filters) == 1 && len(want) == filterRecords) {
		t.Fatalf(
			"%s: the suite's own records do not try this filter: it keeps %d of %d",
			name, len(want), filterRecords,
		)
	}

	if got := l.page(t, st, name, filters, "", 100); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}

	setsAfter := func(condition filterCase[T, F]) bool { return condition.name == "After" }
	if !slices.ContainsFunc(filters, setsAfter) {
		l.testFilterPages(t, st, name, filters, want)
	}
}

// testFilterPages reads all that filters select, in pages of 7.
func (l listOf[T, F]) testFilterPages(
	t *testing.T,
	st store.Store,
	name string,
	filters []filterCase[T, F],
	want []string,
) {
	t.Helper()

	const limit = 7

	for at, after := 0, ""; ; at += limit {
		got := l.page(t, st, name, filters, after, limit)

		remaining := want[min(at, len(want)):]
		if !slices.Equal(got, remaining[:min(limit, len(remaining))]) {
			t.Errorf(
				"%s: a page of %d after %q is %v, want the next of %v",
				name, limit, after, got, remaining,
			)

			return
		}

		if len(got) < limit {
			return
		}

		after = got[limit-1]
	}
}

// page returns the ids of a page of the second owner's records.
func (l listOf[T, F]) page(
	t *testing.T,
	st store.Store,
	name string,
	filters []filterCase[T, F],
	after string,
	limit int,
) []string {
	t.Helper()

	f := l.filter(owners[1], after, limit)
	for _, condition := range filters {
		condition.set(&f)
	}

	got, err := l.list(st, t.Context(), f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return idsOf(got, l.id)
}

// testPages reads all pages with limits 1 and 3, while a newer record comes in after each page:
// nothing that was there is missing or doubled.
func (l listOf[T, F]) testPages(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, 10)
	count := 10

	for _, limit := range []int{1, 3} {
		want := l.want(all, 1)

		var got []string

		for after := ""; ; {
			page, err := l.list(st, t.Context(), l.filter(owners[1], after, limit))
			if err != nil {
				t.Fatal(err)
			}

			if len(page) > limit {
				t.Fatalf("a page of limit %d has %d records", limit, len(page))
			}

			got = append(got, idsOf(page, l.id)...)
			if len(page) < limit || len(got) > len(want) {
				break
			}

			after = l.id(page[limit-1])
			all = append(all, l.fill(t, st, count, 1)...)
			count++
		}

		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", limit, got, want)
		}
	}
}

// testOwners reads every record as every owner.
func (l listOf[T, F]) testOwners(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, 2)

	for i, record := range all {
		for o, owner := range owners {
			got, err := l.one(st, t.Context(), owner, l.id(record))

			owned := i%len(owners) == o
			switch {
			case owned && (err != nil || l.id(got) != l.id(record)):
				t.Errorf("%s as its owner %v: %v %v", l.id(record), owner, got, err)
			case !owned && !errors.Is(err, fault.NotFound):
				t.Errorf("%s as %v, whose it is not: %v", l.id(record), owner, err)
			}
		}
	}

	for o, owner := range owners {
		got, err := l.list(st, t.Context(), l.filter(owner, "", 100))

		ids, want := idsOf(got, l.id), l.want(all, o)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("the list of %v: %v %v, want %v", owner, ids, err, want)
		}
	}
}

// fill stores n records of each owner, in turns, and returns all of them, oldest first.
func (l listOf[T, F]) fill(t *testing.T, st store.Store, from, n int) []T {
	t.Helper()

	var all []T

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for i := from; i < from+n; i++ {
			for o, owner := range owners {
				record := l.make(i*len(owners)+o, owner)
				if err := l.put(tx, ctx, &record); err != nil {
					return err
				}

				all = append(all, record)
			}
		}

		return nil
	})

	return all
}

// want returns the ids of an owner's records that pass, newest first.
func (l listOf[T, F]) want(all []T, owner int, passes ...func(T) bool) []string {
	var ids []string

	for i, record := range all {
		refuses := func(passes func(T) bool) bool { return !passes(record) }
		if i%len(owners) == owner && !slices.ContainsFunc(passes, refuses) {
			ids = append(ids, l.id(record))
		}
	}

	slices.Reverse(ids)

	return ids
}

// single returns a put of one record from a put of several.
func single[T any](
	put func(tx store.Tx, ctx context.Context, records ...*T) error,
) func(tx store.Tx, ctx context.Context, record *T) error {
	return func(tx store.Tx, ctx context.Context, record *T) error { return put(tx, ctx, record) }
}

// rangeStart and rangeEnd bound the filters by time: exactly those of two records of the second owner.
var rangeStart, rangeEnd = timeAt(31), timeAt(79)

func inRange(at time.Time) bool { return !at.Before(rangeStart) && at.Before(rangeEnd) }

func hasPrefixFold(value, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(value), strings.ToLower(prefix))
}
