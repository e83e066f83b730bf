package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
	"github.com/seed-8ee7f392/payments/store/mysql"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// database opens a new database with a schema.
func database(t testing.TB, dsn string) *sql.DB {
	t.Helper()

	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)

	if err := mysql.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	return db
}

// empty removes all rows of the library's tables but the version's.
func empty(t *testing.T, db *sql.DB) {
	t.Helper()

	rows, err := db.QueryContext(
		t.Context(),
		"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() "+
			"AND table_name NOT IN ('payments_schema_version', 'payments_schema_lock')",
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}

		if _, err := db.ExecContext(t.Context(), "DELETE FROM "+name); err != nil {
			t.Fatal(err)
		}
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	db := database(t, testenv.MariaDB(t))

	conformance.TestStore(t, func(t *testing.T) store.Store {
		empty(t, db)

		st, err := mysql.New(db)
		if err != nil {
			t.Fatal(err)
		}

		return st
	})
}

// Leases are locked one by one, however small their table is: others are free.
func TestLeasesLockNoOthers(t *testing.T) {
	st, err := mysql.New(database(t, testenv.MariaDB(t)))
	if err != nil {
		t.Fatal(err)
	}

	lock := func(ctx context.Context, name string, then func() error) error {
		return st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			if _, err := tx.Leases(ctx, []string{name}); err != nil {
				return err
			}

			return then()
		})
	}
	nothing := func() error { return nil }

	for _, name := range []string{"a", "b", "c"} {
		if err := lock(t.Context(), name, nothing); err != nil {
			t.Fatal(err)
		}
	}

	if err := lock(t.Context(), "b", func() error {
		for _, name := range []string{"a", "c"} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()

			if err := lock(ctx, name, nothing); err != nil {
				t.Errorf("lease %s beside b: %v", name, err)
			}
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestMigrateAtOnce brings one database up to date by several processes.
func TestMigrateAtOnce(t *testing.T) {
	dsn := testenv.MariaDB(t)
	failed := make(chan error)

	const processes = 3
	for range processes {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()

		go func() { failed <- mysql.Migrate(t.Context(), db) }()
	}

	for range processes {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}

	db := database(t, dsn)

	if _, err := db.ExecContext(
		t.Context(), "INSERT INTO payments_schema_version (version_id, is_applied) VALUES (99, 1)",
	); err != nil {
		t.Fatal(err)
	}

	if err := mysql.Migrate(t.Context(), db); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a newer schema answered %v", err)
	}
}

// TestConnectionThatCountsFoundRowsIsRefused covers a setting that would let a claim of a taken key succeed.
func TestConnectionThatCountsFoundRowsIsRefused(t *testing.T) {
	db := database(t, testenv.MariaDB(t)+"&clientFoundRows=true")

	st, err := mysql.New(db)
	if err != nil {
		t.Fatal(err)
	}

	_, err = st.Account(t.Context(), "acct")
	if !errors.Is(err, fault.Invalid) || fault.Code(err) != "client_found_rows" {
		t.Errorf("a connection that counts found rows answered %v", err)
	}
}

// TestEndedTransactionCommitsNothing has a hook swallow a deadlock: the server has rolled back, and what
// follows would be committed by itself.
func TestEndedTransactionCommitsNothing(t *testing.T) {
	db := database(t, testenv.MariaDB(t))

	st, err := mysql.New(db)
	if err != nil {
		t.Fatal(err)
	}

	err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		host, err := mysql.SQLTx(tx)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := host.ExecContext(ctx, "ROLLBACK"); err != nil { // what the server does on a deadlock
			return err
		}

		return tx.PutLease(ctx, lease.Lease{Name: "l", Owner: "o", Fence: 1})
	})
	if !errors.Is(err, fault.Conflict) {
		t.Errorf("a transaction that the server ended answered %v", err)
	}

	joined, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer joined.Rollback()

	tx, flush, err := mysql.Join(joined)
	if err != nil {
		t.Fatal(err)
	}

	if err := tx.PutLease(t.Context(), lease.Lease{Name: "l", Owner: "o", Fence: 1}); err != nil {
		t.Fatal(err)
	}

	if _, err := joined.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}

	if err := flush(t.Context()); !errors.Is(err, fault.Conflict) {
		t.Errorf("what is flushed into an ended transaction answered %v", err)
	}

	var rows int

	row := db.QueryRowContext(t.Context(), "SELECT count(*) FROM payments_leases")
	if err := row.Scan(&rows); err != nil {
		t.Fatal(err)
	}

	if rows != 0 {
		t.Errorf("%d rows were committed outside of the transaction", rows)
	}
}

// TestJoin writes a host's row and an invoice in the host's own transaction: both are there, or neither.
func TestJoin(t *testing.T) {
	db := database(t, testenv.MariaDB(t))
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id TEXT)"); err != nil {
		t.Fatal(err)
	}

	st, err := mysql.New(db)
	if err != nil {
		t.Fatal(err)
	}

	for id, commit := range map[string]bool{"kept": true, "dropped": false} {
		sqlTx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := sqlTx.ExecContext(t.Context(), "INSERT INTO orders VALUES (?)", id); err != nil {
			t.Fatal(err)
		}

		tx, flush, err := mysql.Join(sqlTx)
		if err != nil {
			t.Fatal(err)
		}

		written := tx.PutInvoice(t.Context(), &invoice.Invoice{ID: id})
		if err := errors.Join(written, flush(t.Context())); err != nil {
			t.Fatal(err)
		}

		end := sqlTx.Rollback
		if commit {
			end = sqlTx.Commit
		}

		if err := end(); err != nil {
			t.Fatal(err)
		}

		var orders int

		row := db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders WHERE id = ?", id)
		if err := row.Scan(&orders); err != nil {
			t.Fatal(err)
		}

		_, err = st.InvoiceByID(t.Context(), id)
		if (err == nil) != commit || (orders == 1) != commit {
			t.Errorf("committed: %t; the host has %d rows, the store answers %v", commit, orders, err)
		}
	}
}

// TestTime compares the database's clock with ours.
func TestTime(t *testing.T) {
	st, err := mysql.New(database(t, testenv.MariaDB(t)))
	if err != nil {
		t.Fatal(err)
	}

	at, err := st.Time(t.Context())
	if err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("the database's time is %v, %v", at, err)
	}
}
