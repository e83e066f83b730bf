package sqlstore

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

// Dialect holds what differs between the databases.
type Dialect struct {
	// Name is the database's name in messages.
	Name string
	// Prefix is the prefix of table names: "payments_", optionally after a schema and a dot.
	Prefix string
	// Numbered says that parameters are $1, $2 … instead of ?.
	Numbered bool
	// Arg converts an argument (nil, string, int64, bool, []byte, time.Time, []string) for the driver.
	// Defaults to no conversion.
	Arg func(any) any
	// In is the condition that a column is in a short list that is one argument of type []string,
	// as filters have it.
	In func(column string) string
	// Among selects columns of {table} from the rows under the condition whose column has one of a
	// list of values, the query's first argument: one look-up by index per value, whatever the
	// planner knows of the table.
	Among func(columns, table, condition, column string) string
	// Each joins {table} AS alias to what stands before it in a FROM, by a look-up of the rows
	// under the condition for each row there, in the order of those; the condition names columns of
	// the table without the alias.
	Each func(table, alias, condition string) string
	// Lock is appended to a SELECT to lock its rows; empty where there is a single writer.
	Lock string
	// Concurrent says that several transactions write at once, so that rows that do not exist yet
	// need locking too.
	Concurrent bool
	// Due selects from {deliveries}, in columns, the ids of up to ? (last argument) due deliveries,
	// at most ? of one endpoint. Its arguments are now, now, the number per endpoint and the limit.
	Due string
	// Claim is the condition on {deliveries} that picks those to claim and locks them. Its
	// arguments are the ids to choose from, now and the limit.
	Claim string
	// BeforeClaim and AfterClaim bound how long the insert of an idempotency key waits; BeforeClaim takes
	// the milliseconds. Empty where nothing is waited for.
	BeforeClaim, AfterClaim string
	// Begin begins a transaction that may write.
	Begin string
	// Writers is how many groups of transactions are committed at once; Rows, how many rows one
	// statement inserts at most.
	Writers, Rows int
	// Send runs a batch in one round trip where it can, and returns the number of rows each
	// statement changed; on an error, those before the statement that failed. A commit fails when
	// the transaction was rolled back instead. nil: statements are run one by one.
	Send func(ctx context.Context, conn *sql.Conn, b Batch) ([]int64, error)
	// Explain says what kind of error a driver's error is.
	Explain func(error) Explanation
	// Types are the types of columns and the kinds of tables.
	Types Types
	// TableExists counts the tables of a name, its argument: 0 or 1.
	TableExists string
	// Goose is the name of the dialect in goose, which applies the schema.
	Goose goose.Dialect
}

// Explanation classifies a driver's error.
type Explanation struct {
	// Word is one of package fault's; nil when the error is none that callers can do something about.
	Word error
	// Code is the fault code, Sentence says for people what happened and what to do.
	Code, Sentence string
}

// text makes the statement of a template: {name} becomes the table's full name, and ? the next parameter.
// Templates hold no other braces and question marks.
func (d *Dialect) text(template string) string {
	var b strings.Builder
	b.Grow(len(template) + 64)

	n := 0

	for i := range len(template) {
		switch c := template[i]; {
		case c == '{':
			b.WriteString(d.Prefix)
		case c == '}':
		case c == '?' && d.Numbered:
			n++

			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		default:
			b.WriteByte(c)
		}
	}

	return b.String()
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
