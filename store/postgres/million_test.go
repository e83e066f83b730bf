package postgres_test

// This file lists a million invoices: a page costs what it shows, wherever it lies.

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

const million = 1_000_000

// millionID is the id of the n-th invoice.
func millionID(n int) string { return fmt.Sprintf("%024x", n) }

// fillMillion puts one invoice by the store and copies it in the database, with what distinguishes
// invoices. One in two hundred is paid, as many are refunded, one in ten takes payments on the network
// "rare" as well.
func fillMillion(t *testing.T, db *sql.DB, st store.Store, owner event.Owner) {
	t.Helper()

	pattern := invoice.Invoice{
		ID:        millionID(0),
		Owner:     owner,
		Status:    invoice.Paid,
		Currency:  "EUR",
		Kind:      invoice.Fiat,
		CreatedAt: time.Unix(1e9, 0),
		DueAt:     time.Unix(2e9, 0),
		Metadata:  map[string]string{"cart": "1234"},
		Options:   []invoice.Option{{ID: "o", Network: "ethereum", Asset: "ETH"}},
	}

	if err := st.Update(
		t.Context(),
		func(ctx context.Context, tx store.Tx) error { return tx.PutInvoice(ctx, &pattern) },
	); err != nil {
		t.Fatal(err)
	}

	different := map[string]string{
		"id":         "lpad(to_hex(n), 24, '0')",
		"number":     "n",
		"status":     "CASE WHEN n % 200 = 0 THEN 'paid' WHEN n % 100 = 0 THEN 'refunded' ELSE 'open' END",
		"order_id":   "'Order-' || n",
		"q_order":    "'order-' || n",
		"created_at": "i.created_at + n * interval '1 second'",
		"due_at":     "i.due_at + n * interval '1 second'",
	}

	rows, err := db.QueryContext(
		t.Context(),
		"SELECT column_name FROM information_schema.columns WHERE table_name = 'payments_invoices' ORDER "+
			"BY ordinal_position",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	var columns, values []string

	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			t.Fatal(err)
		}

		v, ok := different[c]
		if !ok {
			v = "i." + c
		}

		columns, values = append(columns, c), append(values, v)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	// Indexes are made in one go afterwards, which is faster.
	drop, create := indexes(t, db)

	statements := append(
		drop,
		fmt.Sprintf(
			"INSERT INTO payments_invoices (%s) SELECT %s FROM payments_invoices i, generate_series(1, %d) n",
			strings.Join(columns, ", "), strings.Join(values, ", "), million-1,
		),
		fmt.Sprintf(
			"INSERT INTO payments_invoice_networks (account_id, livemode, network, invoice_id) SELECT "+
				"account_id, livemode, 'ethereum', lpad(to_hex(n), 24, '0') FROM "+
				"payments_invoice_networks, generate_series(1, %d) n",
			million-1,
		),
		"INSERT INTO payments_invoice_networks (account_id, livemode, network, invoice_id) SELECT "+
			"account_id, livemode, 'rare', id FROM payments_invoices WHERE number % 10 = 0",
	)
	for _, statement := range append(append(statements, create...), "VACUUM (ANALYZE) payments_invoices, "+
		"payments_invoice_networks") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// indexes returns the statements that drop the secondary indexes of the two tables, and that make them again.
func indexes(t *testing.T, db *sql.DB) (drop, create []string) {
	t.Helper()

	rows, err := db.QueryContext(
		t.Context(),
		"SELECT indexname, indexdef FROM pg_indexes WHERE tablename IN ('payments_invoices', "+
			"'payments_invoice_networks') AND indexname NOT LIKE '%_pkey'",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			t.Fatal(err)
		}

		drop, create = append(drop, "DROP INDEX "+name), append(create, definition)
	}

	if err := rows.Err(); err != nil || len(drop) == 0 {
		t.Fatalf("%d indexes (%v)", len(drop), err)
	}

	return drop, create
}

