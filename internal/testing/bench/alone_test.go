//go:build linux

package bench_test

// This file measures what the database alone allows: pgbench, which does nothing else, stores the rows of creations.

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/bench"
)

// BenchmarkRowsAlone compares pgbench storing the rows of a creation with its inserts of one row: no service that
// stores these rows in these ways can have a higher ratio.
func BenchmarkRowsAlone(b *testing.B) {
	dsn, db := benchDatabase(b)
	s := newShop(b, db)
	a := &alone{
		dsn:      dsn,
		db:       db,
		server:   serverOf(b, db),
		creation: s.storedCreation(b),
	}

	for _, row := range a.rows {
		fmt.Printf("a creation stores a row of %d bytes in %s\n", row.size, row.table)
	}

	a.compare(b, "")

	for _, index := range []string{"owner", "status", "order", "email", "due"} {
		if _, err := db.ExecContext(b.Context(), "DROP INDEX payments_invoices_"+index); err != nil {
			b.Fatal(err)
		}
	}

	fmt.Println("without the indexes of invoices but the primary key's:")
	a.compare(b, "keys_only,")
}

// compare measures each way to store the rows, at each concurrency. So many creations at once may share transactions:
// 8 a transaction, or two transactions at once as the service's store does.
func (a *alone) compare(b *testing.B, name string) {
	b.Helper()

	prepared := append(a.definitions(), "-M", "prepared")
	goals := map[int]float64{1: .20, 8: .25, 32: .30}

	for _, at := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("%sc=%d", name, at), func(b *testing.B) {
			a.empty(b)

			sides := []side{
				a.side("pgbench, inserts", pgbenchInsert, at, 1),
				a.side("rows, pipeline", a.pipeline(1), at, 1, prepared...),
				a.side("rows, one query", a.oneQuery(1), at, 1),
			}

			if at > 1 {
				sides = append(
					sides,
					a.side("rows, 8 a transaction", a.pipeline(8), at/8, 8, prepared...),
					a.side("rows, 2 transactions at once", a.pipeline(at/2), 2, at/2, prepared...),
				)
			}

			for i := range sides[1:] {
				sides[1+i].goal = goals[at]
			}

			compare(b, at, sides)
		})
	}
}

const (
	// mostShared and mostClients bound how many creations share a transaction, and how many transactions there are at
	// once: each creation's number is of its own.
	mostShared, mostClients = 16, 32
	// firstTurn is the first number of a turn's transactions, and perClient how many a client may make of them.
	firstTurn, perClient = 2_000_000, 50_000
)

// alone is a database and a creation that pgbench stores in it.
type alone struct {
	creation
	dsn      string
	db       *sql.DB
	server   serverProcess
	measured int // turns
}

// side measures a script whose transactions make so many creations each, by so many clients.
func (a *alone) side(name, script string, clients, creations int, args ...string) side {
	var cpu []float64

	return side{
		name: name,
		perSecond: func(b *testing.B, _ int) float64 {
			b.Helper()

			a.measured++
			first := firstTurn + a.measured*perClient
			args := append(
				[]string{"-T", strconv.Itoa(int(turn.Seconds())), "-D", fmt.Sprintf("n=%d", first)},
				args...)

			before := a.server.cpu(b)
			perSecond, transactions := runPgbench(b, a.dsn, script, clients, args...)
			used := a.server.cpu(b) - before

			cpu = append(cpu, float64(used.Microseconds())/transactions/float64(creations))

			return perSecond * float64(creations)
		},
		note: func() string { return fmt.Sprintf("   PostgreSQL %4.0f µs", bench.Median(cpu)) },
	}
}

// empty deletes all creations.
func (a *alone) empty(b *testing.B) {
	b.Helper()

	tables := make([]string, len(a.rows))
	for i, row := range a.rows {
		tables[i] = row.table
	}

	if _, err := a.db.ExecContext(b.Context(), "TRUNCATE bench, "+strings.Join(tables, ", ")); err != nil {
		b.Fatal(err)
	}
}

// creation is what one creation stored.
type creation struct {
	rows []storedRow
	// Values that differ between creations, and are in an index, as texts.
	invoice, event, order, email, address string
}

// storedRow is one row, with the texts of its values.
type storedRow struct {
	table   string
	size    int
	columns []string
	values  []sql.NullString
}

// storedCreation makes an invoice over HTTP, and reads all rows that its transaction wrote.
func (s *shop) storedCreation(b *testing.B) (c creation) {
	b.Helper()

	s.orders.Store(firstTurn * mostShared * mostClients) // of as many digits as those of pgbench

	for range 2 { // the first may reserve numbers for those after it
		if err := s.create(true)(); err != nil {
			b.Fatal(err)
		}
	}

	var transaction string

	if err := s.db.QueryRowContext(
		b.Context(),
		`SELECT i.xmin::text, i.id, e.id, i.order_id, i.customer_email, a.address
		FROM payments_invoices i, payments_events e, payments_addresses a
		WHERE e.object_id = i.id AND a.invoice_id = i.id
		ORDER BY i.id DESC LIMIT 1`,
	).Scan(&transaction, &c.invoice, &c.event, &c.order, &c.email, &c.address); err != nil {
		b.Fatal(err)
	}

	for _, table := range tablesOf(b, s.db) {
		c.rows = append(c.rows, writtenBy(b, s.db, transaction, table)...)
	}

	return c
}

