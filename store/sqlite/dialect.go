package sqlite

// This file holds what SQLite does its own way: arguments, claims, and what its errors mean.

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

const prefix = "payments_"

func dialect() sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:   "SQLite",
		Prefix: prefix,
		Arg:    argument,
		// A list is one argument, however long: SQLite bounds the number of arguments.
		In: func(column string) string { return column + " IN (SELECT value FROM json_each(?))" },
		Among: func(columns, table, condition, column string) string {
			return "SELECT " + columns + " FROM {" + table + "} WHERE " + column +
				" IN (SELECT value FROM json_each(?)) AND " + condition
		},
		// SQLite never changes the order of a CROSS JOIN.
		Each: func(table, alias, condition string) string {
			return "CROSS JOIN {" + table + "} " + alias + " ON " + condition
		},
		// A write that comes after a read can find that another has written in between; one that
		// begins as a writer cannot.
		Begin:         "BEGIN IMMEDIATE",
		Writers:       1,
		Rows:          1, // a statement of many rows is no faster here
		Due:           due,
		Claim:         claim,
		Explain:       explain,
		SchemaVersion: schemaVersion,
		WantVersion:   sqlstore.LatestVersion(migrations),
	}
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
ORDER BY d.next_attempt_at, d.id LIMIT ?`

const claim = `id IN (SELECT id FROM {deliveries} WHERE id IN (SELECT value FROM json_each(?))
	AND (claimed_until IS NULL OR claimed_until <= ?) ORDER BY next_attempt_at, id LIMIT ?)`

// schemaVersion reads the version on a host's connection or one of ours.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int
	if err := db.QueryRowContext(
		ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
		versionTable,
	).
		Scan(&tables); err != nil ||
		tables == 0 {
		return 0, err
	}

	var version sql.NullInt64

	err := db.QueryRowContext(ctx, "SELECT max(version_id) FROM "+versionTable+" WHERE is_applied").
		Scan(&version)

	return version.Int64, err
}

// explain reads SQLite's result codes (https://www.sqlite.org/rescode.html).
func explain(err error) sqlstore.Explanation {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		if errors.Is(err, sql.ErrConnDone) {
			return sqlstore.Explanation{
				Word:     fault.Unavailable,
				Code:     "database_closed",
				Sentence: "the store was closed",
			}
		}

		return sqlstore.Explanation{}
	}

	unavailable := func(code, sentence string) sqlstore.Explanation {
		return sqlstore.Explanation{Word: fault.Unavailable, Code: code, Sentence: sentence}
	}

	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
		sqlite3.SQLITE_CONSTRAINT_ROWID:
		return sqlstore.Explanation{
			Word:     fault.Duplicate,
			Code:     "duplicate",
			Sentence: "it, or one with the same unique value, already exists",
		}
	}

	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sqlstore.Explanation{
			Word:     fault.Conflict,
			Code:     "database_busy",
			Sentence: "another process is writing to the file; run the operation again",
		}
	case sqlite3.SQLITE_FULL:
		return unavailable("database_full", "the disk or the database is full; make room and try again")
	case sqlite3.SQLITE_READONLY:
		return unavailable(
			"database_read_only",
			"the database can only be read; check the rights of the file and its directory",
		)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return unavailable(
			"database_unreachable",
			"the file cannot be opened; check that it is there and its rights",
		)
	case sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_ABORT:
		return unavailable(
			"database_error",
			"reading or writing the file failed; try again and look at the disk if it stays so",
		)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return unavailable("database_damaged", "the file is damaged or no database; restore it from a backup")
	case sqlite3.SQLITE_SCHEMA:
		return sqlstore.Explanation{
			Word:     fault.Conflict,
			Code:     "schema_changed",
			Sentence: "the schema changed meanwhile; run the operation again",
		}
	}

	return sqlstore.Explanation{}
}
