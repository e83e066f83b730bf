package sqlstore

// This file begins and ends transactions on their connections.
//
// An Update has no connection until its first write or lock; reads before that see committed rows, as at READ
// COMMITTED. An Update that only writes is sent whole after its closure has returned, together with others
// that end at the same time (group.go).

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// rollbackTimeout bounds a rollback; a connection on which it fails is closed.
	rollbackTimeout = 5 * time.Second
	// maxTogether is the most writes that are sent together with COMMIT: the caller's context cannot cancel
	// them.
	maxTogether = 100
)

// session is a connection for writing, owned by one transaction or one group at a time.
type session struct {
	conn *sql.Conn
	// prepared caches statements by text; nil on connections that return to the host's pool.
	prepared map[string]*sql.Stmt
	broken   bool
}

// acquireSession waits for a connection to write on.
func (s *sqlStore) acquireSession(ctx context.Context) (*session, error) {
	if s.writer == nil {
		conn, err := s.options.Write.Conn(ctx)
		if err != nil {
			return nil, s.explain(ctx, err, "connect to the database")
		}

		return &session{conn: conn}, nil
	}

	select {
	case c, open := <-s.writer:
		if !open {
			return nil, s.explain(ctx, sql.ErrConnDone, "connect to the database")
		}

		if c != nil {
			return c, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	conn, err := s.options.Write.Conn(ctx)
	if err != nil {
		s.writer <- nil
		return nil, s.explain(ctx, err, "connect to the database")
	}

	return &session{conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

// releaseSession returns the connection to the pool, or closes it when it is broken.
func (s *sqlStore) releaseSession(c *session) {
	switch {
	case s.writer == nil:
		c.close()
	case c.broken:
		c.close()

		s.writer <- nil
	default:
		s.writer <- c
	}
}

// close ends the statements before the connection: SQLite's are freed with it.
func (c *session) close() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}

	if c.broken {
		_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	}

	_ = c.conn.Close()
}

// exec runs one statement.
func (c *session) exec(ctx context.Context, text string, args []any) (int64, error) {
	if c.prepared == nil {
		return affected(c.conn.ExecContext(ctx, text, args...))
	}

	stmt := c.prepared[text]
	if stmt == nil {
		var err error
		if stmt, err = c.conn.PrepareContext(ctx, text); err != nil {
			return 0, err
		}

		c.prepared[text] = stmt
	}

	return affected(stmt.ExecContext(ctx, args...))
}

// affected returns how many rows a statement changed, given the result of its execution.
func affected(result driver.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}

	return result.RowsAffected()
}

// commit is the statement that commits.
const commit = "COMMIT"

// Batch is a list of statements with their arguments.
type Batch struct {
	// Begin and Commit are set if the transaction begins before the statements, and is committed after them.
	Begin, Commit bool
	// Texts are the statements, Args the arguments of each.
	Texts []string
	Args  [][]any
}

// grow allocates space for n more statements.
func (b *Batch) grow(n int) { b.Texts, b.Args = slices.Grow(b.Texts, n), slices.Grow(b.Args, n) }

func (b *Batch) add(text string, args []any) {
	b.Texts, b.Args = append(b.Texts, text), append(b.Args, args)
}

// OneByOne calls exec for each statement, after begin and before Commit if the batch has these. It returns
// the rows changed by each statement that succeeded.
func (b Batch) OneByOne(begin string, exec func(text string, args []any) (int64, error)) ([]int64, error) {
	changed := make([]int64, 0, len(b.Texts))
	if b.Begin {
		if _, err := exec(begin, nil); err != nil {
			return changed, err
		}
	}

	for i, text := range b.Texts {
		n, err := exec(text, b.Args[i])
		if err != nil {
			return changed, err
		}

		changed = append(changed, n)
	}

	if b.Commit {
		if _, err := exec(commit, nil); err != nil {
			return changed, err
		}
	}

	return changed, nil
}

// send runs a batch and returns the rows changed by each statement that succeeded.
func (s *sqlStore) send(ctx context.Context, c *session, b Batch) ([]int64, error) {
	if !b.Begin {
		if err := s.stillRuns(ctx, c.conn); err != nil {
			return nil, err
		}
	}

	if s.dialect.Send != nil {
		return s.dialect.Send(ctx, c.conn, b)
	}

	return b.OneByOne(
		s.dialect.Begin,
		func(text string, args []any) (int64, error) { return c.exec(ctx, text, args) },
	)
}

// stillRuns returns an error if the server has ended the transaction on a connection.
func (s *sqlStore) stillRuns(ctx context.Context, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) error {
	if s.dialect.Running == nil {
		return nil
	}

	running, err := s.dialect.Running(ctx, on)
	if err != nil || running {
		return err
	}

	return fault.New(
		fault.Conflict, transactionAborted,
		"the database has ended the transaction; run the operation again",
	)
}

// transactionAborted is the code of a statement that failed because an earlier one in the transaction had.
const transactionAborted = "transaction_aborted"

// readOnly is the code of an error that means that the server takes no writes.
const readOnly = "database_read_only"

// retire marks the session broken after an error that means that its server takes no writes: it was the
// primary when the pool connected, but now another server is.
func (c *session) retire(err error) {
	if fault.Code(err) == readOnly {
		c.broken = true
	}
}

// rollBack rolls back the connection's transaction, and marks the session broken when that fails.
func (c *session) rollBack() {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()

	if _, err := c.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		c.broken = true
	}
}

