// Package cockroachsql reads the SQL of the PostgreSQL store with CockroachDB's parser. It is a module of its own, so
// that the parser is in the go.sum of no application.
package cockroachsql

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// byBytes is what the schema says of texts that compare by bytes. CockroachDB's always do: it has no locale C.
const byBytes = ` COLLATE "C"`

// CockroachDB's parser reads every statement of the schema, but for byBytes.
func TestSchemaParses(t *testing.T) {
	files, err := fs.Glob(postgres.Migrations(""), "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}

	total := 0

	for _, name := range files {
		text, err := fs.ReadFile(postgres.Migrations(""), name)
		if err != nil {
			t.Fatal(err)
		}

		statements, err := parser.Parse(strings.ReplaceAll(string(text), byBytes, ""))
		if err != nil || len(statements) == 0 {
			t.Errorf("%s: %d statements: %v", name, len(statements), err)
		}

		total += len(statements)
	}

	if total < 100 {
		t.Errorf("the schema has %d statements", total)
	}
}

// CockroachDB's parser reads every statement that the store sends in the suite, and every query.
func TestStatementsParse(t *testing.T) {
	r := &recorder{texts: map[string]bool{}}
	dsn := testenv.Postgres(t)
	recorded, aside := open(t, dsn, r), open(t, dsn, nil)

	migrate(t, aside, postgres.Options{})

	conformance.TestStore(t, func(t *testing.T) store.Store {
		empty(t, aside)

		st, err := postgres.New(recorded, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}

		return st
	})

	query(t, recorded, postgres.Options{})
	r.parse(t, 200)
}

// CockroachDB's parser reads the queries that are different on a distributed database.
func TestDistributedQueriesParse(t *testing.T) {
	r := &recorder{texts: map[string]bool{}}
	dsn := testenv.Postgres(t)
	recorded, aside := open(t, dsn, r), open(t, dsn, nil)

	// Stand-ins of Citus' functions: the tables stay where they are, and the statements are the same.
	const standIns = `CREATE FUNCTION create_distributed_table(text, text) RETURNS void LANGUAGE sql AS '';
		CREATE FUNCTION citus_add_local_table_to_metadata(text) RETURNS void LANGUAGE sql AS ''`
	if _, err := aside.ExecContext(t.Context(), standIns); err != nil {
		t.Fatal(err)
	}

	distributed := postgres.Options{Distributed: true}
	migrate(t, aside, distributed)
	query(t, recorded, distributed)
	r.parse(t, 100)
}

// recorder collects the texts of the statements that pgx sends.
type recorder struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (r *recorder) TraceQueryStart(
	ctx context.Context,
	_ *pgx.Conn,
	d pgx.TraceQueryStartData,
) context.Context {
	r.record(d.SQL)
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(
	ctx context.Context,
	_ *pgx.Conn,
	_ pgx.TraceBatchStartData,
) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	r.record(d.SQL)
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (r *recorder) record(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.texts[strings.TrimSpace(text)] = true
}

// parse parses what was recorded, which are at least so many different statements.
func (r *recorder) parse(t *testing.T, atLeast int) {
	t.Helper()

	for text := range r.texts {
		if statements, err := parser.Parse(text); err != nil || len(statements) > 1 {
			t.Errorf("%d statements: %v\n%s", len(statements), err, text)
		}
	}

	if len(r.texts) < atLeast {
		t.Errorf("only %d statements were seen", len(r.texts))
	}

	t.Logf("%d different statements parse", len(r.texts))
}

// open opens a database; r may be nil.
func open(t *testing.T, dsn string, r *recorder) *sql.DB {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	if r != nil {
		config.Tracer = r
	}

	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)

	return db
}

func migrate(t *testing.T, db *sql.DB, o postgres.Options) {
	t.Helper()

	if err := postgres.Migrate(t.Context(), db, o); err != nil {
		t.Fatal(err)
	}
}

// query runs each query of the library once.
func query(t *testing.T, db *sql.DB, o postgres.Options) {
	t.Helper()

	st, err := postgres.New(db, o)
	if err != nil {
		t.Fatal(err)
	}

	for _, q := range sqltest.Queries() {
		if err := q.Run(t.Context(), st); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
}

// empty removes all rows but those of the schema's version.
func empty(t *testing.T, db *sql.DB) {
	t.Helper()

	_, err := db.ExecContext(t.Context(), `DO $$ DECLARE name regclass; BEGIN
		FOR name IN SELECT tablename::regclass FROM pg_tables
			WHERE schemaname = 'public' AND tablename NOT LIKE '%\_schema\_version' LOOP
			EXECUTE 'DELETE FROM ' || name;
		END LOOP;
	END $$`)
	if err != nil {
		t.Fatal(err)
	}
}
