package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/bench"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// few is the number of invoices that lists of many are compared with.
const few = 10_000

// many is the number of invoices of a full database: PAYMENTS_BENCH_ROWS, or a million.
func many(b *testing.B) int {
	b.Helper()

	text := os.Getenv("PAYMENTS_BENCH_ROWS")
	if text == "" {
		return 1_000_000
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}

	return n
}

// BenchmarkCreateInProcess compares Invoices.Create with one-row inserts of pgbench, in an empty database and beside
// many invoices.
func BenchmarkCreateInProcess(b *testing.B) {
	empty, full := newBeside(b), newBeside(b)

	full.fill(b, many(b))

	for _, at := range []int{8, 32} {
		b.Run(fmt.Sprintf("c=%d", at), func(b *testing.B) {
			compare(b, at, []side{
				{name: "pgbench, inserts", perSecond: pgbench(empty.dsn)},
				{
					name:      "Invoices.Create",
					perSecond: empty.running(empty.perSecond(empty.createInProcess)),
					goal:      .45,
				},
			})
		})
		b.Run(fmt.Sprintf("full,c=%d", at), func(b *testing.B) {
			compare(b, at, []side{
				{name: "Invoices.Create, empty", perSecond: empty.perSecond(empty.createInProcess)},
				{
					name:      fmt.Sprintf("beside %d invoices", many(b)),
					perSecond: full.perSecond(full.createInProcess),
					goal:      .95,
				},
			})
		})
	}
}

// BenchmarkLists compares pages of 50 of many invoices with the same pages of few: first and last, by each filter.
func BenchmarkLists(b *testing.B) {
	small, large := newBeside(b), newBeside(b)

	small.fill(b, few)
	large.fill(b, many(b))

	last := filledID(51)
	filters := []struct {
		name   string
		filter invoice.Filter
	}{
		{name: "first"},
		{name: "last", filter: invoice.Filter{After: last}},
		{name: "status, first", filter: invoice.Filter{Statuses: []invoice.Status{invoice.Paid}}},
		{
			name:   "status, last",
			filter: invoice.Filter{Statuses: []invoice.Status{invoice.Paid}, After: filledID(9_999)},
		},
		{
			name:   "two statuses",
			filter: invoice.Filter{Statuses: []invoice.Status{invoice.Paid, invoice.Open}},
		},
		{name: "network, first", filter: invoice.Filter{Networks: []string{small.network}}},
		{name: "network, last", filter: invoice.Filter{Networks: []string{small.network}, After: last}},
		{name: "order id", filter: invoice.Filter{OrderID: "order-77"}},
		{name: "search, a ninth", filter: invoice.Filter{Q: "order-7"}},
		{name: "search, all", filter: invoice.Filter{Q: "order-"}},
		{name: "search, few", filter: invoice.Filter{Q: "order-7777"}},
		{name: "created before, last", filter: invoice.Filter{CreatedBefore: filledAt.Add(51 * time.Second)}},
	}

	for _, f := range filters {
		b.Run(strings.ReplaceAll(f.name, " ", "_"), func(b *testing.B) {
			compare(b, 1, []side{
				{
					name:      fmt.Sprintf("%s of %d", f.name, few),
					perSecond: small.perSecond(small.page(f.filter)),
				},
				{
					name:      fmt.Sprintf("%s of %d", f.name, many(b)),
					perSecond: large.perSecond(large.page(f.filter)),
					goal:      1 / 1.2,
				},
			})
		})
	}
}

// BenchmarkColdStart measures how long a store in a SQLite file, whose schema is there, takes to its first answer.
func BenchmarkColdStart(b *testing.B) {
	file := filepath.Join(b.TempDir(), "payments.db")
	ask := func() error {
		st, err := sqlite.Open(file)
		if err != nil {
			return err
		}

		_, err = st.Accounts(b.Context(), "", 1)

		return errors.Join(err, st.Close())
	}

	if err := ask(); err != nil {
		b.Fatal(err)
	}

	var took []float64

	for b.Loop() {
		for range turns {
			began := time.Now()

			if err := ask(); err != nil {
				b.Fatal(err)
			}

			took = append(took, float64(time.Since(began).Microseconds())/1000)
		}
	}

	fmt.Printf("cold start of SQLite %27.1f ms   goal 100\n", bench.Median(took))
	b.ReportMetric(0, "ns/op")
}

