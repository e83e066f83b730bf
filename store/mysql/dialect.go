package mysql

// This file holds MariaDB's dialect: types, locks, joins and claims.

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

const prefix = "payments_"

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:   "MariaDB",
		Prefix: prefix,
		Arg:    argument,

		Goose:  goose.DialectMySQL,
		Locker: lock.NewMySQLTableLocker,
		Types:  types,
		TableExists: "SELECT count(*) FROM information_schema.tables " +
			"WHERE table_schema = DATABASE() AND table_name = ?",

		Begin:      "START TRANSACTION",
		Send:       send,
		Running:    isRunning,
		Writers:    2,
		Rows:       8,
		Concurrent: true,
		Lock:       " FOR UPDATE",
		// Without a forced index a small table is read, and locked, as a whole.
		LockEach: func(columns, table, column string) string {
			return "SELECT " + columns + " FROM (" + list + ") w STRAIGHT_JOIN {" + table +
				"} FORCE INDEX (PRIMARY) ON " + column + " = w.value FOR UPDATE"
		},

		Upsert:    upsert,
		Unindexed: func(column string) string { return "CONCAT(" + column + ", '')" },
		Among: func(columns, table, condition, column string) string {
			return "SELECT " + columns + " FROM {" + table + "} WHERE " + column + " IN (" + list + ") AND " +
				condition
		},
		// The optimizer never changes the order of a STRAIGHT_JOIN.
		Each: func(table, alias, condition string) string {
			return "STRAIGHT_JOIN {" + table + "} " + alias + " ON " + condition
		},
		Due:   due,
		Claim: claim,
		Bound: bound,

		Explain: explain,
	}
}

// types declares indexed texts as bytes. They compare by bytes, and the 3,072 bytes of an index key hold four
// of them and two numbers. Times are UTC.
var types = sqlstore.Types{
	Text:      "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
	Key:       "VARBINARY(760)",
	Int:       "BIGINT",
	Bool:      "BOOLEAN",
	Time:      "DATETIME(6)",
	Bytes:     "LONGBLOB",
	Hash:      "VARBINARY(32)",
	JSON:      "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
	Heap:      engine,
	Clustered: engine,
	Churned:   engine,
}

const engine = "ENGINE = InnoDB"

// list selects the values of an argument that holds a JSON list of texts.
const list = "SELECT value FROM JSON_TABLE(?, '$[*]' COLUMNS (value VARCHAR(760) PATH '$')) listed"

// due numbers the due deliveries of each endpoint. It reads all that are due: MariaDB has no join that lets a
// query stop after the first few of each endpoint.
const due = `SELECT id FROM (
	SELECT id, endpoint_id, livemode, next_attempt_at,
		ROW_NUMBER() OVER (PARTITION BY endpoint_id ORDER BY next_attempt_at, id) AS place
	FROM {deliveries} WHERE status = 'pending' AND next_attempt_at <= ?
		AND (claimed_until IS NULL OR claimed_until <= ?)) ranked
WHERE place <= ? AND endpoint_id NOT IN (` + list + `) AND (livemode OR NOT ?)
ORDER BY next_attempt_at, id LIMIT ?`

const claim = "id IN (" + list + `) AND status = 'pending'
	AND GREATEST(next_attempt_at, COALESCE(claimed_until, next_attempt_at)) <= ?
	ORDER BY next_attempt_at, id LIMIT ?`

func upsert(key, columns []string) string {
	if len(columns) == 0 {
		return " ON DUPLICATE KEY UPDATE " + key[0] + " = " + key[0]
	}

	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = VALUES(" + c + ")"
	}

	return " ON DUPLICATE KEY UPDATE " + strings.Join(sets, ", ")
}

// timeLayout is the format of written times: the driver would shift a time.Time into the time zone of its
// connection.
const timeLayout = "2006-01-02 15:04:05.000000"

func argument(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(timeLayout)
	case []string:
		b, _ := json.Marshal(v) // cannot fail: strings
		return string(b)
	}

	return v
}

// bound makes each statement wait for locks for whole seconds, rounded up.
func bound(b sqlstore.Batch, wait time.Duration) (bounded sqlstore.Batch, first int) {
	seconds := (wait + time.Second - 1) / time.Second

	bounded = sqlstore.Batch{Begin: b.Begin, Commit: b.Commit, Args: b.Args}
	for _, text := range b.Texts {
		bounded.Texts = append(
			bounded.Texts, fmt.Sprintf("SET STATEMENT innodb_lock_wait_timeout = %d FOR %s", seconds, text),
		)
	}

	return bounded, 0
}

const (
	isolation = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
	// boundIdle has the database end a transaction whose process stands still, is cut off or is gone without
	// notice: it would keep its locks otherwise. It stays on the connection. If the host has set a limit, it
	// is left as it is.
	boundIdle = "SET idle_transaction_timeout = " +
		"IF(@@idle_transaction_timeout = 0, 10, @@idle_transaction_timeout)"
)

// isRunning reports whether a transaction runs: at a deadlock the server ends it.
func isRunning(ctx context.Context, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (running bool, err error) {
	err = on.QueryRowContext(ctx, "SELECT @@in_transaction").Scan(&running)

	return running, err
}

// send runs a batch statement by statement.
func send(ctx context.Context, conn *sql.Conn, b sqlstore.Batch) ([]int64, error) {
	begin := dialect().Begin

	return b.OneByOne(begin, func(text string, args []any) (int64, error) {
		if text == begin {
			for _, setting := range []string{isolation, boundIdle} {
				if _, err := conn.ExecContext(ctx, setting); err != nil {
					return 0, err
				}
			}
		}

		result, err := conn.ExecContext(ctx, text, args...)
		if err != nil {
			return 0, err
		}

		return result.RowsAffected()
	})
}
