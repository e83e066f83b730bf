package postgres_test

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/store"
)

// recorder sees what pgx sends: statements by its tracer, round trips by what is written to the connection.
type recorder struct {
	mu     sync.Mutex
	seen   []sqltest.Statement
	writes int
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.seen, r.writes = nil, 0
}

func (r *recorder) statements() []sqltest.Statement {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.seen
}

func (r *recorder) trips() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.writes
}

func (r *recorder) TraceQueryStart(
	ctx context.Context,
	_ *pgx.Conn,
	d pgx.TraceQueryStartData,
) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.seen = append(r.seen, sqltest.Statement{Text: strings.TrimSpace(d.SQL), Args: d.Args})

	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(
	ctx context.Context,
	_ *pgx.Conn,
	_ pgx.TraceBatchStartData,
) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(ctx context.Context, c *pgx.Conn, d pgx.TraceBatchQueryData) {
	r.TraceQueryStart(ctx, c, pgx.TraceQueryStartData{SQL: d.SQL, Args: d.Args})
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// dial returns a dialer whose connections count.
func (r *recorder) dial(inner pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := inner(ctx, network, addr)
		return counted{c, r}, err
	}
}

// counted counts writes: pgx writes once what it then waits for the answers of.
type counted struct {
	net.Conn
	r *recorder
}

func (c counted) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	c.r.writes++
	c.r.mu.Unlock()

	return c.Conn.Write(b)
}

func BenchmarkStore(b *testing.B) {
	conformance.BenchmarkStore(b, func(b *testing.B) store.Store { return open(b, durable(b), "") })
}

// BenchmarkCreate compares creations with commits of one row on the same server.
func BenchmarkCreate(b *testing.B) {
	db := durable(b)
	if _, err := db.Exec("CREATE TABLE raw (id text PRIMARY KEY, body text)"); err != nil {
		b.Fatal(err)
	}

	conformance.BenchmarkCreate(b, open(b, db, ""), func(ctx context.Context, id, body string) error {
		_, err := db.ExecContext(ctx, "INSERT INTO raw (id, body) VALUES ($1, $2)", id, body)
		return err
	})
}

// durable opens a database of a server that waits for the disk.
func durable(b *testing.B) *sql.DB {
	b.Helper()

	db, err := sql.Open("pgx", testenv.PostgresWith(b, testenv.PostgresOptions{Fsync: true}))
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)

	return db
}
