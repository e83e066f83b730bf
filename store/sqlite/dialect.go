package sqlite

// This file holds SQLite's dialect: arguments, joins and claims.

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

const prefix = "payments_"

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:      "SQLite",
		Prefix:    prefix,
		Arg:       argument,
		Upsert:    upsert,
		Returning: true,
		Unindexed: func(column string) string { return column + " || ''" },
		// A list is one argument, however long: SQLite bounds the number of arguments.
		Among: func(columns, table, condition, column string) string {
			return "SELECT " + columns + " FROM {" + table + "} WHERE " + column +
				" IN (SELECT value FROM json_each(?)) AND " + condition
		},
		// SQLite never changes the order of a CROSS JOIN.
		Each: func(table, alias, condition string) string {
			return "CROSS JOIN {" + table + "} " + alias + " ON " + condition
		},
		// A transaction that begins with a read may fail to become a writer with SQLITE_BUSY; one that begins
		// as a writer cannot.
		Begin:       "BEGIN IMMEDIATE",
		Running:     isRunning,
		Writers:     1,
		Rows:        1, // a statement of many rows is no faster here
		Due:         due,
		Claim:       claim,
		Validate:    validate,
		Explain:     explain,
		TableExists: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
		Goose:       goose.DialectSQLite3,
		// Times are microseconds since 1970 in UTC; booleans are 1 and 0.
		Types: sqlstore.Types{
			Text:      "TEXT",
			Key:       "TEXT",
			Int:       "INTEGER",
			Bool:      "INTEGER",
			Time:      "INTEGER",
			Bytes:     "BLOB",
			Hash:      "BLOB",
			JSON:      "TEXT",
			Heap:      "STRICT",
			Clustered: "STRICT, WITHOUT ROWID",
			Churned:   "STRICT",
			Partial:   true,
		},
	}
}

// isRunning reports whether a transaction runs; no other one can begin then. SQLite itself ends a transaction
// at some errors, such as an interrupted write (https://www.sqlite.org/lang_transaction.html).
func isRunning(ctx context.Context, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (bool, error) {
	_, err := on.ExecContext(ctx, "BEGIN")
	if err == nil {
		_, err = on.ExecContext(ctx, "ROLLBACK")
		return false, err
	}

	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_ERROR {
		return true, nil
	}

	return false, err
}

// upsert returns the clause for an insert whose key is taken.
func upsert(key, columns []string) string {
	clause := " ON CONFLICT (" + strings.Join(key, ", ") + ")"
	if len(columns) == 0 {
		return clause + " DO NOTHING"
	}

	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = excluded." + c
	}

	return clause + " DO UPDATE SET " + strings.Join(sets, ", ")
}

func argument(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UnixMicro()
	case bool:
		if v {
			return int64(1)
		}

		return int64(0)
	case []string:
		b, _ := json.Marshal(v) // cannot fail: strings
		return string(b)
	}

	return v
}

// validate inserts a row without a name, which is refused, if a row has another version, is gone or is new.
const validate = `INSERT INTO {leases} (name, owner, fence, note) SELECT NULL, '', 0, '' WHERE EXISTS (
	SELECT 1 FROM json_each(?1) a
	WHERE json_extract(?3, '$[' || a.key || ']') IS NOT CASE json_extract(?2, '$[' || a.key || ']') WHEN ''
		THEN (SELECT x.id || ' ' || x.version FROM {accounts} x WHERE x.id = a.value)
		ELSE (SELECT COALESCE(group_concat(e.id || ' ' || e.version, ',' ORDER BY e.id), '') FROM {endpoints} e
			WHERE e.account_id = a.value AND e.status <> 'disabled'
				AND e.livemode = (json_extract(?2, '$[' || a.key || ']') = 'live'))
		END
)`

// due walks from one endpoint with pending deliveries to the next by the index of pending deliveries.
const due = `WITH RECURSIVE e (id) AS (
	SELECT min(endpoint_id) FROM {deliveries} WHERE status = 'pending'
	UNION ALL
	SELECT (SELECT min(endpoint_id) FROM {deliveries} WHERE status = 'pending' AND endpoint_id > e.id)
	FROM e WHERE e.id IS NOT NULL
)
SELECT d.id FROM e CROSS JOIN {deliveries} d
WHERE e.id IS NOT NULL AND d.id IN (
	SELECT x.id FROM {deliveries} x
	WHERE x.status = 'pending' AND x.endpoint_id = e.id AND x.next_attempt_at <= ?
		AND (x.claimed_until IS NULL OR x.claimed_until <= ?)
	ORDER BY x.next_attempt_at, x.id LIMIT ?)
	AND e.id NOT IN (SELECT value FROM json_each(?))
	AND (NOT ? OR EXISTS (SELECT 1 FROM {endpoints} l WHERE l.id = e.id AND l.livemode))
ORDER BY d.next_attempt_at, d.id LIMIT ?`

// claim leaves out candidates that were claimed, put off or finished meanwhile.
const claim = `id IN (SELECT id FROM {deliveries} WHERE id IN (SELECT value FROM json_each(?)) AND status = 'pending'
	AND max(next_attempt_at, COALESCE(claimed_until, next_attempt_at)) <= ? ORDER BY next_attempt_at, id LIMIT ?)`