func TestMillionInvoices(t *testing.T) {
	r := &recorder{}
	db := database(t, 2, func(c *pgx.ConnConfig) { c.Tracer = r })
	st := open(t, db, "")
	owner := event.Owner{AccountID: "acc", Livemode: true}
	fillMillion(t, db, st, owner)

	const page = 50

	for _, c := range []struct {
		name   string
		filter invoice.Filter
		step   int // the matching invoices are this far apart, from number 0
	}{
		{"all", invoice.Filter{}, 1},
		{"paid", invoice.Filter{Statuses: []invoice.Status{invoice.Paid}}, 200},
		{"paid or refunded", invoice.Filter{Statuses: []invoice.Status{invoice.Paid, invoice.Refunded}}, 100},
		{
			"all statuses",
			invoice.Filter{Statuses: []invoice.Status{invoice.Paid, invoice.Refunded, invoice.Open, invoice.Expired}},
			1,
		},
		{"one network", invoice.Filter{Networks: []string{"rare"}}, 10},
		{"two networks", invoice.Filter{Networks: []string{"ethereum", "rare"}}, 1},
	} {
		var costs []cost

		for _, place := range []struct {
			name string
			from int // the highest number on the page
		}{{"first", million - c.step}, {"middle", million / 2}, {"last", (page - 1) * c.step}} {
			f := c.filter

			f.Owner, f.Limit = owner, page
			if place.name != "first" {
				f.After = millionID(place.from + 1)
			}

			r.reset()

			all, err := st.Invoices(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}

			asked := r.statements()
			if len(asked) != 1 {
				t.Errorf("%s, %s page: %d statements, want 1", c.name, place.name, len(asked))
			}

			if len(all) != page || all[0].ID != millionID(place.from) ||
				all[page-1].ID != millionID(place.from-(page-1)*c.step) {
				t.Errorf("%s, %s page: %d invoices", c.name, place.name, len(all))
			}
			// A driver's statement is prepared: the database may plan it for these values or once for all.
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				k := explainCost(t, db, asked[0], mode)
				t.Logf(
					"%s, %s page, %s: %d rows read, %d buffers, %s",
					c.name, place.name, mode, k.rows, k.buffers, strings.Join(k.nodes, " < "),
				)

				for _, node := range k.nodes {
					if strings.Contains(node, "Sort") || node == "Seq Scan" ||
						strings.HasPrefix(node, "Bitmap") {
						t.Errorf("%s, %s page, %s: the plan has a %s", c.name, place.name, mode, node)
					}
				}

				costs = append(costs, k)
			}
		}

		least, most := costs[0], costs[0]
		for _, k := range costs {
			least.rows, most.rows = min(least.rows, k.rows), max(most.rows, k.rows)
			least.buffers, most.buffers = min(least.buffers, k.buffers), max(most.buffers, k.buffers)
		}

		if most.rows > least.rows+page || most.rows > 4*page {
			t.Errorf("%s: a page reads %d to %d rows", c.name, least.rows, most.rows)
		}

		if most.buffers > 2*least.buffers+20 || most.buffers > 12*page {
			t.Errorf("%s: a page takes %d to %d buffers", c.name, least.buffers, most.buffers)
		}
	}

	testSearches(t, db, st, r, owner)
}

// testSearches searches a million invoices: for few that match, for many among the newest, and for many of long ago.
func testSearches(t *testing.T, db *sql.DB, st store.Store, r *recorder, owner event.Owner) {
	t.Helper()

	for text, want := range map[string]struct{ statements, first, rows int }{
		"nothing":      {statements: 1, rows: 0},
		"ORDER-777777": {statements: 2, first: 777_777, rows: 1},
		"order-":       {statements: 2, first: million - 1, rows: 50},
		"order-7":      {statements: 3, first: 799_999, rows: 50},
	} {
		r.reset()

		all, err := st.Invoices(t.Context(), invoice.Filter{Owner: owner, Q: text, Limit: 50})
		if err != nil || len(all) != want.rows || want.rows > 0 && all[0].ID != millionID(want.first) {
			t.Errorf("search of %q: %d invoices, %v", text, len(all), err)
		}

		asked := r.statements()
		if len(asked) != want.statements {
			t.Errorf("search of %q: %d statements, want %d", text, len(asked), want.statements)
		}

		for _, statement := range asked {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				k := explainCost(t, db, statement, mode)
				t.Logf("search of %q, %s: %d rows read, %d buffers", text, mode, k.rows, k.buffers)

				// Of a ninth of the text's index about 1,100 buffers, none of the records but the page.
				if k.buffers > 3000 {
					t.Errorf("search of %q, %s: %d buffers by %v", text, mode, k.buffers, k.nodes)
				}
			}
		}
	}
}

// cost is what a statement did.
type cost struct {
	nodes         []string // of the plan, from the top
	rows, buffers int      // read by its scans, and in all
}

// explainCost runs a statement as a prepared one under a plan mode and reads what it did.
func explainCost(t *testing.T, db *sql.DB, s sqltest.Statement, mode string) cost {
	t.Helper()

	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	defer func() { _, _ = tx.Exec("DEALLOCATE asked") }()

	var args []string

	for _, a := range s.Args {
		// an argument by which database/sql's driver selects the format of results
		if _, option := a.(pgx.QueryResultFormatsByOID); !option {
			args = append(args, literal(t, a))
		}
	}

	for _, text := range []string{"SET LOCAL plan_cache_mode = " + mode, "PREPARE asked AS " + s.Text} {
		if _, err := tx.ExecContext(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}

	var text string

	explain := "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE asked(" + strings.Join(
		args, ", ",
	) + ")"
	if err := tx.QueryRowContext(t.Context(), explain, pgx.QueryExecModeSimpleProtocol).
		Scan(&text); err != nil {
		t.Fatal(err)
	}

	type node struct {
		Type  string  `json:"Node Type"`
		Rows  float64 `json:"Actual Rows"`
		Loops float64 `json:"Actual Loops"`
		Hit   int     `json:"Shared Hit Blocks"`
		Read  int     `json:"Shared Read Blocks"`
		Off   float64 `json:"Rows Removed by Filter"`
		Plans []node  `json:"Plans"`
	}

	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}

	k := cost{buffers: plans[0].Plan.Hit + plans[0].Plan.Read}

	var walk func(n node)

	walk = func(n node) {
		k.nodes = append(k.nodes, n.Type)
		if strings.Contains(n.Type, "Scan") {
			k.rows += int((n.Rows + n.Off) * n.Loops)
		}

		for _, below := range n.Plans {
			walk(below)
		}
	}
	walk(plans[0].Plan)

	return k
}

// literal writes an argument as SQL has it.
func literal(t *testing.T, v any) string {
	t.Helper()

	switch v := v.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case bool, int64:
		return fmt.Sprint(v)
	case []string:
		return "'{" + strings.Join(v, ",") + "}'"
	}

	t.Fatalf("no literal for a %T", v)

	return ""
}
