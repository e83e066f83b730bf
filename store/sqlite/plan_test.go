package sqlite_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/webhook"
)

// fullScan is a plan's line that reads a whole table: SCAN without an index. Scans of an index in
// order are pages.
var fullScan = regexp.MustCompile(`^SCAN payments_\w+$|^SCAN [a-z]$`)

// TestPlans asks SQLite how it runs every query: none reads a whole table, and none sorts but those
// allowed to.
func TestPlans(t *testing.T) {
	db, r := host(t)

	st := sqlite.New(db)
	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}

	r.Take()

	for _, q := range sqltest.Queries() {
		if err := q.Run(t.Context(), st); err != nil {
			t.Errorf("%s: %v", q.Name, err)
			continue
		}

		statements, _, _ := r.Take()
		asked := 0

		for _, s := range statements {
			if !strings.HasPrefix(s.Text, "SELECT") && !strings.HasPrefix(s.Text, "WITH") &&
				!strings.HasPrefix(s.Text, "DELETE") &&
				!strings.HasPrefix(s.Text, "UPDATE payments_deliveries") {
				continue
			}

			asked++

			rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.Text, s.Args...)
			if err != nil {
				t.Fatalf("%s: %v", s.Text, err)
			}

			var plan []string

			for rows.Next() {
				var (
					id, parent, unused int
					line               string
				)
				if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
					t.Fatal(err)
				}

				plan = append(plan, line)
			}

			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}

			_ = rows.Close()
			// Of several statuses each is a branch that is read in order and cut to a page; SQLite
			// sorts that page again.
			branches := slices.Contains(plan, "CO-ROUTINE branch")
			for _, line := range plan {
				// e is the list of endpoints in the claim of deliveries, as long as there are such.
				if fullScan.MatchString(line) && line != "SCAN e" && line != "SCAN branch" ||
					!q.Sorts && !branches && strings.Contains(line, "TEMP B-TREE") {
					t.Errorf("%s: %s\nplan: %s", q.Name, s.Text, strings.Join(plan, "\n      "))
					break
				}
			}
		}

		if asked == 0 {
			t.Errorf("%s asked nothing", q.Name)
		}

		r.Take()
	}
}

// TestCreateIsOneCommit counts what a creation costs.
func TestCreateIsOneCommit(t *testing.T) {
	db, r := host(t)
	st := sqlite.New(db)

	create := func(id string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			inv := invoice.Invoice{ID: id, Options: []invoice.Option{{Network: "a"}}}
			if err := tx.PutInvoice(ctx, &inv); err != nil {
				return err
			}

			if err := tx.PutAddress(
				ctx, invoice.Address{Space: chain.Space{Family: "f"}, Address: chain.Address(id)},
			); err != nil {
				return err
			}

			inv.Sequence++
			if err := tx.PutInvoice(ctx, &inv); err != nil { // a second put costs nothing
				return err
			}

			if _, err := tx.InvoiceByID(ctx, id); err != nil { // nor does reading it
				return err
			}

			if err := tx.PutEvents(
				ctx, event.Event{ID: "evt_" + id, CreatedAt: time.Unix(1, 0)},
			); err != nil {
				return err
			}

			return tx.PutDeliveries(ctx, &webhook.Delivery{ID: id})
		})
	}
	if err := create("warm"); err != nil {
		t.Fatal(err)
	}

	r.Take()

	if err := create("x"); err != nil {
		t.Fatal(err)
	}

	statements, begins, commits := r.Take()
	// The invoice, its network, the address, the event and the delivery.
	if begins != 1 || commits != 1 || len(statements) != 5 {
		t.Errorf("%d begins, %d commits, %d statements: %v", begins, commits, len(statements), statements)
	}
}
