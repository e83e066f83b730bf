package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// path is a file name with everything that has a meaning in a URL.
func path(t testing.TB) string { return filepath.Join(t.TempDir(), "payments ?#%.db") }

func openAt(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()

	st, err := sqlite.Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})

	return st
}

// emptyFile is an empty database with the tables in it, made once: that takes longer than most tests.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "payments")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	file := filepath.Join(dir, "empty.db")

	st, err := sqlite.Open(file)
	if err != nil {
		return nil, err
	}

	if err := st.Close(); err != nil {
		return nil, err
	}

	return os.ReadFile(file)
})

// migrated makes a copy of the empty database.
func migrated(t testing.TB, file string) string {
	t.Helper()

	b, err := emptyFile()
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}

	if err != nil {
		t.Fatal(err)
	}

	return file
}

// open returns an empty store in a file of its own.
func open(t testing.TB) *sqlite.Store {
	t.Helper()
	return openAt(t, migrated(t, path(t)))
}

// raw opens a database as Open does, with a table raw.
func raw(t testing.TB) *sql.DB {
	t.Helper()

	db, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(
			t.TempDir(), "raw.db",
		)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate",
	)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)

	if _, err := db.Exec("CREATE TABLE raw (id TEXT PRIMARY KEY, body TEXT) STRICT"); err != nil {
		t.Fatal(err)
	}

	return db
}

func TestConformance(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) store.Store { return open(t) })
}

// host opens a database as a host might: its own driver settings, two connections, recorded.
func host(t *testing.T) (*sql.DB, *sqltest.Recorder) {
	t.Helper()

	r := &sqltest.Recorder{}
	file := migrated(t, filepath.Join(t.TempDir(), "host.db"))
	db := sqltest.Open(
		&sqlitedriver.Driver{},
		"file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)", r,
	)

	t.Cleanup(func() { _ = db.Close() })

	return db, r
}

func TestConformanceOnHostsDatabase(t *testing.T) {
	conformance.TestStore(t, func(t *testing.T) store.Store {
		db, _ := host(t)
		return sqlite.New(db)
	})
}

func put(id string) func(ctx context.Context, tx store.Tx) error {
	return func(ctx context.Context, tx store.Tx) error { return tx.PutInvoice(ctx, &invoice.Invoice{ID: id}) }
}

func TestKeepsWhatWasCommitted(t *testing.T) {
	file := path(t)

	st, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}

	if err := st.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := openAt(t, file).InvoiceByID(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
}