// connect acquires the connection of an Update.
func (tx *transaction) connect(ctx context.Context) error {
	if tx.session != nil {
		return nil
	}

	c, err := tx.store.acquireSession(ctx)
	if err != nil {
		tx.broken = err
		return err
	}

	tx.session, tx.on = c, &sqlx.Conn{Conn: c.conn, Mapper: mapper}

	return nil
}

// begin begins an Update's transaction, for a statement that cannot be sent with BEGIN.
func (tx *transaction) begin(ctx context.Context) error {
	if tx.joined != nil || tx.begun {
		return nil
	}

	if tx.claimWait() > 0 {
		return tx.flush(ctx) // a claim comes before any lock
	}

	if err := tx.connect(ctx); err != nil {
		return err
	}

	tx.begun = true
	if _, err := tx.store.send(ctx, tx.session, Batch{Begin: true}); err != nil {
		return tx.breakWith(ctx, err, "begin a transaction")
	}

	return nil
}

// commit sends the buffered writes and commits. life is the context of the COMMIT itself; end cancels it.
func (tx *transaction) commit(ctx, life context.Context, end func()) error {
	tx.revokeBorrowed()

	together := tx.commitsWithWrites()
	if together && !tx.begun {
		if err := tx.usable(ctx); err != nil {
			return err
		}

		return tx.store.group.commit(ctx, tx)
	}

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
	case together:
		return tx.sendBuffered(life, true)
	case tx.begun, len(tx.premises) > 0:
		return tx.commitSent(life)
	}

	return nil // there were only reads
}

// commitSent commits writes that were sent before. If there were none, it only validates the closure's reads.
func (tx *transaction) commitSent(life context.Context) error {
	if err := tx.connect(life); err != nil {
		return err
	}

	b := Batch{Begin: !tx.begun, Commit: true}
	tx.store.validate(&b, tx.premises)
	tx.begun = true

	_, err := tx.store.send(life, tx.session, b)

	return tx.explain(life, err, "commit")
}

// commitsWithWrites reports whether COMMIT may be sent together with the writes: there are at most
// maxTogether, and each changes its row or fails.
func (tx *transaction) commitsWithWrites() bool {
	if len(tx.writes) == 0 || len(tx.writes) > maxTogether {
		return false
	}

	for _, w := range tx.writes {
		if w.one && !w.certain {
			return false
		}
	}

	return true
}

// rollBack revokes the borrowed *sql.Tx and rolls the transaction back.
func (tx *transaction) rollBack() {
	tx.revokeBorrowed()

	if tx.begun && tx.session != nil {
		tx.session.rollBack()
		tx.begun = false
	}
}
