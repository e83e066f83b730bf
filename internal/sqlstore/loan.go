package sqlstore

// This file lends a host the transaction as the *sql.Tx that its own code works with. The
// transaction was begun by a statement on the connection, so that database/sql knows of none: a
// driver of one connection that is already in its transaction makes one. The host cannot end it.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/seed-8ee7f392/payments/fault"
)

// loan is a *sql.Tx over a connection that somebody else holds.
type loan struct {
	tx   *sql.Tx
	db   *sql.DB
	over *atomic.Bool
}

// lend returns the transaction's *sql.Tx.
func (tx *transaction) lend() (*sql.Tx, error) {
	if tx.joined != nil {
		return tx.joined, nil
	}

	if tx.loan != nil {
		return tx.loan.tx, nil
	}

	if err := tx.usable(tx.life); err != nil {
		return nil, err
	}

	if err := tx.begin(tx.life); err != nil {
		return nil, err
	}

	l := &loan{over: &atomic.Bool{}}
	l.db = sql.OpenDB(lender{tx.session.conn, tx.store.options.Write.Driver(), l.over})

	var err error
	if l.tx, err = l.db.BeginTx(tx.life, nil); err != nil {
		return nil, errors.Join(err, l.db.Close())
	}

	tx.loan = l

	return l.tx, nil
}

// takeLoanBack ends what the host was lent, rows that it left open included.
func (tx *transaction) takeLoanBack() {
	if tx.loan == nil {
		return
	}

	tx.loan.over.Store(true)
	_ = tx.loan.tx.Rollback()
	_ = tx.loan.db.Close()
	tx.loan = nil
}

// lender connects to a connection that is there.
type lender struct {
	conn   *sql.Conn
	driver driver.Driver
	over   *atomic.Bool
}

func (l lender) Connect(context.Context) (driver.Conn, error) { return lent(l), nil }
func (l lender) Driver() driver.Driver                        { return l.driver }

// lent passes statements on.
type lent lender

// passOn calls f with the driver's own connection, as an interface of the driver's packages. A
// connection without it answers driver.ErrSkip, upon which database/sql does without.
func passOn[C, T any](l lent, f func(C) (T, error)) (answer T, err error) {
	rawErr := l.conn.Raw(func(raw any) error {
		c, ok := raw.(C)
		if !ok {
			err = driver.ErrSkip
			return nil
		}

		answer, err = f(c)

		return nil
	})
	if rawErr != nil {
		err = rawErr
	}

	return answer, err
}

func (l lent) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return passOn(
		l,
		func(c driver.QueryerContext) (driver.Rows, error) { return c.QueryContext(ctx, text, args) },
	)
}

func (l lent) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return passOn(
		l,
		func(c driver.ExecerContext) (driver.Result, error) { return c.ExecContext(ctx, text, args) },
	)
}

func (l lent) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return passOn(
		l,
		func(c driver.ConnPrepareContext) (driver.Stmt, error) { return c.PrepareContext(ctx, text) },
	)
}

func (l lent) Prepare(text string) (driver.Stmt, error) {
	return passOn(l, func(c driver.Conn) (driver.Stmt, error) { return c.Prepare(text) })
}

func (l lent) CheckNamedValue(v *driver.NamedValue) error {
	_, err := passOn(
		l,
		func(c driver.NamedValueChecker) (struct{}, error) { return struct{}{}, c.CheckNamedValue(v) },
	)

	return err
}

func (l lent) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return l, nil }
func (l lent) Begin() (driver.Tx, error)                                    { return l, nil }
func (l lent) Close() error                                                 { return nil }
func (l lent) Commit() error                                                { return l.ending() }
func (l lent) Rollback() error                                              { return l.ending() }

func (l lent) ending() error {
	if l.over.Load() {
		return nil
	}

	return fault.New(
		fault.State,
		"transaction_lent",
		"this transaction was lent by the store, which ends it: return an error from the closure to roll it back",
	)
}
