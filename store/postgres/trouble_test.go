package postgres_test

// This file makes PostgreSQL fail at awkward moments: nothing of a transaction may remain then, the
// error has to say what happened, and the next try has to succeed.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// refusing makes the server itself answer inserts of invoices of one description by a SQLSTATE, at
// once or at the commit.
func refusing(t *testing.T, db *sql.DB, description, state string, atCommit bool) {
	t.Helper()

	name, deferred := "refuse_"+description, ""
	if atCommit {
		deferred = "DEFERRABLE INITIALLY DEFERRED"
	}

	_, err := db.Exec(`CREATE FUNCTION ` + name + `() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN IF NEW.description = '` + description + `' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '` +
		state + `'; END IF; RETURN NEW; END $$`)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := db.Exec(
		`CREATE CONSTRAINT TRIGGER ` + name + ` AFTER INSERT ON payments_invoices ` + deferred +
			` FOR EACH ROW EXECUTE FUNCTION ` + name + `()`,
	); err != nil {
		t.Fatal(err)
	}
}

// gone checks that an update failed as it should, that nothing of it remains, and that the same one
// succeeds when what refused it is no longer there.
func gone(t *testing.T, st store.Store, err error, code string, words ...string) {
	t.Helper()

	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != code {
		t.Errorf("the update answered %v, want %s", err, code)
	}

	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}

	for _, id := range []string{"first", "refused", "last"} {
		if _, err := st.InvoiceByID(t.Context(), id); !errors.Is(err, fault.NotFound) {
			t.Errorf("invoice %s remains of a transaction that failed (%v)", id, err)
		}
	}
}

// three puts three invoices, the middle one with the description.
func three(description string) func(ctx context.Context, tx store.Tx) error {
	return func(ctx context.Context, tx store.Tx) error {
		for id, text := range map[string]string{"first": "", "refused": description, "last": ""} {
			if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: id, Description: text}); err != nil {
				return err
			}
		}

		return nil
	}
}

// changing makes of a creation an update that also changes a row, whose COMMIT is sent on its own.
func changing(f func(ctx context.Context, tx store.Tx) error) func(ctx context.Context, tx store.Tx) error {
	return func(ctx context.Context, tx store.Tx) error {
		inv, err := tx.InvoiceByID(ctx, "there")
		if err != nil {
			return err
		}

		return errors.Join(tx.PutInvoice(ctx, &inv), f(ctx, tx))
	}
}

func TestServerRefuses(t *testing.T) {
	db := database(t, 4, nil)

	st := open(t, db, "")
	if err := st.Update(t.Context(), put("there")); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		description, state string
		atCommit           bool
		code, words        string
	}{
		{"full", "53100", false, "database_full", "make room and try again"},
		{"full_at_commit", "53100", true, "database_full", "make room and try again"},
		{"shutdown", "57P01", false, "database_down", "try again"},
		{"standby", "25006", true, "database_read_only", "connect to the primary"},
	} {
		refusing(t, db, c.description, c.state, c.atCommit)
		gone(t, st, st.Update(t.Context(), three(c.description)), c.code, c.words)
		gone(t, st, st.Update(t.Context(), changing(three(c.description))), c.code, c.words)
	}

	if err := st.Update(t.Context(), changing(three("room again"))); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// A conflict that the database notices only at the commit has the closure run again.
func TestConflictAtCommitRunsAgain(t *testing.T) {
	db := database(t, 4, nil)
	st := open(t, db, "")
	refusing(t, db, "late", "40001", true)

	runs := 0

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		text := "late"
		if runs++; runs == 3 {
			text = "accepted"
		}

		return three(text)(ctx, tx)
	})
	if err != nil || runs != 3 {
		t.Errorf("after %d runs: %v", runs, err)
	}
}

// A failed statement of the host's own, whose error it swallows, must not let the transaction look
// committed: PostgreSQL answers COMMIT by rolling back.
func TestSwallowedErrorIsNotCommitted(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T) *sql.DB{
		"pgx":     func(t *testing.T) *sql.DB { return database(t, 4, nil) },
		"wrapped": func(t *testing.T) *sql.DB { return wrapped(t, &atomic.Int32{}) },
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, wrap(t), "")

			for _, write := range []bool{false, true} {
				runs := 0

				err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
					runs++

					sqlTx, err := postgres.SQLTx(tx)
					if err != nil {
						t.Fatal(err)
					}

					if _, err := sqlTx.ExecContext(ctx, "SELECT 1/0"); err == nil {
						t.Error("no error")
					}

					if write {
						return put("first")(ctx, tx)
					}

					return nil
				})
				if err == nil {
					t.Errorf("an aborted transaction was said to be committed (with writes: %v)", write)
				}

				// Nothing is gained by running it again, and who reads the log finds the statement's own error.
				if runs != 1 || errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "22012") {
					t.Errorf("after %d runs (with writes: %v): %v", runs, write, err)
				}
			}

			if _, err := st.InvoiceByID(t.Context(), "first"); !errors.Is(err, fault.NotFound) {
				t.Errorf("something remains (%v)", err)
			}
		})
	}
}

