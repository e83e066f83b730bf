package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// searchRecords is how many invoices searches choose from, and searchOld how many of the oldest have orders that begin
// alike: a store may look for few matches, for many among the newest, and for many of long ago in different ways.
const searchRecords, searchOld = 2600, 600

// testSearches lists searches of many invoices, and compares each page with a plain loop over them.
func testSearches(t *testing.T, st store.Store) {
	all := fillSearches(t, st)

	for _, text := range []string{"OLD-", "old-03", "old-0300", "even", recordID(0)[:20], "none"} {
		for name, set := range map[string]func(*invoice.Filter){
			"alone":       func(*invoice.Filter) {},
			"after":       func(f *invoice.Filter) { f.After = recordID(400) },
			"status":      func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid} },
			"statuses":    func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid, invoice.Expired} },
			"order":       func(f *invoice.Filter) { f.OrderID = "Old-0300" },
			"network":     func(f *invoice.Filter) { f.Networks = []string{"b"} },
			"created":     func(f *invoice.Filter) { f.CreatedAfter, f.CreatedBefore = timeAt(100), timeAt(2400) },
			"of long ago": func(f *invoice.Filter) { f.CreatedBefore = timeAt(500) },
		} {
			for _, limit := range []int{0, 1, 50} {
				f := invoice.Filter{Owner: owners[0], Q: text, Limit: limit}
				set(&f)

				var want []string

				for _, inv := range slices.Backward(all) {
					if searchFinds(f, inv) && (limit == 0 || len(want) < limit) {
						want = append(want, inv.ID)
					}
				}

				got, err := st.Invoices(t.Context(), f)
				if ids := idsOf(got, invoiceList.id); err != nil || !slices.Equal(ids, want) {
					t.Errorf(
						"%q %s, limit %d: %d invoices (%v), want %d",
						text, name, limit, len(ids), err, len(want),
					)
				}
			}
		}
	}
}

// fillSearches stores the invoices that searches choose from, and returns them, oldest first. Others are of another
// owner.
func fillSearches(t *testing.T, st store.Store) (all []invoice.Invoice) {
	t.Helper()

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		all = nil

		for n := range searchRecords {
			inv := invoice.Invoice{
				ID:            recordID(n),
				Owner:         owners[0],
				CreatedAt:     timeAt(n),
				Status:        cycle(n, invoice.Open, invoice.Paid, invoice.Expired),
				CustomerEmail: cycle(n, "Even@example.com", "odd@example.com"),
				Options:       []invoice.Option{{Network: cycle(n, "a", "b", "c")}},
			}

			if n < searchOld {
				inv.OrderID = fmt.Sprintf("Old-%04d", n)
			}

			if n%7 == 6 {
				inv.Owner = owners[1]
			} else {
				all = append(all, inv)
			}

			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}
		}

		return nil
	})

	return all
}

// searchFinds reports whether an invoice is what a filter selects.
func searchFinds(f invoice.Filter, inv invoice.Invoice) bool {
	text := strings.ToLower(f.Q)
	begins := strings.HasPrefix(inv.ID, text) || hasPrefixFold(inv.OrderID, text) ||
		hasPrefixFold(inv.CustomerEmail, text)

	return begins &&
		(f.After == "" || inv.ID < f.After) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, inv.Status)) &&
		(f.OrderID == "" || inv.OrderID == f.OrderID) &&
		(len(f.Networks) == 0 || onNetwork(inv, f.Networks...)) &&
		(f.CreatedAfter.IsZero() || !inv.CreatedAt.Before(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || inv.CreatedAt.Before(f.CreatedBefore))
}