// beside is a shop whose database pgbench uses as well.
type beside struct {
	*shop
	dsn string
}

func newBeside(b *testing.B) beside {
	b.Helper()

	dsn, db := benchDatabase(b)

	return beside{newShop(b, db), dsn}
}

// createInProcess orders an invoice without HTTP.
func (s *shop) createInProcess() error {
	n := s.orders.Add(1)
	_, err := s.engine.Invoices.Create(context.Background(), invoice.CreateParams{
		Owner:         event.Owner{AccountID: s.account},
		Price:         &invoice.Price{Currency: "USD", Amount: "25.00"},
		Options:       []invoice.OptionParams{{Asset: "USDX", Network: s.network}},
		OrderID:       fmt.Sprintf("order-%d", n),
		CustomerEmail: fmt.Sprintf("customer%d@example.com", n),
		Metadata:      map[string]string{"cart": "1234"},
	})

	return err
}

// page lists one page.
func (s *shop) page(f invoice.Filter) func() error {
	f.Owner, f.Limit = event.Owner{AccountID: s.account}, 50

	return func() error {
		_, _, err := s.engine.Invoices.List(context.Background(), f)
		return err
	}
}

// filledAt is when the first of the invoices of fill was made; each of the others a second later.
var filledAt = time.Unix(1_000_000_000, 0).UTC()

// filledID is the id of the n-th invoice of fill: they lie before those that are made now.
func filledID(n int) string { return fmt.Sprintf("00%022x", n) }

// fill makes n invoices of the shop in the database, as copies of one. One in a hundred is paid.
func (s *shop) fill(b *testing.B, n int) {
	b.Helper()

	// With two options none has an address yet: a copied address would not be verified.
	if _, err := s.engine.Invoices.Create(b.Context(), invoice.CreateParams{
		Owner: event.Owner{AccountID: s.account},
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},
		Options: []invoice.OptionParams{
			{Asset: "USDX", Network: s.network},
			{Asset: "SIM", Network: s.network},
		},
		OrderID:       "order",
		CustomerEmail: "customer@example.com",
	}); err != nil {
		b.Fatal(err)
	}

	different := map[string]string{
		"id":         "'00' || lpad(to_hex(n), 22, '0')",
		"number":     "n",
		"status":     "CASE WHEN n % 100 = 0 THEN 'paid' ELSE 'open' END",
		"order_id":   "'order-' || n",
		"q_order":    "'order-' || n",
		"q_email":    "'customer' || n || '@example.com'",
		"created_at": fmt.Sprintf("to_timestamp(%d + n)", filledAt.Unix()),
		"due_at":     "i.due_at + interval '1 year'",
	}
	columns := columnsOf(b, s.db, "payments_invoices")
	values := make([]string, len(columns))

	for i, c := range columns {
		values[i] = "i." + c
		if v, ok := different[c]; ok {
			values[i] = v
		}
	}

	for _, statement := range []string{
		fmt.Sprintf(
			"INSERT INTO payments_invoices (%s) SELECT %s FROM (SELECT * FROM payments_invoices LIMIT 1) i, "+
				"generate_series(1, %d) n",
			strings.Join(columns, ", "), strings.Join(values, ", "), n,
		),
		fmt.Sprintf(
			"INSERT INTO payments_invoice_networks (account_id, livemode, network, invoice_id) "+
				"SELECT i.account_id, i.livemode, i.network, '00' || lpad(to_hex(n), 22, '0') "+
				"FROM (SELECT * FROM payments_invoice_networks LIMIT 1) i, generate_series(1, %d) n", n,
		),
		"VACUUM (ANALYZE) payments_invoices, payments_invoice_networks",
	} {
		if _, err := s.db.ExecContext(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
}

// columnsOf returns the columns of a table.
func columnsOf(b *testing.B, db *sql.DB, table string) (columns []string) {
	b.Helper()

	rows, err := db.QueryContext(
		b.Context(),
		"SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
		table,
	)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			b.Fatal(err)
		}

		columns = append(columns, c)
	}

	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}

	return columns
}
