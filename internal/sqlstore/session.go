package sqlstore

// This file holds how a transaction begins and ends on its connection.
//
// Where statements are pipelined (Dialect.Send), it begins with its first write or lock: what is only read before that sees
// what is committed, as it would at READ COMMITTED inside the transaction. BEGIN travels with the first
// statements, and COMMIT with the last ones when none of these can miss its row without failing. A creation that locks
// nothing is one round trip.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// Begin and Commit are the statements that Dialect.Send is given among the others.
const (
	Begin    = "BEGIN"
	Commit   = "COMMIT"
	rollback = "ROLLBACK"
)

const (
	// rollbackTimeout bounds a roll-back; a connection on which it fails is thrown away.
	rollbackTimeout = 5 * time.Second
	// maxWithCommit bounds how many writes are sent together with COMMIT, since then the caller's context no longer
	// ends them.
	maxWithCommit = 100
)

// executor runs statements: a *sql.Conn, or a *sql.Tx that a driver or a host began.
type executor interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// late reports whether the transaction begins with its first write.
func (tx *transaction) late() bool { return tx.conn != nil && tx.store.dialect.Send != nil }

// begin begins the transaction, for a statement that cannot travel with BEGIN.
func (tx *transaction) begin(ctx context.Context) error {
	if !tx.late() || tx.begun {
		return nil
	}
	tx.begun = true
	if _, err := tx.conn.ExecContext(ctx, Begin); err != nil {
		return tx.fail(ctx, err, "begin a transaction")
	}
	return nil
}

// commit sends what is buffered and commits. life is the context of the commit itself, and end ends it.
func (tx *transaction) commit(ctx, life context.Context, end func()) error {
	tx.takeLoanBack()
	together := tx.late() && tx.certain()
	if !together {
		if err := tx.flush(ctx); err != nil {
			return err
		}
	}
	if err := tx.usable(ctx); err != nil {
		return err
	}
	limit := time.AfterFunc(commitTimeout, end)
	defer limit.Stop()
	switch {
	case !tx.late():
		return tx.store.explain(life, tx.sql.Commit(), "commit")
	case together:
		return tx.deliver(life, Commit)
	case tx.begun:
		_, err := tx.store.dialect.Send(life, tx.conn, []string{Commit}, [][]any{nil})
		return tx.store.explain(life, err, "commit")
	}
	return nil // nothing but reads
}

// certain reports whether there are writes, few enough, and each of them changes its row or fails.
func (tx *transaction) certain() bool {
	if len(tx.writes) == 0 || len(tx.writes) > maxWithCommit {
		return false
	}
	for _, w := range tx.writes {
		if w.one && !w.certain {
			return false
		}
	}
	return true
}

// rollBack ends the transaction without effect.
func (tx *transaction) rollBack() {
	tx.takeLoanBack()
	switch {
	case !tx.late():
		_ = tx.sql.Rollback()
	case tx.begun:
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		if _, err := tx.conn.ExecContext(ctx, rollback); err != nil {
			_ = tx.conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}
}
