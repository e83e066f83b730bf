package storetest

// Lists: every filter against what a plain loop over the same records finds, pages whole while rows
// come in, and owners that never see each other.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Lists tests every list: its filters, its pages and its owners.
func Lists(t *testing.T, factory Factory) {
	t.Helper()
	run(t, factory, listTests())
}

func listTests() []testCase {
	var tests []testCase
	for _, l := range listSuites() {
		tests = append(tests,
			testCase{"List/" + l.name() + "/Filters", l.testFilters},
			testCase{"List/" + l.name() + "/Pages", l.testPages},
			testCase{"List/" + l.name() + "/Owners", l.testOwners},
		)
	}

	return append(
		tests, testCase{"List/Accounts", testAccounts}, testCase{"List/Keys", testKeys},
		testCase{"List/Balances", testBalances},
	)
}

// owners are two accounts in two modes, the first two differing in mode alone.
var owners = []event.Owner{
	{AccountID: "one"},
	{AccountID: "one", Livemode: true},
	{AccountID: "two", Livemode: true},
}

type listSuite interface {
	name() string
	testFilters(t *testing.T, st store.Store)
	testPages(t *testing.T, st store.Store)
	testOwners(t *testing.T, st store.Store)
}

// listOf is a list of records of one kind.
type listOf[T, F any] struct {
	kind string
	// make returns the n-th record of an owner. Its values repeat in ways that let every filter choose some.
	make func(n int, o event.Owner) T
	id   func(T) string
	put  func(ctx context.Context, tx store.Tx, record *T) error
	list func(ctx context.Context, st store.Reader, f F) ([]T, error)
	// one reads a record by its owner and id.
	one func(ctx context.Context, st store.Reader, o event.Owner, id string) (T, error)
	// filter returns the filter of a page of an owner without conditions.
	filter func(o event.Owner, after string, limit int) F
	// filters are conditions to add, each with what passes it.
	filters []filterCase[T, F]
}

type filterCase[T, F any] struct {
	name   string
	set    func(*F)
	passes func(T) bool
}

func (l listOf[T, F]) name() string { return l.kind }

// fill stores n records of each owner, in turns, and returns all of them, oldest first.
func (l listOf[T, F]) fill(t *testing.T, st store.Store, from, n int) []T {
	t.Helper()

	var all []T

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for i := from; i < from+n; i++ {
			for o, owner := range owners {
				record := l.make(i*len(owners)+o, owner)
				if err := l.put(ctx, tx, &record); err != nil {
					return err
				}

				all = append(all, record)
			}
		}

		return nil
	})

	return all
}

func (l listOf[T, F]) ids(records []T) []string {
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = l.id(r)
	}

	return ids
}

// want are the ids of an owner's records that pass, newest first.
func (l listOf[T, F]) want(all []T, owner int, passes ...func(T) bool) []string {
	var ids []string

	for i, r := range all {
		if i%len(owners) == owner &&
			!slices.ContainsFunc(passes, func(p func(T) bool) bool { return !p(r) }) {
			ids = append(ids, l.id(r))
		}
	}

	slices.Reverse(ids)

	return ids
}