// The borrowed *sql.Tx works like any *sql.Tx, sees what was sent, commits with the update or not at
// all, and cannot be ended.
func TestBorrowedTransaction(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T) *sql.DB{
		"pgx":     func(t *testing.T) *sql.DB { return database(t, 4, nil) },
		"wrapped": func(t *testing.T) *sql.DB { return wrapped(t, &atomic.Int32{}) },
	} {
		t.Run(name, func(t *testing.T) {
			db := wrap(t)

			st := open(t, db, "")
			if _, err := db.Exec("CREATE TABLE orders (id text PRIMARY KEY, note text)"); err != nil {
				t.Fatal(err)
			}

			refuse := errors.New("refused")
			for _, want := range []error{refuse, nil} {
				var kept *sql.Tx

				err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
					if err := put("first")(ctx, tx); err != nil {
						return err
					}

					if _, err := tx.Invoices(ctx, invoice.Filter{Limit: 1}); err != nil { // which sends it
						return err
					}

					sqlTx, err := postgres.SQLTx(tx)

					again, _ := postgres.SQLTx(tx)
					if kept = sqlTx; err != nil || sqlTx != again {
						t.Fatalf("SQLTx: %v, %p and %p", err, sqlTx, again)
					}

					stmt, err := sqlTx.PrepareContext(
						ctx, "INSERT INTO orders (id, note) SELECT $1, id FROM payments_invoices",
					)
					if err != nil {
						return err
					}

					if _, err := stmt.ExecContext(ctx, "order"); err != nil {
						return err
					}

					var note string
					if err := sqlTx.QueryRowContext(ctx, "SELECT note FROM orders WHERE id = $1", "order").
						Scan(&note); err != nil ||
						note != "first" {
						t.Errorf("the host reads %q (%v)", note, err)
					}
					// left open
					if _, err := sqlTx.QueryContext(ctx, "SELECT generate_series(1, 1000)"); err != nil {
						return err
					}

					return want
				})
				if !errors.Is(err, want) {
					t.Fatalf("the update answered %v, want %v", err, want)
				}

				if _, err := kept.Exec("DELETE FROM orders"); err == nil {
					t.Error("a lent transaction works after its end")
				}

				var orders int
				if err := db.QueryRow("SELECT count(*) FROM orders").
					Scan(&orders); err != nil ||
					(orders == 1) != (want == nil) {
					t.Errorf("%d orders after an update that answered %v (%v)", orders, want, err)
				}
			}

			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
					sqlTx, _ := postgres.SQLTx(tx)
					if err := end(sqlTx); err == nil || errors.As(err, new(*fault.Error)) {
						t.Errorf("ending a lent transaction answered %v", err)
					}

					return refuse
				})
				if !errors.Is(err, refuse) {
					t.Error(err)
				}
			}
		})
	}
}

// TestConformanceOfAWrappedDriver runs the suite over connections that are not pgx's own, as tools
// that trace have them.
func TestConformanceOfAWrappedDriver(t *testing.T) {
	testConformance(t, wrapped(t, &atomic.Int32{}))
}

// TestDiskFullOnAWrappedConnection has a connection answer SQLSTATE 53100 to the n-th statement
// that changes something, for every n that a transaction has.
func TestDiskFullOnAWrappedConnection(t *testing.T) {
	countdown := &atomic.Int32{}

	st := open(t, wrapped(t, countdown), "")
	if err := st.Update(t.Context(), put("there")); err != nil {
		t.Fatal(err)
	}

	for _, f := range []func(ctx context.Context, tx store.Tx) error{three(""), changing(three(""))} {
		failed := 0

		for n := int32(1); ; n++ {
			countdown.Store(n)

			err := st.Update(t.Context(), f)

			if countdown.Load() > 0 { // no such statement any more
				countdown.Store(0)

				if err != nil {
					t.Fatal(err)
				}

				break
			}

			failed++

			gone(t, st, err, "database_full", "make room and try again")
		}

		if failed < 4 {
			t.Errorf("only %d statements were refused", failed)
		}
		// away with them, for the next round
		_ = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			sqlTx, _ := postgres.SQLTx(tx)
			_, err := sqlTx.ExecContext(ctx, "DELETE FROM payments_invoices WHERE id <> 'there'")

			return err
		})
	}
}

// wrapped opens a database whose connections are not pgx's own, but hand their statements on to those. When
// countdown reaches 0, a statement that changes something is refused as by a full disk.
func wrapped(t *testing.T, countdown *atomic.Int32) *sql.DB {
	t.Helper()
	db := sql.OpenDB(wrapping{testenv.Postgres(t), countdown})
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)

	return db
}

type wrapping struct {
	dsn       string
	countdown *atomic.Int32
}

func (w wrapping) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (w wrapping) Connect(context.Context) (driver.Conn, error) {
	inner, err := stdlib.GetDefaultDriver().Open(w.dsn)
	if err != nil {
		return nil, err
	}

	return wrappedConn{inner, w.countdown}, nil
}

type wrappedConn struct {
	driver.Conn
	countdown *atomic.Int32
}

func (c wrappedConn) ExecContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Result, error) {
	if text != "ROLLBACK" && c.countdown.Load() > 0 && c.countdown.Add(-1) == 0 {
		return nil, &pgconn.PgError{
			Severity: "ERROR",
			Code:     "53100",
			Message:  "could not extend file: No space left on device",
		}
	}

	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c wrappedConn) QueryContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (c wrappedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
}

func (c wrappedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c wrappedConn) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

func (c wrappedConn) ResetSession(ctx context.Context) error {
	return c.Conn.(driver.SessionResetter).ResetSession(ctx)
}

// TestDiscardAll has somebody make the only connection forget its prepared statements: what was to
// be written is written.
func TestDiscardAll(t *testing.T) {
	db := database(t, 2, nil)
	st := open(t, db, "")
	db.SetMaxOpenConns(1)

	for _, id := range []string{"a", "b", "c"} {
		if err := st.Update(t.Context(), put(id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}

		if _, err := db.ExecContext(t.Context(), "DISCARD ALL", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
}
