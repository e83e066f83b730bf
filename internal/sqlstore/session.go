package sqlstore

// This file holds how a transaction begins and ends on its connection.
//
// A transaction of ours has no connection until its first write or lock: what it only reads before
// that sees what is committed, as it would at READ COMMITTED. One that only writes is sent whole,
// when its closure has returned, together with others that do so at the same time (group.go).

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

const (
	// rollbackTimeout bounds a roll-back; a connection on which it fails is thrown away.
	rollbackTimeout = 5 * time.Second
	// maxTogether bounds how many writes are sent together with COMMIT, since then the caller's
	// context no longer ends them.
	maxTogether = 100
)

// session is a connection for writing, in the hands of one transaction or of one group of them.
type session struct {
	conn *sql.Conn
	// prepared are the statements of puts and ends; nil on connections that come back to the host's pool.
	prepared map[string]*sql.Stmt
	broken   bool
}

// open waits for a connection to write on.
func (s *Store) open(ctx context.Context) (*session, error) {
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

// leave gives the connection back, or ends it when it is broken.
func (s *Store) leave(c *session) {
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
		return Affected(c.conn.ExecContext(ctx, text, args...))
	}

	stmt := c.prepared[text]
	if stmt == nil {
		var err error
		if stmt, err = c.conn.PrepareContext(ctx, text); err != nil {
			return 0, err
		}

		c.prepared[text] = stmt
	}

	return Affected(stmt.ExecContext(ctx, args...))
}

// Affected returns how many rows a statement changed, given what running it answered.
func Affected(result driver.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}

	return result.RowsAffected()
}

// Commit is the statement that commits.
const Commit = "COMMIT"

// Batch is a run of statements, and what goes before and after them.
type Batch struct {
	Begin, Commit bool
	Texts         []string
	Args          [][]any
}

func (b *Batch) add(text string, args []any) {
	b.Texts, b.Args = append(b.Texts, text), append(b.Args, args)
}

// OneByOne hands the statements of the batch to exec, between begin and Commit where the batch has
// these, and returns how many rows each one changed, as far as it got.
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
		if _, err := exec(Commit, nil); err != nil {
			return changed, err
		}
	}

	return changed, nil
}

// send runs a batch and returns how many rows each statement changed, as far as it got.
func (s *Store) send(ctx context.Context, c *session, b Batch) ([]int64, error) {
	if s.dialect.Send != nil {
		return s.dialect.Send(ctx, c.conn, b)
	}

	return b.OneByOne(
		s.dialect.Begin,
		func(text string, args []any) (int64, error) { return c.exec(ctx, text, args) },
	)
}

// rollBack ends what runs on the connection without effect.
func (c *session) rollBack() {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()

	if _, err := c.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		c.broken = true
	}
}

// connect gives a transaction of ours its connection.
func (tx *transaction) connect(ctx context.Context) error {
	if tx.session != nil {
		return nil
	}

	c, err := tx.store.open(ctx)
	if err != nil {
		tx.broken = err
		return err
	}

	tx.session, tx.on = c, c.conn

	return nil
}

// begin begins a transaction of ours, for a statement that cannot travel with BEGIN.
func (tx *transaction) begin(ctx context.Context) error {
	if tx.joined != nil || tx.begun {
		return nil
	}

	if err := tx.connect(ctx); err != nil {
		return err
	}

	tx.begun = true
	if _, err := tx.session.exec(ctx, tx.store.dialect.Begin, nil); err != nil {
		return tx.fail(ctx, err, "begin a transaction")
	}

	return nil
}

// commit sends what is buffered and commits. life is the context of the commit itself, and end ends it.
func (tx *transaction) commit(ctx, life context.Context, end func()) error {
	tx.takeLoanBack()

	together := tx.certain()
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
		return tx.deliver(life, true)
	case tx.begun:
		_, err := tx.store.send(life, tx.session, Batch{Commit: true})
		return tx.store.explain(life, err, "commit")
	}

	return nil // nothing but reads
}

// certain reports whether there are writes, few enough, and each of them changes its row or fails.
func (tx *transaction) certain() bool {
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

// rollBack ends the transaction without effect.
func (tx *transaction) rollBack() {
	tx.takeLoanBack()

	if tx.begun {
		tx.session.rollBack()
	}
}
