package postgres

// This file sends a batch of statements as one pipeline: all are sent before the first result is read.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

const (
	begin  = "BEGIN"
	commit = "COMMIT"
	// boundIdle has the database end a transaction whose process stands still, is cut off or is gone without
	// notice: it would keep its locks otherwise. If the host has set a limit, it is left as it is.
	boundIdle = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true)
WHERE current_setting('idle_in_transaction_session_timeout') = '0'`
)

// statementLost is SQLSTATE invalid_sql_statement_name: the connection's prepared statements were
// discarded, for example by DISCARD ALL.
const statementLost = "26000"

// send runs a batch. A wrapped driver's connection gets the statements one by one.
func send(ctx context.Context, conn *sql.Conn, b sqlstore.Batch) (changed []int64, err error) {
	rawErr := conn.Raw(func(raw any) error {
		switch c := raw.(type) {
		case *stdlib.Conn:
			changed, err = pipeline(ctx, c.Conn(), b)
		case driver.ExecerContext:
			changed, err = b.OneByOne(
				begin,
				func(text string, args []any) (int64, error) { return exec(ctx, c, text, args) },
			)
		default:
			err = errors.New("the database's driver is not pgx")
		}

		return nil
	})

	return changed, errors.Join(err, rawErr)
}

// exec runs one statement on a wrapped driver. In a failed transaction COMMIT rolls back, and only its
// command tag shows that. Drivers do not return the tag, so a statement sent before COMMIT fails instead.
func exec(ctx context.Context, c driver.ExecerContext, text string, args []any) (int64, error) {
	if text == commit {
		if _, err := c.ExecContext(ctx, "SELECT 1", nil); err != nil {
			return 0, err
		}
	}

	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}

	result, err := c.ExecContext(ctx, text, named)
	if err != nil {
		return 0, err
	}

	if text == begin {
		return exec(ctx, c, boundIdle, nil)
	}

	return result.RowsAffected()
}

// pipeline sends a batch on pgx's own connection. It omits BEGIN and COMMIT if the batch has both: a pipeline
// is an implicit transaction, committed when all of it succeeded (PostgreSQL documentation, "Pipelining").
func pipeline(ctx context.Context, c *pgx.Conn, b sqlstore.Batch) (changed []int64, err error) {
	texts, args := b.Texts, b.Args

	begins, commits := b.Begin && !b.Commit, b.Commit && !b.Begin
	if begins {
		texts, args = append([]string{begin, boundIdle}, texts...), append([][]any{nil, nil}, args...)
	}

	if commits {
		texts = append(texts[:len(texts):len(texts)], commit)
		args = append(args[:len(args):len(args)], nil)
	}

	exchange := exchangeByPgx
	if plain(c) {
		exchange = exchangePrepared
	}

	tags, err := exchange(ctx, c, texts, args)
	if err == nil && commits && tags[len(tags)-1].String() != commit {
		err = pgx.ErrTxCommitRollback
	}

	if begins {
		tags = tags[min(2, len(tags)):]
	}

	changed = make([]int64, 0, len(b.Texts))
	for _, tag := range tags[:min(len(tags), len(b.Texts))] {
		changed = append(changed, tag.RowsAffected())
	}

	return changed, err
}

// plain reports whether the connection has neither a tracer nor a query mode that the host chose, for a
// pooler for example. Only pgx's own methods honour those.
func plain(c *pgx.Conn) bool {
	return known(c, "payments: plain", func(config *pgx.ConnConfig) bool {
		return config.Tracer == nil && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	})
}

// traced reports whether the connection has a tracer.
func traced(c *pgx.Conn) bool {
	return known(c, "payments: traced", func(config *pgx.ConnConfig) bool { return config.Tracer != nil })
}

// known returns a property of a connection's settings. It reads them only once, because that copies them.
func known(c *pgx.Conn, key string, says func(*pgx.ConnConfig) bool) bool {
	data := c.PgConn().CustomData()
	if _, ok := data[key]; !ok {
		data[key] = says(c.Config())
	}

	return data[key].(bool)
}

// exchangeByPgx sends statements as a pgx batch and returns the tags of the successful ones.
func exchangeByPgx(
	ctx context.Context,
	c *pgx.Conn,
	texts []string,
	args [][]any,
) ([]pgconn.CommandTag, error) {
	queue := &pgx.Batch{}
	for i, text := range texts {
		queue.Queue(text, args[i]...)
	}

	results := c.SendBatch(ctx, queue)

	tags := make([]pgconn.CommandTag, 0, len(texts))
	for range texts {
		tag, err := results.Exec()
		if err != nil {
			_ = results.Close()
			return tags, err
		}

		tags = append(tags, tag)
	}

	return tags, results.Close()
}

// exchangePrepared does the same one layer below pgx's batches. It encodes parameters into reused buffers,
// while a batch allocates for each statement: half of an invoice creation's allocations. The store's
// statements are few, and stay prepared as long as their connection lives.
func exchangePrepared(
	ctx context.Context,
	c *pgx.Conn,
	texts []string,
	args [][]any,
) ([]pgconn.CommandTag, error) {
	statements := make([]*pgconn.StatementDescription, len(texts))
	for i, text := range texts {
		var err error
		if statements[i], err = c.Prepare(ctx, text, text); err != nil {
			return nil, err
		}
	}

	line := c.PgConn().StartPipeline(ctx)

	tags, err := exchangeOn(line, c.TypeMap(), statements, args)
	if err == nil {
		return tags, line.Close()
	}

	_ = line.Close()

	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == statementLost {
		for _, text := range texts { // they are prepared anew when the operation runs again
			_ = c.Deallocate(ctx, text)
		}
	}

	return tags, err
}

// exchangeOn sends prepared statements on a pipeline and returns the tags of the successful ones. It leaves
// the pipeline open.
func exchangeOn(
	line *pgconn.Pipeline,
	types *pgtype.Map,
	statements []*pgconn.StatementDescription,
	args [][]any,
) ([]pgconn.CommandTag, error) {
	params := buffers.Get().(*parameters)
	defer buffers.Put(params)

	tags := make([]pgconn.CommandTag, 0, len(statements))

	for i, statement := range statements {
		if err := params.encode(types, statement.ParamOIDs, args[i]); err != nil {
			return tags, fmt.Errorf("%s: %w", statement.SQL, err)
		}

		line.SendQueryStatement(statement, params.values, binary, nil)
	}

	if err := line.Sync(); err != nil {
		return tags, err
	}

	for range statements {
		result, err := line.GetResults()
		if err != nil {
			return tags, err
		}

		reader, ok := result.(*pgconn.ResultReader)
		if !ok {
			return tags, fmt.Errorf("the database answered a statement with %T", result)
		}

		tag, err := reader.Close()
		if err != nil {
			return tags, err
		}

		tags = append(tags, tag)
	}

	return tags, nil
}

// parameters holds the parameters of one statement in the binary format.
type parameters struct {
	values [][]byte
	bytes  []byte // the bytes that values point into
}

var binary = []int16{pgtype.BinaryFormatCode} // of all parameters

// The bytes are never nil, which would make a NULL of an empty text.
var buffers = sync.Pool{New: func() any { return &parameters{bytes: []byte{}} }}

// encode replaces the parameters. A string is of type text or JSON, whose binary format is the text.
func (p *parameters) encode(types *pgtype.Map, oids []uint32, args []any) error {
	if len(args) != len(oids) {
		return fmt.Errorf("the statement takes %d parameters, not %d", len(oids), len(args))
	}

	p.values, p.bytes = p.values[:0], p.bytes[:0]

	for i, arg := range args {
		var grown []byte
		if text, ok := arg.(string); ok {
			grown = append(p.bytes, text...)
		} else {
			var err error
			if grown, err = types.Encode(oids[i], pgtype.BinaryFormatCode, arg, p.bytes); err != nil {
				return fmt.Errorf("parameter %d: %w", i+1, err)
			}
		}

		if grown == nil { // NULL
			p.values = append(p.values, nil)
			continue
		}

		p.values, p.bytes = append(p.values, grown[len(p.bytes):]), grown
	}

	return nil
}