// testFilters tries every filter alone and every pair of them, on one page and on pages of 7.
func (l listOf[T, F]) testFilters(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, 40)
	try := func(fs ...filterCase[T, F]) {
		t.Helper()

		name := "no filter"

		var passes []func(T) bool
		for i, x := range fs {
			passes = append(passes, x.passes)
			if name = x.name; i > 0 {
				name = fs[0].name + " and " + x.name
			}
		}

		want := l.want(all, 1, passes...)
		if len(fs) < 2 && (len(want) == 0 || len(fs) == 1 && len(want) == 40) {
			t.Fatalf("%s: the suite's own records do not try this filter: it keeps %d of 40", name, len(want))
		}

		page := func(after string, limit int) []string {
			t.Helper()

			f := l.filter(owners[1], after, limit)
			for _, x := range fs {
				x.set(&f)
			}

			got, err := l.list(t.Context(), st, f)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}

			return l.ids(got)
		}
		if got := page("", 100); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}

		if slices.ContainsFunc(fs, func(x filterCase[T, F]) bool { return x.name == "After" }) {
			return
		}

		const limit = 7
		for at, after := 0, ""; ; at += limit {
			got, rest := page(after, limit), want[min(at, len(want)):]
			if !slices.Equal(got, rest[:min(limit, len(rest))]) {
				t.Errorf(
					"%s: a page of %d after %q is %v, want the next of %v",
					name, limit, after, got, rest,
				)

				return
			}

			if len(got) < limit {
				return
			}

			after = got[limit-1]
		}
	}
	try()

	for i, a := range l.filters {
		try(a)

		for _, b := range l.filters[i+1:] {
			if filterField(a.name) != filterField(b.name) {
				try(a, b)
			}
		}
	}
}

// filterField is the field that a filter sets: the first word of its name.
func filterField(name string) string {
	field, _, _ := strings.Cut(name, " ")
	return field
}

// testPages reads all pages with limits 1 and 3, while a newer record comes in after each page:
// nothing that was there is missing or doubled.
func (l listOf[T, F]) testPages(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, 10)
	more := 10

	for _, limit := range []int{1, 3} {
		want := l.want(all, 1)

		var got []string

		for after := ""; ; {
			page, err := l.list(t.Context(), st, l.filter(owners[1], after, limit))
			if err != nil {
				t.Fatal(err)
			}

			if len(page) > limit {
				t.Fatalf("a page of limit %d has %d records", limit, len(page))
			}

			got = append(got, l.ids(page)...)
			if len(page) < limit || len(got) > len(want) {
				break
			}

			after = l.id(page[limit-1])
			all = append(all, l.fill(t, st, more, 1)...)
			more++
		}

		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", limit, got, want)
		}
	}
}

// testOwners asks for every record as every owner.
func (l listOf[T, F]) testOwners(t *testing.T, st store.Store) {
	all := l.fill(t, st, 0, 2)
	for i, r := range all {
		for o, owner := range owners {
			got, err := l.one(t.Context(), st, owner, l.id(r))
			switch {
			case i%len(owners) == o && (err != nil || l.id(got) != l.id(r)):
				t.Errorf("%s as its owner %v: %v %v", l.id(r), owner, got, err)
			case i%len(owners) != o && !errors.Is(err, fault.NotFound):
				t.Errorf("%s as %v, whose it is not: %v", l.id(r), owner, err)
			}
		}
	}

	for o, owner := range owners {
		got, err := l.list(t.Context(), st, l.filter(owner, "", 100))
		if want := l.want(all, o); err != nil || !slices.Equal(l.ids(got), want) {
			t.Errorf("the list of %v: %v %v, want %v", owner, l.ids(got), err, want)
		}
	}
}

