package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/fault"
)

// Dialect holds the differences between databases: all SQL that is not the same everywhere. Statements are
// templates: {name} is the full name of a table, and ? the next parameter.
type Dialect struct {
	// Name is the database's name in messages.
	Name string
	// Prefix is the prefix of table names: "payments_", optionally after a schema and a dot.
	Prefix string
	// Numbered makes parameters $1, $2 … instead of ?.
	Numbered bool
	// Arg converts an argument (nil, string, int64, bool, []byte, time.Time, []string) for the driver.
	// Defaults to no conversion.
	Arg func(any) any

	// Goose is the name of the dialect in goose, which applies the schema.
	Goose goose.Dialect
	// Locker makes the lock of migrations, such as goose's lock.NewPostgresTableLocker. Defaults to none, for
	// databases whose processes do not migrate at the same time.
	Locker func(options ...lock.TableLockerOption) (lock.Locker, error)
	// Types are the types of columns and the kinds of tables.
	Types Types
	// TableExists counts the tables of a name, its argument: 0 or 1.
	TableExists string

	// Begin begins a transaction that may write, at READ COMMITTED or above.
	Begin string
	// Send runs a batch, in one round trip if it can, and returns the number of rows that each statement
	// changed. On an error, it returns them for the statements before the one that failed. A commit fails if
	// the transaction was rolled back instead. Defaults to statements one by one.
	Send func(ctx context.Context, conn *sql.Conn, b Batch) ([]int64, error)
	// SendJoined runs a batch inside a host's transaction, in one round trip if it can, and returns the same
	// as Send. Defaults to statements one by one.
	SendJoined func(ctx context.Context, tx *sql.Tx, b Batch) ([]int64, error)
	// Running reports whether the transaction on a connection still runs, for servers that may end one by
	// themselves: each later statement would then commit alone. It is called before each batch that begins no
	// transaction. Nil if the server refuses later statements.
	Running func(ctx context.Context, on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}) (bool, error)
	// Writers is how many groups of transactions are committed at once; Rows is the most rows that one
	// statement inserts.
	Writers, Rows int
	// Concurrent is set if several transactions write at once, so that rows that do not exist yet need
	// locking too.
	Concurrent bool
	// Lock is appended to a SELECT to lock its rows; empty if there is a single writer.
	Lock string
	// LockEach selects columns of {table} from the rows whose column, its key, has one of a list of values,
	// the query's first argument ([]string). It locks the rows one after the other in the order of the list.
	// Required if Concurrent is set.
	LockEach func(columns, table, column string) string

	// Upsert is appended to an INSERT. On a row with the same key it replaces the columns. Without columns it
	// leaves that row as it is, and the statement changes no row.
	Upsert func(key, columns []string) string
	// Returning is set if INSERT with ON CONFLICT, and UPDATE, return rows by RETURNING.
	Returning bool
	// Unindexed returns an expression for the value of a text column that no index serves.
	Unindexed func(column string) string
	// Among selects columns of {table} from the rows under the condition whose column has one of a list of
	// values, the query's first argument ([]string). It makes one look-up by index per value, independent of
	// the planner's statistics.
	Among func(columns, table, condition, column string) string
	// Each joins {table} AS alias to the preceding part of a FROM clause. For each row there, in their order,
	// it looks up the rows under the condition; the condition names columns of the table by the alias.
	Each func(table, alias, condition string) string
	// Due selects from {deliveries} the ids of due deliveries by time and id, with their account_id if tables
	// are spread. Its arguments are now, now, the most deliveries of one endpoint, and the limit.
	Due string
	// Claim is the condition on {deliveries} that picks those to claim, which are still pending, due and
	// unclaimed. With Returning it is the condition of an UPDATE, and locks them; else it is that of a SELECT
	// that Lock is appended to. Its arguments are the ids to choose from ([]string), now and the limit. If
	// tables are spread, the account of those deliveries follows.
	Claim string
	// Validate is a statement that fails with fault.Conflict unless the rows that a transaction was given
	// without reading them are unchanged. Its arguments are lists of one length ([]string). The first has ids
	// of accounts. The second has "live" or "test" for the endpoints of that mode that are not disabled, and
	// "" for the account itself. The third has the rows, each as its id, a space and its version, in the
	// order of their ids, with commas between them. Defaults to none: every transaction reads what it needs.
	Validate string
	// Bound returns a batch, in the batch's own round trip, whose statements wait at most a time for locks.
	// It also returns the index of the batch's first statement in it. Defaults to the batch itself, for
	// databases that do not wait.
	Bound func(b Batch, wait time.Duration) (bounded Batch, first int)

	// Explain classifies a driver's error.
	Explain func(error) Explanation
}

// check returns fault.Invalid if a field without a default is missing.
func (d *Dialect) check() error {
	var missing []string

	for name, there := range map[string]bool{
		"Name":        d.Name != "",
		"Prefix":      d.Prefix != "",
		"Goose":       d.Goose != "",
		"Types":       d.Types.complete(),
		"TableExists": d.TableExists != "",
		"Begin":       d.Begin != "",
		"Writers":     d.Writers > 0,
		"Rows":        d.Rows > 0,
		"Upsert":      d.Upsert != nil,
		"Unindexed":   d.Unindexed != nil,
		"Among":       d.Among != nil,
		"Each":        d.Each != nil,
		"LockEach":    d.LockEach != nil || !d.Concurrent,
		"Due":         d.Due != "",
		"Claim":       d.Claim != "",
		"Explain":     d.Explain != nil,
	} {
		if !there {
			missing = append(missing, name)
		}
	}

	if len(missing) == 0 {
		return nil
	}

	slices.Sort(missing)

	return fault.New(
		fault.Invalid, "dialect_incomplete",
		"the dialect of a SQL store lacks %s", strings.Join(missing, ", "),
	)
}

// Explanation classifies a driver's error.
type Explanation struct {
	// Word is a kind of package fault; nil if callers can do nothing about the error.
	Word error
	// Code is the fault code; Sentence explains to people what happened and what to do.
	Code, Sentence string
}

// text makes the statement of a template. Templates have no other braces and question marks.
func (d *Dialect) text(template string) string {
	named := strings.NewReplacer("{", d.Prefix, "}", "").Replace(template)
	if !d.Numbered {
		return named
	}

	return sqlx.Rebind(sqlx.DOLLAR, named)
}

func (d *Dialect) args(values []any) []any {
	if d.Arg == nil {
		return values
	}

	out := make([]any, len(values))
	for i, v := range values {
		out[i] = d.Arg(v)
	}

	return out
}
