package sqlstore

// This file exposes a transaction to the host as a borrowed *sql.Tx. The transaction was begun by a statement
// on its connection, so database/sql does not know of it. A driver over that one connection, already in its
// transaction, provides the *sql.Tx. The host cannot end it.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
)

// errBorrowed has no kind: it is a fault of the host's code, for any request.
var errBorrowed = errors.New(
	"this transaction was lent by the store, which ends it: return an error from the closure to roll it back",
)

// borrowedTx is a *sql.Tx over a connection that the transaction holds.
type borrowedTx struct {
	tx      *sql.Tx
	db      *sql.DB
	revoked *atomic.Bool
}

// borrow returns the transaction's *sql.Tx, and begins the transaction if nothing has yet.
func (tx *transaction) borrow() (*sql.Tx, error) {
	if tx.joined != nil {
		return tx.joined, nil
	}

	if tx.borrowed != nil {
		return tx.borrowed.tx, nil
	}

	if err := tx.usable(tx.life); err != nil {
		return nil, err
	}

	if err := tx.begin(tx.life); err != nil {
		return nil, err
	}

	borrowed := &borrowedTx{revoked: &atomic.Bool{}}
	borrowed.db = sql.OpenDB(borrowedConnector{
		conn:    tx.session.conn,
		driver:  tx.store.options.Write.Driver(),
		revoked: borrowed.revoked,
		failed:  &tx.hostFailed,
	})

	var err error
	if borrowed.tx, err = borrowed.db.BeginTx(tx.life, nil); err != nil {
		return nil, errors.Join(err, borrowed.db.Close())
	}

	tx.borrowed = borrowed

	return borrowed.tx, nil
}

// revokeBorrowed ends the borrowed *sql.Tx, including rows that the host left open.
func (tx *transaction) revokeBorrowed() {
	if tx.borrowed == nil {
		return
	}

	tx.borrowed.revoked.Store(true)
	_ = tx.borrowed.tx.Rollback()
	_ = tx.borrowed.db.Close()
	tx.borrowed = nil
}

// borrowedConnector returns connections over one that is already open.
type borrowedConnector struct {
	conn    *sql.Conn
	driver  driver.Driver
	revoked *atomic.Bool
	// failed stores the first error of a statement.
	failed *atomic.Pointer[error]
}

func (c borrowedConnector) Connect(context.Context) (driver.Conn, error) { return borrowedConn(c), nil }
func (c borrowedConnector) Driver() driver.Driver                        { return c.driver }

// borrowedConn forwards statements to the connection, and refuses to end the transaction.
type borrowedConn borrowedConnector

// forward calls f with the driver's own connection as the interface C of database/sql/driver. It
// returns driver.ErrSkip when the connection lacks C; database/sql then falls back.
func forward[C, T any](c borrowedConn, f func(C) (T, error)) (answer T, err error) {
	rawErr := c.conn.Raw(func(raw any) error {
		conn, ok := raw.(C)
		if !ok {
			err = driver.ErrSkip
			return nil
		}

		answer, err = f(conn)

		return nil
	})
	if rawErr != nil {
		err = rawErr
	}

	if err != nil && !errors.Is(err, driver.ErrSkip) {
		c.failed.CompareAndSwap(nil, &err)
	}

	return answer, err
}

func (c borrowedConn) QueryContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Rows, error) {
	return forward(c, func(conn driver.QueryerContext) (driver.Rows, error) {
		return conn.QueryContext(ctx, text, args)
	})
}

func (c borrowedConn) ExecContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Result, error) {
	return forward(c, func(conn driver.ExecerContext) (driver.Result, error) {
		return conn.ExecContext(ctx, text, args)
	})
}

func (c borrowedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return forward(c, func(conn driver.ConnPrepareContext) (driver.Stmt, error) {
		return conn.PrepareContext(ctx, text)
	})
}

func (c borrowedConn) Prepare(text string) (driver.Stmt, error) {
	return forward(c, func(conn driver.Conn) (driver.Stmt, error) { return conn.Prepare(text) })
}

func (c borrowedConn) CheckNamedValue(v *driver.NamedValue) error {
	_, err := forward(c, func(conn driver.NamedValueChecker) (struct{}, error) {
		return struct{}{}, conn.CheckNamedValue(v)
	})

	return err
}

func (c borrowedConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c borrowedConn) Begin() (driver.Tx, error) { return c, nil }
func (c borrowedConn) Close() error              { return nil }
func (c borrowedConn) Commit() error             { return c.refuseEnd() }

func (c borrowedConn) Rollback() error { return c.refuseEnd() }

func (c borrowedConn) refuseEnd() error {
	if c.revoked.Load() {
		return nil
	}

	return errBorrowed
}