// timeAt is the time of the n-th record.
func timeAt(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// cycle is the n-th of some values, in a row that has no common period with others of another length.
func cycle[V any](n int, values ...V) V {
	return values[(n/len(owners)*7+n/len(owners)/len(values))%len(values)]
}

func hasPrefixFold(q string) func(string) bool {
	return func(v string) bool { return strings.HasPrefix(strings.ToLower(v), strings.ToLower(q)) }
}

func listSuites() []listSuite {
	after, before := timeAt(30), timeAt(80)
	inside := func(at time.Time) bool { return !at.Before(after) && at.Before(before) }

	return []listSuite{
		listOf[invoice.Invoice, invoice.Filter]{
			kind: "Invoices",
			make: func(n int, o event.Owner) invoice.Invoice {
				i := invoice.Invoice{
					ID:            recordID(n),
					Owner:         o,
					CreatedAt:     timeAt(n),
					Status:        cycle(n, invoice.Open, invoice.Paid, invoice.Expired),
					OrderID:       cycle(n, "", "Order-1", "order-12", "Änder_%", "x"),
					CustomerEmail: fmt.Sprintf("Person%d@Example.com", n%7),
				}
				for _, network := range cycle(n, []string{"a"}, []string{"a", "b"}, []string{"b", "c", "b"}, nil) {
					i.Options = append(i.Options, invoice.Option{Network: network})
				}

				return i
			},
			id:  func(i invoice.Invoice) string { return i.ID },
			put: func(ctx context.Context, tx store.Tx, i *invoice.Invoice) error { return tx.PutInvoice(ctx, i) },
			list: func(ctx context.Context, st store.Reader, f invoice.Filter) ([]invoice.Invoice, error) {
				return st.Invoices(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (invoice.Invoice, error) {
				return st.Invoice(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) invoice.Filter {
				return invoice.Filter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[invoice.Invoice, invoice.Filter]{
				{
					"Statuses of one",
					func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid} },
					func(i invoice.Invoice) bool { return i.Status == invoice.Paid },
				},
				{
					"Statuses of two",
					func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid, invoice.Open} },
					func(i invoice.Invoice) bool { return i.Status != invoice.Expired },
				},
				{
					"OrderID",
					func(f *invoice.Filter) { f.OrderID = "Order-1" },
					func(i invoice.Invoice) bool { return i.OrderID == "Order-1" },
				},
				{
					"Networks of one",
					func(f *invoice.Filter) { f.Networks = []string{"b"} },
					func(i invoice.Invoice) bool { return onNetwork(i, "b") },
				},
				{
					"Networks of two",
					func(f *invoice.Filter) { f.Networks = []string{"a", "b"} },
					func(i invoice.Invoice) bool { return onNetwork(i, "a", "b") },
				},
				{
					"Q prefix of an order",
					func(f *invoice.Filter) { f.Q = "ORDER-1" },
					func(i invoice.Invoice) bool { return hasPrefixFold("order-1")(i.OrderID) },
				},
				{
					"Q with wildcards",
					func(f *invoice.Filter) { f.Q = "änder_%" },
					func(i invoice.Invoice) bool { return i.OrderID == "Änder_%" },
				},
				{
					"Q e-mail",
					func(f *invoice.Filter) { f.Q = "person3@example.com" },
					func(i invoice.Invoice) bool { return i.CustomerEmail == "Person3@Example.com" },
				},
				{
					"Q id",
					func(f *invoice.Filter) { f.Q = recordID(16) },
					func(i invoice.Invoice) bool { return i.ID == recordID(16) },
				},
				{
					"Created",
					func(f *invoice.Filter) { f.CreatedAfter, f.CreatedBefore = after, before },
					func(i invoice.Invoice) bool { return inside(i.CreatedAt) },
				},
				{
					"CreatedAfter alone",
					func(f *invoice.Filter) { f.CreatedAfter = timeAt(61) },
					func(i invoice.Invoice) bool { return !i.CreatedAt.Before(timeAt(61)) },
				},
				{
					"After",
					func(f *invoice.Filter) { f.After = recordID(61) },
					func(i invoice.Invoice) bool { return i.ID < recordID(61) },
				},
			},
		},
		listOf[invoice.Payment, invoice.PaymentFilter]{
			kind: "Payments",
			make: func(n int, o event.Owner) invoice.Payment {
				return invoice.Payment{
					ID:               recordID(n),
					Owner:            o,
					DetectedAt:       timeAt(n),
					Status:           cycle(n, invoice.Detected, invoice.Confirmed, invoice.Orphaned),
					Network:          cycle(n, "a", "b", "c"),
					TxHash:           fmt.Sprintf("0xAB%03d", n),
					Address:          chain.Address(cycle(n, "0xDEad", "0xDEaf", "bc1q")),
					InvoiceID:        cycle(n, "", "inv"),
					DepositAddressID: cycle(n, "dep", ""),
				}
			},
			id:  func(p invoice.Payment) string { return p.ID },
			put: func(ctx context.Context, tx store.Tx, p *invoice.Payment) error { return tx.PutPayments(ctx, p) },
			list: func(ctx context.Context, st store.Reader, f invoice.PaymentFilter) ([]invoice.Payment, error) {
				return st.Payments(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (invoice.Payment, error) {
				return st.Payment(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) invoice.PaymentFilter {
				return invoice.PaymentFilter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[invoice.Payment, invoice.PaymentFilter]{
				{
					"Statuses of one",
					func(f *invoice.PaymentFilter) { f.Statuses = []invoice.PaymentStatus{invoice.Confirmed} },
					func(p invoice.Payment) bool { return p.Status == invoice.Confirmed },
				},
				{
					"Statuses of two",
					func(f *invoice.PaymentFilter) {
						f.Statuses = []invoice.PaymentStatus{invoice.Confirmed, invoice.Orphaned}
					},
					func(p invoice.Payment) bool { return p.Status != invoice.Detected },
				},
				{
					"Networks of one",
					func(f *invoice.PaymentFilter) { f.Networks = []string{"a"} },
					func(p invoice.Payment) bool { return p.Network == "a" },
				},
				{
					"Networks of two",
					func(f *invoice.PaymentFilter) { f.Networks = []string{"a", "c"} },
					func(p invoice.Payment) bool { return p.Network != "b" },
				},
				{
					"InvoiceID",
					func(f *invoice.PaymentFilter) { f.InvoiceID = "inv" },
					func(p invoice.Payment) bool { return p.InvoiceID == "inv" },
				},
				{
					"DepositAddressID",
					func(f *invoice.PaymentFilter) { f.DepositAddressID = "dep" },
					func(p invoice.Payment) bool { return p.DepositAddressID == "dep" },
				},
				{
					"Q transaction",
					func(f *invoice.PaymentFilter) { f.Q = "0xab01" },
					func(p invoice.Payment) bool { return hasPrefixFold("0xab01")(p.TxHash) },
				},
				{
					"Q address",
					func(f *invoice.PaymentFilter) { f.Q = "0xdEA" },
					func(p invoice.Payment) bool { return hasPrefixFold("0xdea")(string(p.Address)) },
				},
				{
					"Q id",
					func(f *invoice.PaymentFilter) { f.Q = recordID(16) },
					func(p invoice.Payment) bool { return p.ID == recordID(16) },
				},
				{
					"Detected",
					func(f *invoice.PaymentFilter) { f.DetectedAfter, f.DetectedBefore = after, before },
					func(p invoice.Payment) bool { return inside(p.DetectedAt) },
				},
			},
		},
		listOf[invoice.DepositAddress, invoice.DepositFilter]{
			kind: "DepositAddresses",
			make: func(n int, o event.Owner) invoice.DepositAddress {
				return invoice.DepositAddress{
					ID:      recordID(n),
					Owner:   o,
					Status:  cycle(n, invoice.Active, invoice.Disabled, invoice.Active),
					Network: cycle(n, "a", "b", "c"),
					Name:    cycle(n, "Ann", "anna", "Bob", ""),
					Address: chain.Address(fmt.Sprintf("0xF%03d", n)),
				}
			},
			id: func(d invoice.DepositAddress) string { return d.ID },
			put: func(ctx context.Context, tx store.Tx, d *invoice.DepositAddress) error {
				return tx.PutDepositAddress(ctx, d)
			},
			list: func(
				ctx context.Context,
				st store.Reader,
				f invoice.DepositFilter,
			) ([]invoice.DepositAddress, error) {
				return st.DepositAddresses(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (invoice.DepositAddress, error) {
				return st.DepositAddress(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) invoice.DepositFilter {
				return invoice.DepositFilter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[invoice.DepositAddress, invoice.DepositFilter]{
				{
					"Statuses",
					func(f *invoice.DepositFilter) { f.Statuses = []invoice.DepositStatus{invoice.Disabled} },
					func(d invoice.DepositAddress) bool { return d.Status == invoice.Disabled },
				},
				{
					"Networks",
					func(f *invoice.DepositFilter) { f.Networks = []string{"a", "b"} },
					func(d invoice.DepositAddress) bool { return d.Network != "c" },
				},
				{
					"Q name",
					func(f *invoice.DepositFilter) { f.Q = "ANN" },
					func(d invoice.DepositAddress) bool { return hasPrefixFold("ann")(d.Name) },
				},
				{
					"Q address",
					func(f *invoice.DepositFilter) { f.Q = "0xf01" },
					func(d invoice.DepositAddress) bool { return hasPrefixFold("0xf01")(string(d.Address)) },
				},
				{
					"Q id",
					func(f *invoice.DepositFilter) { f.Q = recordID(16) },
					func(d invoice.DepositAddress) bool { return d.ID == recordID(16) },
				},
			},
		},
		listOf[settlement.Settlement, settlement.Filter]{
			kind: "Settlements",
			make: func(n int, o event.Owner) settlement.Settlement {
				return settlement.Settlement{
					ID:               recordID(n),
					Owner:            o,
					CreatedAt:        timeAt(n),
					Status:           cycle(n, settlement.Pending, settlement.Released, settlement.Failed),
					Network:          cycle(n, "a", "b", "c"),
					PaymentID:        cycle(n, "p", "q"),
					InvoiceID:        cycle(n, "", "inv"),
					DepositAddressID: cycle(n, "dep", ""),
				}
			},
			id: func(s settlement.Settlement) string { return s.ID },
			put: func(ctx context.Context, tx store.Tx, s *settlement.Settlement) error {
				return tx.PutSettlements(ctx, s)
			},
			list: func(ctx context.Context, st store.Reader, f settlement.Filter) ([]settlement.Settlement, error) {
				return st.Settlements(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (settlement.Settlement, error) {
				return st.Settlement(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) settlement.Filter {
				return settlement.Filter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[settlement.Settlement, settlement.Filter]{
				{
					"Statuses",
					func(f *settlement.Filter) {
						f.Statuses = []settlement.Status{
							settlement.Pending,
							settlement.Failed,
						}
					},
					func(s settlement.Settlement) bool { return s.Status != settlement.Released },
				},
				{
					"Networks",
					func(f *settlement.Filter) { f.Networks = []string{"b"} },
					func(s settlement.Settlement) bool { return s.Network == "b" },
				},
				{
					"PaymentID",
					func(f *settlement.Filter) { f.PaymentID = "p" },
					func(s settlement.Settlement) bool { return s.PaymentID == "p" },
				},
				{
					"InvoiceID",
					func(f *settlement.Filter) { f.InvoiceID = "inv" },
					func(s settlement.Settlement) bool { return s.InvoiceID == "inv" },
				},
				{
					"DepositAddressID",
					func(f *settlement.Filter) { f.DepositAddressID = "dep" },
					func(s settlement.Settlement) bool { return s.DepositAddressID == "dep" },
				},
				{
					"Created",
					func(f *settlement.Filter) { f.CreatedAfter, f.CreatedBefore = after, before },
					func(s settlement.Settlement) bool { return inside(s.CreatedAt) },
				},
			},
		},
		listOf[payout.Payout, payout.Filter]{
			kind: "Payouts",
			make: func(n int, o event.Owner) payout.Payout {
				return payout.Payout{
					ID:          recordID(n),
					Owner:       o,
					CreatedAt:   timeAt(n),
					Status:      cycle(n, payout.Pending, payout.Confirmed, payout.Failed),
					Network:     cycle(n, "a", "b", "c"),
					TxHash:      cycle(n, "", "0xAB1", "0xab2"),
					Destination: chain.Address(cycle(n, "0xDE1", "0xde2", "T9", "T8")),
				}
			},
			id:  func(p payout.Payout) string { return p.ID },
			put: func(ctx context.Context, tx store.Tx, p *payout.Payout) error { return tx.PutPayout(ctx, p) },
			list: func(ctx context.Context, st store.Reader, f payout.Filter) ([]payout.Payout, error) {
				return st.Payouts(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (payout.Payout, error) {
				return st.Payout(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) payout.Filter {
				return payout.Filter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[payout.Payout, payout.Filter]{
				{
					"Statuses of one",
					func(f *payout.Filter) { f.Statuses = []payout.Status{payout.Failed} },
					func(p payout.Payout) bool { return p.Status == payout.Failed },
				},
				{
					"Statuses of two",
					func(f *payout.Filter) { f.Statuses = []payout.Status{payout.Failed, payout.Pending} },
					func(p payout.Payout) bool { return p.Status != payout.Confirmed },
				},
				{
					"Networks",
					func(f *payout.Filter) { f.Networks = []string{"b", "c"} },
					func(p payout.Payout) bool { return p.Network != "a" },
				},
				{
					"Q transaction",
					func(f *payout.Filter) { f.Q = "0xab" },
					func(p payout.Payout) bool { return hasPrefixFold("0xab")(p.TxHash) },
				},
				{
					"Q destination",
					func(f *payout.Filter) { f.Q = "0xDE" },
					func(p payout.Payout) bool { return hasPrefixFold("0xde")(string(p.Destination)) },
				},
				{
					"Created",
					func(f *payout.Filter) { f.CreatedAfter, f.CreatedBefore = after, before },
					func(p payout.Payout) bool { return inside(p.CreatedAt) },
				},
			},
		},
		listOf[payout.Refund, payout.RefundFilter]{
			kind: "Refunds",
			make: func(n int, o event.Owner) payout.Refund {
				return payout.Refund{
					ID:        recordID(n),
					Owner:     o,
					CreatedAt: timeAt(n),
					Status:    cycle(n, payout.RefundPending, payout.RefundFailed, payout.RefundSucceeded),
					InvoiceID: cycle(n, "", "inv"),
					PaymentID: cycle(n, "p", "", "q"),
				}
			},
			id:  func(r payout.Refund) string { return r.ID },
			put: func(ctx context.Context, tx store.Tx, r *payout.Refund) error { return tx.PutRefund(ctx, r) },
			list: func(ctx context.Context, st store.Reader, f payout.RefundFilter) ([]payout.Refund, error) {
				return st.Refunds(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (payout.Refund, error) {
				return st.Refund(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) payout.RefundFilter {
				return payout.RefundFilter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[payout.Refund, payout.RefundFilter]{
				{
					"Statuses",
					func(f *payout.RefundFilter) {
						f.Statuses = []payout.RefundStatus{payout.RefundPending, payout.RefundFailed}
					},
					func(r payout.Refund) bool { return r.Status != payout.RefundSucceeded },
				},
				{
					"InvoiceID",
					func(f *payout.RefundFilter) { f.InvoiceID = "inv" },
					func(r payout.Refund) bool { return r.InvoiceID == "inv" },
				},
				{
					"PaymentID",
					func(f *payout.RefundFilter) { f.PaymentID = "p" },
					func(r payout.Refund) bool { return r.PaymentID == "p" },
				},
				{
					"Created",
					func(f *payout.RefundFilter) { f.CreatedAfter, f.CreatedBefore = after, before },
					func(r payout.Refund) bool { return inside(r.CreatedAt) },
				},
			},
		},
		listOf[event.Event, event.Filter]{
			kind: "Events",
			make: func(n int, o event.Owner) event.Event {
				return event.Event{
					ID:        "evt_" + recordID(n),
					Owner:     o,
					CreatedAt: timeAt(n),
					Type:      cycle(n, event.InvoicePaid, event.InvoiceExpired, event.Ping),
					ObjectID:  cycle(n, "x", "y"),
				}
			},
			id:  func(e event.Event) string { return e.ID },
			put: func(ctx context.Context, tx store.Tx, e *event.Event) error { return tx.AppendEvents(ctx, *e) },
			list: func(ctx context.Context, st store.Reader, f event.Filter) ([]event.Event, error) {
				return st.Events(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (event.Event, error) {
				return st.Event(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) event.Filter {
				return event.Filter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[event.Event, event.Filter]{
				{
					"Types of one",
					func(f *event.Filter) { f.Types = []event.Type{event.Ping} },
					func(e event.Event) bool { return e.Type == event.Ping },
				},
				{
					"Types of two",
					func(f *event.Filter) { f.Types = []event.Type{event.Ping, event.InvoicePaid} },
					func(e event.Event) bool { return e.Type != event.InvoiceExpired },
				},
				{
					"ObjectID",
					func(f *event.Filter) { f.ObjectID = "x" },
					func(e event.Event) bool { return e.ObjectID == "x" },
				},
				{
					"Created",
					func(f *event.Filter) { f.CreatedAfter, f.CreatedBefore = after, before },
					func(e event.Event) bool { return inside(e.CreatedAt) },
				},
			},
		},
		listOf[webhook.Endpoint, webhook.EndpointFilter]{
			kind: "WebhookEndpoints",
			make: func(n int, o event.Owner) webhook.Endpoint {
				return webhook.Endpoint{ID: recordID(n), Owner: o, CreatedAt: timeAt(n)}
			},
			id:  func(e webhook.Endpoint) string { return e.ID },
			put: func(ctx context.Context, tx store.Tx, e *webhook.Endpoint) error { return tx.PutEndpoint(ctx, e) },
			list: func(ctx context.Context, st store.Reader, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
				return st.WebhookEndpoints(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (webhook.Endpoint, error) {
				return st.WebhookEndpoint(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) webhook.EndpointFilter {
				return webhook.EndpointFilter{Owner: o, After: after, Limit: limit}
			},
		},
		listOf[webhook.Delivery, webhook.DeliveryFilter]{
			kind: "Deliveries",
			make: func(n int, o event.Owner) webhook.Delivery {
				return webhook.Delivery{
					ID:        recordID(n),
					Owner:     o,
					CreatedAt: timeAt(n),
					Status: cycle(
						n, webhook.DeliveryPending, webhook.DeliveryFailed,
						webhook.DeliverySucceeded,
					),
					EventID:    cycle(n, "x", "y"),
					EndpointID: cycle(n, "e", "f", "g"),
				}
			},
			id:  func(d webhook.Delivery) string { return d.ID },
			put: func(ctx context.Context, tx store.Tx, d *webhook.Delivery) error { return tx.PutDeliveries(ctx, d) },
			list: func(ctx context.Context, st store.Reader, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
				return st.Deliveries(ctx, f)
			},
			one: func(ctx context.Context, st store.Reader, o event.Owner, id string) (webhook.Delivery, error) {
				return st.Delivery(ctx, o, id)
			},
			filter: func(o event.Owner, after string, limit int) webhook.DeliveryFilter {
				return webhook.DeliveryFilter{Owner: o, After: after, Limit: limit}
			},
			filters: []filterCase[webhook.Delivery, webhook.DeliveryFilter]{
				{
					"EventID",
					func(f *webhook.DeliveryFilter) { f.EventID = "x" },
					func(d webhook.Delivery) bool { return d.EventID == "x" },
				},
				{
					"EndpointID",
					func(f *webhook.DeliveryFilter) { f.EndpointID = "f" },
					func(d webhook.Delivery) bool { return d.EndpointID == "f" },
				},
				{
					"Statuses",
					func(f *webhook.DeliveryFilter) {
						f.Statuses = []webhook.DeliveryStatus{webhook.DeliveryPending, webhook.DeliveryFailed}
					},
					func(d webhook.Delivery) bool { return d.Status != webhook.DeliverySucceeded },
				},
			},
		},
	}
}

func onNetwork(i invoice.Invoice, networks ...string) bool {
	return slices.ContainsFunc(
		i.Options, func(o invoice.Option) bool { return slices.Contains(networks, o.Network) },
	)
}

func testAccounts(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 5 {
			if err := tx.PutAccount(ctx, &account.Account{ID: recordID(n), Index: uint32(n)}); err != nil {
				return err
			}
		}

		return nil
	})

	first, err := st.Accounts(t.Context(), "", 3)
	if err != nil || len(first) != 3 || first[0].ID != recordID(4) || first[2].ID != recordID(2) {
		t.Fatalf("the first page: %+v %v", first, err)
	}

	rest, err := st.Accounts(t.Context(), first[2].ID, 3)
	if err != nil || len(rest) != 2 || rest[1].ID != recordID(0) {
		t.Fatalf("the rest: %+v %v", rest, err)
	}

	for what, read := range map[string]func() error{
		"Account":            func() error { _, err := st.Account(t.Context(), "none"); return err },
		"InvoiceSettings":    func() error { _, err := st.InvoiceSettings(t.Context(), "none"); return err },
		"SettlementSettings": func() error { _, err := st.SettlementSettings(t.Context(), "none"); return err },
		"PayoutSettings":     func() error { _, err := st.PayoutSettings(t.Context(), "none"); return err },
	} {
		if err := read(); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s of an unknown account answered %v", what, err)
		}
	}

	s, err := st.SettlementSettings(t.Context(), recordID(3))
	if err != nil || s.FeeBPS != 50 || !s.AutoRelease || s.Index != 3 {
		t.Errorf("the settlement settings of an account that chose nothing: %+v %v", s, err)
	}

	p, err := st.PayoutSettings(t.Context(), recordID(3))
	if err != nil || p.PerHour != 10 || p.Index != 3 || p.Assets != nil {
		t.Errorf("the payout settings of an account that chose nothing: %+v %v", p, err)
	}
}

func testKeys(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n := range 6 {
			k := account.Key{ID: recordID(n), Owner: owners[n%3], Hash: [32]byte{byte(n)}}
			if err := tx.PutKey(ctx, &k); err != nil {
				return err
			}
		}

		return nil
	})

	all, err := st.Keys(t.Context(), "one")
	if err != nil || len(all) != 4 || all[0].ID != recordID(4) || all[3].ID != recordID(0) {
		t.Errorf("the keys of an account, newest first, of both modes: %+v %v", all, err)
	}
}

func testBalances(t *testing.T, st store.Store) {
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for n, owner := range []event.Owner{
			owners[0],
			owners[1],
			owners[0],
			owners[0],
			owners[2],
		} {
			b := wallet.Balance{
				Network: cycle(n*3, "b", "a"),
				Address: chain.Address(fmt.Sprint(n)),
				AssetID: fmt.Sprint("s", 9-n),
				Owner:   owner,
			}
			if err := tx.PutBalance(ctx, &b); err != nil {
				return err
			}
		}

		return nil
	})

	got, err := st.Balances(t.Context(), owners[0])
	if err != nil || len(got) != 3 {
		t.Fatalf("the balances of an owner: %+v %v", got, err)
	}

	if !slices.IsSortedFunc(got, func(a, b wallet.Balance) int {
		return strings.Compare(a.Network+"\x00"+a.AssetID, b.Network+"\x00"+b.AssetID)
	}) {
		t.Errorf("the balances of an owner are not in the order of network and asset: %+v", got)
	}

	a, err := st.BalancesOf(t.Context(), "a")

	b, err2 := st.BalancesOf(t.Context(), "b")
	if err := errors.Join(
		err, err2,
	); err != nil || len(a)+len(b) != 5 || len(a) == 0 ||
		slices.ContainsFunc(a, func(x wallet.Balance) bool { return x.Network != "a" }) {
		t.Errorf("the balances of networks: %+v %+v %v", a, b, err)
	}
}