// TestTwoProcesses opens one file twice: both write, and a writer that is kept waiting gives up
// with a conflict that names the reason.
func TestTwoProcesses(t *testing.T) {
	file := path(t)
	a, b := openAt(t, file), openAt(t, file, sqlite.WithBusyTimeout(time.Millisecond))

	err := a.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := put("a")(ctx, tx); err != nil {
			return err
		}

		if _, err := tx.ReserveNumbers(ctx, "n", 1, 1); err != nil { // it writes at once
			return err
		}

		if err := b.Update(
			t.Context(), put("b"),
		); !errors.Is(err, fault.Conflict) ||
			fault.Code(err) != "database_busy" {
			t.Errorf("a writer beside another process answered %v", err)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := b.Update(t.Context(), put("b")); err != nil {
		t.Fatalf("the next try: %v", err)
	}

	if _, err := a.InvoiceByID(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
}

func TestSchemaVersions(t *testing.T) {
	empty, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "empty.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()

	st := sqlite.New(empty)
	expect := func(code string, numbers ...string) {
		t.Helper()

		_, readErr := st.InvoiceByID(t.Context(), "a")
		for _, err := range []error{readErr, st.Update(t.Context(), put("a"))} {
			if !errors.Is(err, fault.Unavailable) || fault.Code(err) != code {
				t.Errorf("got %v, want %s", err, code)
			}

			for _, n := range numbers {
				if err == nil || !strings.Contains(err.Error(), n) {
					t.Errorf("%v does not name version %s", err, n)
				}
			}
		}
	}
	expect("schema_missing", "4")

	if err := sqlite.Migrate(t.Context(), empty); err != nil {
		t.Fatal(err)
	}

	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatalf("after the migration: %v", err)
	}

	if err := sqlite.Migrate(t.Context(), empty); err != nil {
		t.Fatalf("a second migration: %v", err)
	}

	file := path(t)

	old, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	newer, err := sql.Open(
		"sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(file),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()

	if _, err := newer.Exec(
		"INSERT INTO payments_schema_version (version_id, is_applied) VALUES (99, 1)",
	); err != nil {
		t.Fatal(err)
	}

	st = sqlite.New(newer)

	expect("schema_new", "99", "4")

	if _, err := sqlite.Open(file); fault.Code(err) != "schema_new" {
		t.Errorf("Open of a newer file answered %v", err)
	}
}

// TestJoin writes a host's row and an invoice in the host's own transaction.
func TestJoin(t *testing.T) {
	db, _ := host(t)

	st := sqlite.New(db)
	if _, err := db.Exec("CREATE TABLE orders (id TEXT)"); err != nil {
		t.Fatal(err)
	}

	attempt := func(id string, commit bool) {
		t.Helper()

		sqlTx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sqlTx.Rollback()

		if _, err := sqlTx.Exec("INSERT INTO orders VALUES (?)", id); err != nil {
			t.Fatal(err)
		}

		tx, flush := sqlite.Join(sqlTx)
		if err := put(id)(t.Context(), tx); err != nil {
			t.Fatal(err)
		}

		if err := flush(t.Context()); err != nil {
			t.Fatal(err)
		}

		if got, err := sqlite.SQLTx(tx); err != nil || got != sqlTx {
			t.Error("SQLTx does not return the host's transaction")
		}

		if commit {
			if err := sqlTx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	attempt("undone", false)
	attempt("done", true)

	if _, err := st.InvoiceByID(t.Context(), "undone"); !errors.Is(err, fault.NotFound) {
		t.Errorf("an invoice of a transaction that the host rolled back: %v", err)
	}

	if _, err := st.InvoiceByID(t.Context(), "done"); err != nil {
		t.Error(err)
	}

	sqlTx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sqlTx.Rollback()

	tx, flush := sqlite.Join(sqlTx)
	if err := errors.Join(
		put("done")(t.Context(), tx), flush(t.Context()),
	); !errors.Is(
		err, fault.Duplicate,
	) {
		t.Errorf("a duplicate in a joined transaction answered %v", err)
	}
}

// TestFaultAtEveryStatement fails every statement of a transaction in turn, in the database itself:
// nothing remains, and swallowing the error does not commit the rest.
func TestFaultAtEveryStatement(t *testing.T) {
	db, r := host(t)
	st := sqlite.New(db)
	run := func(ctx context.Context, tx store.Tx) error {
		for _, id := range []string{"a", "b", "c"} {
			if err := put(id)(ctx, tx); err != nil {
				return err
			}
		}

		_, _ = tx.InvoicesByID(ctx, []string{"a"}) // a closure that does not look at errors

		return put("d")(ctx, tx)
	}

	for n := 1; ; n++ {
		r.FailAt(n)

		err := st.Update(t.Context(), run)

		r.FailAt(0)

		if err == nil {
			if n < 5 {
				t.Fatalf("only %d statements were sent", n-1)
			}

			break
		}

		if !errors.Is(err, sqltest.ErrInjected) {
			t.Fatalf("statement %d: %v", n, err)
		}

		if left, err := st.InvoicesByID(
			t.Context(), []string{"a", "b", "c", "d"},
		); err != nil ||
			len(left) != 0 {
			t.Fatalf("after statement %d failed: %v %v", n, left, err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	file := path(t)

	st := openAt(t, file)
	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}
	// A database that may not grow is full.
	if err := st.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		sqlTx, _ := sqlite.SQLTx(tx)
		_, err := sqlTx.Exec("PRAGMA max_page_count = 1")

		return err
	}); err != nil {
		t.Fatal(err)
	}

	big := func(ctx context.Context, tx store.Tx) error {
		return tx.PutInvoice(ctx, &invoice.Invoice{ID: "big", Description: strings.Repeat("x", 1<<20)})
	}
	if err := st.Update(
		t.Context(), big,
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_full" {
		t.Errorf("a full database answered %v", err)
	}

	if _, err := st.InvoiceByID(t.Context(), "big"); !errors.Is(err, fault.NotFound) {
		t.Errorf("a record that did not fit: %v", err)
	}

	// So it is for a host that writes rows of its own in the same transaction, and returns the driver's error.
	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		sqlTx, err := sqlite.SQLTx(tx)
		if err != nil {
			return err
		}

		for _, text := range []string{"CREATE TABLE orders (note TEXT)", "PRAGMA max_page_count = 1"} {
			if _, err := sqlTx.ExecContext(ctx, text); err != nil {
				return err
			}
		}

		if _, err = sqlTx.ExecContext(
			ctx, "INSERT INTO orders VALUES (?)", strings.Repeat("x", 1<<20),
		); err != nil {
			return fmt.Errorf("writing the host's row: %w", err)
		}

		return nil
	}); !errors.Is(err, fault.Unavailable) || fault.Code(err) != "database_full" {
		t.Errorf("a full database answered the host %v", err)
	}

	if err := st.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		sqlTx, _ := sqlite.SQLTx(tx)
		_, err := sqlTx.Exec("PRAGMA max_page_count = 1000000")

		return err
	}); err != nil {
		t.Fatal(err)
	}

	if err := st.Update(t.Context(), big); err != nil {
		t.Errorf("the next try, with room: %v", err)
	}

	readOnly, err := sql.Open(
		"sqlite",
		"file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").
			Replace(file)+
			"?_pragma=query_only(1)",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()

	if err := sqlite.New(readOnly).
		Update(t.Context(), put("b")); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_read_only" {
		t.Errorf("a read-only database answered %v", err)
	}

	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := sqlite.Open(garbage); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a file that is no database answered %v", err)
	}

	if _, err := sqlite.Open(
		filepath.Join(t.TempDir(), "no", "such", "directory.db"),
	); !errors.Is(
		err, fault.Unavailable,
	) {
		t.Errorf("a directory that is not there answered %v", err)
	}

	if _, err := sqlite.Open(":memory:"); !errors.Is(err, fault.Invalid) {
		t.Errorf(":memory: answered %v", err)
	}
}
