// Package postgres is a store in a PostgreSQL database (13 or later), which many processes share: they need
// no other coordination.
//
// It works on the host's own *sql.DB, which must be one of pgx (github.com/jackc/pgx/v5/stdlib): pool, TLS
// and credentials are the host's. A transaction sends its writes in one pipelined batch before it commits.
// Transactions that only write and end at the same time are sent together. The pool may be as small as one
// connection. A tracer sees every statement. Behind a proxy that pools transactions, set pgx's
// DefaultQueryExecMode as for any other use of the proxy.
//
// The database ends a transaction of the store that stands still for 10 s, so that a stopped or cut-off
// process keeps no lock. If the host has set an idle_in_transaction_session_timeout, that one applies
// instead.
//
// Tables begin with payments_ and lie in the schema of Options, or in the first of the search path. The work
// is done in store/sqlstore, which store/sqlite shares.
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Options say where the tables are, and how processes wake each other.
type Options struct {
	// Schema holds the tables: a lower-case name of letters, digits and underscores, at most 48 characters.
	// Defaults to the first schema of the connection's search path.
	Schema string
	// Distributed is set if the database is the coordinator of a Citus cluster, over whose nodes Migrate
	// spreads the tables by account; see docs/distributed.md. It must be the same for Migrate and New.
	Distributed bool
	// ListenConn opens a separate connection, which a running engine closes. On it the engine listens for
	// work that other processes make: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx,
	// dsn) }. It must lead to the database itself, not through a proxy that pools transactions. Defaults to
	// nil: no wake-ups are sent or received, and other processes' work is found by polling.
	ListenConn func(ctx context.Context) (*pgx.Conn, error)
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// prefix returns the prefix of table names.
func (o Options) prefix() string { return o.qualifier() + "payments_" }

// qualifier returns the schema with a dot, or "" without one.
func (o Options) qualifier() string {
	if o.Schema == "" {
		return ""
	}

	return o.Schema + "."
}

func (o Options) check() error {
	if o.Schema != "" && !schemaName.MatchString(o.Schema) {
		return fault.New(
			fault.Invalid,
			"schema_invalid",
			"%q cannot be the schema: use at most 48 lower-case letters, digits and underscores, not "+
				"beginning with a digit",
			o.Schema,
		)
	}

	return nil
}

// Store is a store over PostgreSQL. Its methods are those of store.Store and store.Waker.
type Store struct {
	sqlstore.Store
	options Options
	db      *sql.DB
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Waker = (*Store)(nil)
	_ store.Clock = (*Store)(nil)
)

// New returns a store over a database that the host opened and closes, and whose schema the host
// brings up to date with Migrate or Migrations. It does not touch the database: the first use
// answers fault.Unavailable if the schema is not the one this code was written for.
func New(db *sql.DB, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open the PostgreSQL store: %w", err)
	}

	st, err := sqlstore.New(sqlstore.Options{Dialect: dialect(o), Write: db})
	if err != nil {
		return nil, fmt.Errorf("open the PostgreSQL store: %w", err)
	}

	return &Store{st, o, db}, nil
}

// Join returns a transaction inside the host's own and the function that sends its buffered writes, which the
// host calls before it commits. Nothing is retried: fault.Conflict goes to the host, which rolls back.
func Join(tx *sql.Tx, o Options) (joined store.Tx, flush func(ctx context.Context) error, err error) {
	if err := o.check(); err != nil {
		return nil, nil, fmt.Errorf("join a transaction: %w", err)
	}

	return sqlstore.Join(dialect(o), tx)
}

// SQLTx returns the SQL transaction under a transaction of a SQL store, so that a host's hook can write its
// own rows in it. It does not see writes that the store still buffers. The host must not end it. A hook must
// read through tx or the SQL transaction alone: any other read takes a second connection of the pool. If
// hooks hold all connections while each waits for a second one, they wait for ever.
//
// Errors, which a hook returns as they are: fault.Unsupported (transaction_not_sql) for other stores;
// fault.Unavailable and fault.Conflict when the database does not begin the transaction, or has ended it.
func SQLTx(tx store.Tx) (*sql.Tx, error) { return sqlstore.SQL(tx) }