// tablesOf returns the names of the service's tables.
func tablesOf(b *testing.B, db *sql.DB) (tables []string) {
	b.Helper()

	var all string

	if err := db.QueryRowContext(
		b.Context(),
		`SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE tablename LIKE 'payments\_%'`,
	).Scan(&all); err != nil {
		b.Fatal(err)
	}

	return strings.Fields(all)
}

// writtenBy returns the rows of a table that a transaction wrote.
func writtenBy(b *testing.B, db *sql.DB, transaction, table string) (all []storedRow) {
	b.Helper()

	columns := columnsOf(b, db, table)

	rows, err := db.QueryContext(b.Context(), fmt.Sprintf(
		"SELECT pg_column_size(t), %s::text FROM %s t WHERE xmin::text = $1",
		strings.Join(columns, "::text, "), table,
	), transaction)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		row := storedRow{table: table, columns: columns, values: make([]sql.NullString, len(columns))}
		fields := []any{&row.size}

		for i := range row.values {
			fields = append(fields, &row.values[i])
		}

		if err := rows.Scan(fields...); err != nil {
			b.Fatal(err)
		}

		all = append(all, row)
	}

	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}

	return all
}

// pipeline is a script that stores so many creations in one transaction and one round trip: a pipeline without BEGIN is
// a transaction. Its statements are prepared, and their longer values are sent.
func (c creation) pipeline(n int) string {
	sent := func(v sql.NullString) string {
		if i := slices.Index(c.long(), v.String); i >= 0 {
			return fmt.Sprintf(":v%d", i)
		}

		return literal(v)
	}

	return numbers(n) + "\\startpipeline\n" + strings.Join(c.inserts(n, sent), ";\n") + ";\n\\endpipeline\n"
}

// definitions are the arguments with which pgbench knows the values that pipelines send.
func (c creation) definitions() (args []string) {
	for i, v := range c.long() {
		args = append(args, "-D", fmt.Sprintf("v%d=%s", i, v))
	}

	return args
}

// long returns the values of more than 8 bytes, of which a client has to send most. pgbench sends up to 255 with a
// statement.
func (c creation) long() (values []string) {
	for _, row := range c.rows {
		for _, v := range row.values {
			if len(v.String) > 8 && !slices.Contains(values, v.String) {
				values = append(values, v.String)
			}
		}
	}

	return values
}

// oneQuery stores so many creations with one query of several statements, which is a transaction as well.
func (c creation) oneQuery(n int) string {
	return numbers(n) + strings.Join(c.inserts(n, literal), " \\; ") + ";\n"
}

// numbers sets the variables of n creations, each of as many digits every time. :n grows with each transaction of a
// client. :o is the number of an order, which no other has. :i is that of an id and begins with :o, so that ids grow
// with time, as those of the service do. :a is that of an address, at random.
func numbers(n int) string {
	var script strings.Builder

	fmt.Fprintf(&script, "\\set n :n + 1\n")

	for i := range n {
		fmt.Fprintf(&script, "\\set o%d (:n * %d + %d) * %d + :client_id\n", i, mostShared, i, mostClients)
		fmt.Fprintf(&script, "\\set i%d :o%d * 1000000000 + random(0, 999999999)\n", i, i)
		fmt.Fprintf(&script, "\\set a%d random(1000000000000000000, 8999999999999999999)\n", i)
	}

	return script.String()
}

// inserts returns a statement for each row, with those of n creations. Values that are the same in all are as constant
// returns them.
func (c creation) inserts(n int, constant func(sql.NullString) string) (statements []string) {
	for _, row := range c.rows {
		marks := make([]string, n)

		for i := range marks {
			variables := c.variables(i)
			values := make([]string, len(row.values))

			for j, v := range row.values {
				if variable, ok := variables[v.String]; ok {
					values[j] = variable
				} else if t, ok := times[row.columns[j]]; ok && v.Valid {
					values[j] = t
				} else {
					values[j] = constant(v)
				}
			}

			marks[i] = "(" + strings.Join(values, ", ") + ")"
		}

		statements = append(statements, fmt.Sprintf(
			"INSERT INTO %s (%s) VALUES %s",
			row.table, strings.Join(row.columns, ", "), strings.Join(marks, ", "),
		))
	}

	return statements
}

// variables returns what replaces the values that differ between creations, for the i-th of a transaction: texts of
// the same length. Copies of them inside JSON stay as they are.
func (c creation) variables(i int) map[string]string {
	const digits = 19 // of :i and :a

	order, email, _ := strings.Cut(c.email, "@")

	return map[string]string{
		c.invoice: fmt.Sprintf("'%s' || :i%d", c.invoice[:len(c.invoice)-digits], i),
		c.event:   fmt.Sprintf("'%s' || :i%d", c.event[:len(c.event)-digits], i),
		c.order:   fmt.Sprintf("'order-' || :o%d", i),
		c.email:   fmt.Sprintf("'%s' || :o%d || '@%s'", strings.TrimRight(order, "0123456789"), i, email),
		c.address: fmt.Sprintf("'sim' || :a%d || '%s'", i, c.address[len("sim")+digits:]),
	}
}

// times replace the times that are in an index.
var times = map[string]string{"created_at": "now()", "next_check": "now()", "due_at": "now() + '24:00:00'"}

// literal returns a value as SQL without colons, after which pgbench would look for a variable.
func literal(v sql.NullString) string {
	if !v.Valid {
		return "NULL"
	}

	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`, `:`, `\x3a`).Replace(v.String) + "'"
}
