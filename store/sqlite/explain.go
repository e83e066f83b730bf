package sqlite

// This file explains SQLite's errors.

import (
	"database/sql"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// explain reads SQLite's result codes (https://www.sqlite.org/rescode.html).
func explain(err error) sqlstore.Explanation {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		if errors.Is(err, sql.ErrConnDone) {
			return explanation(fault.Unavailable, "database_closed", "the store was closed")
		}

		return sqlstore.Explanation{}
	}

	return explainCode(e.Code())
}

func explanation(word error, code, sentence string) sqlstore.Explanation {
	return sqlstore.Explanation{Word: word, Code: code, Sentence: sentence}
}

// explainCode explains an extended result code; its low byte is the primary one.
func explainCode(code int) sqlstore.Explanation {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
		sqlite3.SQLITE_CONSTRAINT_ROWID:
		return explanation(
			fault.Duplicate, "duplicate",
			"it, or one with the same unique value, already exists",
		)
	case sqlite3.SQLITE_CONSTRAINT_NOTNULL: // of the statement that validates reads
		return explanation(
			fault.Conflict, "read_outdated",
			"the account or its endpoints were changed since they were read; run the operation again",
		)
	}

	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return explanation(
			fault.Conflict, "database_busy",
			"another process is writing to the file; run the operation again",
		)
	case sqlite3.SQLITE_FULL:
		return explanation(
			fault.Unavailable, "database_full",
			"the disk or the database is full; make room and try again",
		)
	case sqlite3.SQLITE_READONLY:
		return explanation(
			fault.Unavailable, "database_read_only",
			"the database can only be read; check the rights of the file and its directory",
		)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return explanation(
			fault.Unavailable, "database_unreachable",
			"the file cannot be opened; check that it is there and its rights",
		)
	case sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_ABORT:
		return explanation(
			fault.Unavailable, "database_error",
			"reading or writing the file failed; try again and look at the disk if it stays so",
		)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return explanation(
			fault.Unavailable, "database_damaged",
			"the file is damaged or no database; restore it from a backup",
		)
	case sqlite3.SQLITE_SCHEMA:
		return explanation(
			fault.Conflict, "schema_changed",
			"the schema changed meanwhile; run the operation again",
		)
	}

	return sqlstore.Explanation{}
}
