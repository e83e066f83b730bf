package mysql

// This file explains the errors of MariaDB and its driver.

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// explain reads MariaDB's error codes (https://mariadb.com/kb/en/mariadb-error-code-reference/).
func explain(err error) sqlstore.Explanation {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return explainNumber(e.Number)
	}

	_, network := errors.AsType[net.Error](err)

	switch {
	case network,
		errors.Is(err, driver.ErrBadConn),
		errors.Is(err, mysql.ErrInvalidConn),
		errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, sql.ErrConnDone):
		return explanation(
			fault.Unavailable, "database_down",
			"the database cannot be reached or cut the connection; try again",
		)
	}

	return sqlstore.Explanation{}
}

func explanation(word error, code, sentence string) sqlstore.Explanation {
	return sqlstore.Explanation{Word: word, Code: code, Sentence: sentence}
}

func explainNumber(number uint16) sqlstore.Explanation {
	switch number {
	case 1062: // ER_DUP_ENTRY
		return explanation(
			fault.Duplicate, "duplicate",
			"it, or one with the same unique value, already exists",
		)
	case 1213, 1020: // ER_LOCK_DEADLOCK, ER_CHECKREAD
		return explanation(
			fault.Conflict, "transaction_conflict",
			"another transaction came in between; run the operation again",
		)
	case 1205: // ER_LOCK_WAIT_TIMEOUT
		return explanation(fault.Unavailable, "row_locked", "another transaction holds it; try again shortly")
	case 1317, 1969, 1927: // ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT, ER_CONNECTION_KILLED
		return explanation(
			fault.Unavailable, "database_timeout",
			"the database canceled the statement, for example because it took too long; try again",
		)
	case 1366, 1406: // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_DATA_TOO_LONG
		return explanation(
			fault.Invalid,
			"text_invalid",
			"a text is too long or holds bytes that the database does not take",
		)
	case 1021, 1114: // ER_DISK_FULL, ER_RECORD_FILE_FULL
		return explanation(
			fault.Unavailable, "database_full",
			"the database's disk is full; make room and try again",
		)
	case 1290, 1792, 1836: // ER_OPTION_PREVENTS_STATEMENT, read-only transaction, ER_READ_ONLY_MODE
		return explanation(
			fault.Unavailable, "database_read_only",
			"the database can only be read, for example because it is a replica; connect to the primary",
		)
	case 1049: // ER_BAD_DB_ERROR
		return explanation(
			fault.Unavailable, "database_missing",
			"the server has no database of this name; create it, or correct the name",
		)
	case 1054, 1146: // ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE
		return explanation(
			fault.Unavailable, "schema_mismatch",
			"the database does not have the tables of this version; run Migrate",
		)
	case 1044, 1045, 1142, 1143: // access denied to database, user, table, column
		return explanation(
			fault.Unavailable, "database_denied",
			"the database refuses this user; check credentials and rights",
		)
	case 1040, 1053, 1080, 1203: // too many connections, shutdown, forced close, too many of this user
		return explanation(
			fault.Unavailable, "database_down",
			"the database is down, restarting or out of resources; try again",
		)
	}

	return sqlstore.Explanation{}
}
