// Package sqltest holds what the tests of the SQL stores share: a driver that records statements, and the
// queries whose plans are looked at.
package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
)

// Statement is one statement as it went to the driver.
type Statement struct {
	Text string
	Args []any
}

// Recorder counts what a database is asked.
type Recorder struct {
	mu                sync.Mutex
	statements        []Statement
	begins, commits   int
	failAt, countdown int
}

// Take returns what was recorded since the last call.
func (r *Recorder) Take() (statements []Statement, begins, commits int) {
	r.mu.Lock()
	defer r.mu.Unlock()

	statements, begins, commits = r.statements, r.begins, r.commits
	r.statements, r.begins, r.commits = nil, 0, 0

	return statements, begins, commits
}

// ErrInjected is the failure that FailAt asks for.
var ErrInjected = errors.New("sqltest: injected failure")

// FailAt lets the n-th changing statement from now on fail, from 1; 0 none.
func (r *Recorder) FailAt(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.failAt, r.countdown = n, n
}

func (r *Recorder) see(text string, args []driver.NamedValue, changes bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}

	switch {
	case strings.HasPrefix(text, "BEGIN"):
		r.begins++
		return nil
	case text == "COMMIT":
		r.commits++
		return nil
	}

	r.statements = append(r.statements, Statement{text, values})
	if changes && r.failAt > 0 {
		if r.countdown--; r.countdown == 0 {
			return ErrInjected
		}
	}

	return nil
}

// Open opens a database of a driver, recorded.
func Open(d driver.Driver, dsn string, r *Recorder) *sql.DB {
	return sql.OpenDB(connector{d, dsn, r})
}

type connector struct {
	driver driver.Driver
	dsn    string
	r      *Recorder
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}

	return &conn{inner, c.r}, nil
}

// conn records, and sends every statement by ExecContext or QueryContext.
type conn struct {
	driver.Conn
	r *Recorder
}

func (c *conn) ExecContext(
	ctx context.Context,
	text string,
	args []driver.NamedValue,
) (driver.Result, error) {
	if err := c.r.see(text, args, true); err != nil {
		return nil, err
	}

	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.r.see(text, args, false); err != nil {
		return nil, err
	}

	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}
