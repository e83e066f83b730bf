package sqltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// compared is how many invoices CompareLists makes: more than a search looks at before it uses the indexes.
const compared = 1200

// CompareLists makes the same invoices in a store and in memory, some with ids that say another time than that of their
// creation, and compares pages of both by random filters.
func CompareLists(t *testing.T, st store.Store) {
	t.Helper()

	random, reference := rand.New(rand.NewPCG(1, 2)), memory.New()
	all := make([]invoice.Invoice, compared)

	for i := range all {
		all[i] = comparedInvoice(random, i)
	}

	for _, to := range []store.Store{st, reference} {
		if err := to.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			for i := range all {
				inv := all[i]
				if err := tx.PutInvoice(ctx, &inv); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	for range 300 {
		f := comparedFilter(random, all)

		got, err := st.Invoices(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}

		want, err := reference.Invoices(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}

		if !slices.Equal(idsOf(got), idsOf(want)) {
			t.Fatalf("%+v:\nlists %v,\nwant  %v", f, idsOf(got), idsOf(want))
		}
	}
}

// comparedSince is when the first of the invoices was made; each of the others a second later.
var comparedSince = time.Unix(1_800_000_000, 0).UTC()

var comparedOwner = event.Owner{AccountID: "a"}

// comparedInvoice returns the n-th invoice.
func comparedInvoice(random *rand.Rand, n int) invoice.Invoice {
	created := comparedSince.Add(time.Duration(n) * time.Second)
	said := created.Add(
		time.Duration(random.IntN(5000)-1000) * time.Millisecond,
	) // some are off by more than 2 s

	inv := invoice.Invoice{
		ID:            fmt.Sprintf("%012x%012x", said.UnixMilli(), n),
		Owner:         comparedOwner,
		Number:        int64(n),
		Status:        []invoice.Status{invoice.Open, invoice.Paid, invoice.Expired}[random.IntN(3)],
		OrderID:       fmt.Sprintf("%s-%d", []string{"Order", "Rare", "Other"}[min(random.IntN(40), 2)], n),
		CustomerEmail: fmt.Sprintf("customer%d@example.com", n),
		CreatedAt:     created,
		Options:       []invoice.Option{{ID: "o", Network: []string{"x", "y"}[n%2]}},
	}

	switch random.IntN(20) {
	case 0: // the clock was set back
		inv.ID = fmt.Sprintf("%012x%012x", said.Add(time.Hour).UnixMilli(), n)
	case 1: // of another kind
		inv.ID = fmt.Sprintf("inv_%d", n)
	case 2:
		inv.Owner.Livemode = true
	}

	return inv
}

// comparedFilter returns a filter by some of the fields.
func comparedFilter(random *rand.Rand, all []invoice.Invoice) invoice.Filter {
	f := invoice.Filter{Owner: comparedOwner, Limit: 1 + random.IntN(60)}
	maybe := func(set func()) {
		if random.IntN(3) == 0 {
			set()
		}
	}
	at := func() time.Time {
		return comparedSince.Add(time.Duration(random.IntN(compared*1000)) * time.Millisecond)
	}

	maybe(func() { f.Statuses = []invoice.Status{invoice.Paid} })
	maybe(func() { f.Statuses = []invoice.Status{invoice.Paid, invoice.Open} })
	maybe(func() { f.Networks = []string{"x"} })
	maybe(func() { f.CreatedAfter = at() })
	maybe(func() { f.CreatedBefore = at() })
	maybe(func() { f.After = all[random.IntN(len(all))].ID })
	maybe(func() {
		f.Q = []string{"order-", "OTHER-1", "rare", "customer11", "order-12", "inv_", "none"}[random.IntN(7)]
	})

	return f
}

func idsOf(all []invoice.Invoice) []string {
	ids := make([]string, len(all))
	for i, inv := range all {
		ids[i] = inv.ID
	}

	return ids
}
