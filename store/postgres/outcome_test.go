package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Whatever answer of the database is lost, an update that succeeds is stored, and one that fails is not: the store
// looks for the row that proves it.
func TestLostAnswersAreLookedUp(t *testing.T) {
	for name, transaction := range map[string]func(id string) func(context.Context, store.Tx) error{
		"only writes": put,
		"reads and writes": func(id string) func(context.Context, store.Tx) error {
			return changing(put(id))
		},
		"answers an idempotency key": answering,
	} {
		t.Run(name, func(t *testing.T) {
			var cut lostAnswer

			db := database(t, 2, func(c *pgx.ConnConfig) { c.DialFunc = cut.dial(c.DialFunc) })
			st := open(t, db, "")
			db.SetMaxOpenConns(1)

			if err := st.Update(t.Context(), put("there")); err != nil {
				t.Fatal(err)
			}

			saved := 0

			for nth := int64(1); ; nth++ {
				id := fmt.Sprintf("lost%d", nth)

				// The connection has its statements prepared.
				if err := st.Update(t.Context(), transaction("warm"+id)); err != nil {
					t.Fatal(err)
				}

				cut.lose(nth)

				err := st.Update(t.Context(), transaction(id))
				isCut := !cut.spare()

				if isStored(t, st, id) != (err == nil) {
					t.Errorf("answer %d lost: the update answered %v, stored: %t", nth, err, err != nil)
				}

				if !isCut {
					break
				}

				if err == nil {
					saved++
				} else if !errors.Is(err, fault.Unavailable) {
					t.Errorf("answer %d lost: %v", nth, err)
				}
			}

			if saved == 0 {
				t.Error("no lost answer was one to a commit")
			}
		})
	}
}

// answering claims an idempotency key and answers it, and nothing else.
func answering(id string) func(ctx context.Context, tx store.Tx) error {
	r := idempotency.Record{
		Key:        idempotency.Key{Owner: event.Owner{AccountID: "a"}, Key: id},
		Status:     200,
		SealedBody: []byte("sealed " + id),
		CreatedAt:  time.Unix(1e9, 0),
	}

	return func(ctx context.Context, tx store.Tx) error {
		if err := tx.ClaimIdempotencyKey(ctx, r, time.Time{}, time.Second); err != nil {
			return err
		}

		return tx.PutIdempotencyAnswer(ctx, r)
	}
}

// isStored reports whether the invoice or the idempotency key is there.
func isStored(t *testing.T, st store.Store, id string) bool {
	t.Helper()

	_, claimed, err := st.IdempotencyRecord(
		t.Context(), idempotency.Key{Owner: event.Owner{AccountID: "a"}, Key: id},
	)
	if err != nil {
		t.Fatal(err)
	}

	_, err = st.InvoiceByID(t.Context(), id)
	if err != nil && !errors.Is(err, fault.NotFound) {
		t.Fatal(err)
	}

	return claimed || err == nil
}

// lostAnswer loses one answer of the database, and the connection with it.
type lostAnswer struct{ countdown atomic.Int64 }

// lose loses the nth answer from now.
func (l *lostAnswer) lose(nth int64) { l.countdown.Store(nth) }

// spare loses none any more, and reports whether one was still to be lost.
func (l *lostAnswer) spare() bool { return l.countdown.Swap(0) > 0 }

func (l *lostAnswer) dial(inner pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := inner(ctx, network, address)
		return losing{conn, l}, err
	}
}

// losing is a connection that is cut after an answer was received, and before it is passed on.
type losing struct {
	net.Conn
	answers *lostAnswer
}

func (c losing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.answers.countdown.Load() > 0 && c.answers.countdown.Add(-1) == 0 {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Conn.Close())
	}

	return n, err
}

// A database that says itself that it does not know the outcome of a commit is asked for the row.
func TestUnknownCompletionIsLookedUp(t *testing.T) {
	for name, commits := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			var armed atomic.Bool

			db := intercepted(t, interception{exec: func(c wrappedConn, text string) error {
				if text != "COMMIT" || !armed.Load() {
					return nil
				}

				if commits {
					if _, err := c.ExecContext(t.Context(), text, nil); err != nil {
						return err
					}
				}

				return &pgconn.PgError{Severity: "ERROR", Code: "40003", Message: "result is ambiguous"}
			}})
			st := open(t, db, "")

			armed.Store(true)

			err := st.Update(t.Context(), put("a"))

			armed.Store(false)

			if isStored(t, st, "a") != commits {
				t.Fatalf("stored: %t", !commits)
			}

			if commits && err != nil || !commits && fault.Code(err) != "commit_unknown" {
				t.Errorf("the update answered %v", err)
			}
		})
	}
}

// A read outside of transactions that the database wants to be run again is run again.
func TestReadsRunAgainAfterAConflict(t *testing.T) {
	var conflicts atomic.Int32

	db := intercepted(t, interception{query: func() error {
		if conflicts.Add(-1) >= 0 {
			return &pgconn.PgError{Severity: "ERROR", Code: "40001", Message: "restart read"}
		}

		return nil
	}})

	st := open(t, db, "")
	if err := st.Update(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}

	for name, read := range map[string]func(ctx context.Context) error{
		"row": func(ctx context.Context) error {
			_, err := st.InvoiceByID(ctx, "a")
			return err
		},
		"rows": func(ctx context.Context) error {
			_, err := st.Invoices(ctx, invoice.Filter{Owner: event.Owner{AccountID: "a"}})
			return err
		},
		"count": func(ctx context.Context) error {
			_, err := st.PendingDeliveries(ctx, "e")
			return err
		},
		"backlogs": func(ctx context.Context) error {
			_, err := st.Backlogs(ctx, time.Now())
			return err
		},
		"key": func(ctx context.Context) error {
			_, _, err := st.KeyByHash(ctx, [32]byte{})
			if errors.Is(err, fault.NotFound) {
				err = nil
			}

			return err
		},
	} {
		conflicts.Store(3)

		if err := read(t.Context()); err != nil || conflicts.Load() >= 0 {
			t.Errorf("%s: after three conflicts: %v", name, err)
		}

		conflicts.Store(1000)

		if err := read(t.Context()); !errors.Is(err, fault.Conflict) {
			t.Errorf("%s: with conflicts without end: %v", name, err)
		}
	}
}

// interception fails statements instead of, or after, running them; a nil error lets them pass.
type interception struct {
	exec  func(c wrappedConn, text string) error
	query func() error
}

// intercepted opens a new database with an interception.
func intercepted(t *testing.T, i interception) *sql.DB {
	t.Helper()

	db := sql.OpenDB(interceptor{wrapping{testenv.Postgres(t), &atomic.Int32{}}, i})
	t.Cleanup(func() { _ = db.Close() })

	return db
}

type interceptor struct {
	wrapping
	interception
}

func (i interceptor) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

func (i interceptor) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := i.wrapping.Connect(ctx)
	if err != nil {
		return nil, err
	}

	return interceptedConn{conn.(wrappedConn), i.interception}, nil
}

type interceptedConn struct {
	wrappedConn
	interception
}

func (c interceptedConn) ExecContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Result, error) {
	if c.exec != nil {
		if err := c.exec(c.wrappedConn, text); err != nil {
			return nil, err
		}
	}

	return c.wrappedConn.ExecContext(ctx, text, args)
}

func (c interceptedConn) QueryContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Rows, error) {
	if c.query != nil {
		if err := c.query(); err != nil {
			return nil, err
		}
	}

	return c.wrappedConn.QueryContext(ctx, text, args)
}
