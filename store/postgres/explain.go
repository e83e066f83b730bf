package postgres

// This file explains the errors of PostgreSQL and pgx.

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// explain reads SQLSTATE codes (PostgreSQL documentation, appendix A) and broken connections.
func explain(err error) sqlstore.Explanation {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainState(e.Code)
	}

	return explainConnection(err)
}

func explanation(word error, code, sentence string) sqlstore.Explanation {
	return sqlstore.Explanation{Word: word, Code: code, Sentence: sentence}
}

// explainState explains a SQLSTATE. One that is not listed is explained by its class, the first two
// characters.
func explainState(code string) sqlstore.Explanation {
	switch code {
	case "23505": // unique_violation
		return explanation(
			fault.Duplicate, "duplicate",
			"it, or one with the same unique value, already exists",
		)
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return explanation(
			fault.Conflict, "transaction_conflict",
			"another transaction came in between; run the operation again",
		)
	case statementLost:
		return explanation(
			fault.Conflict, "statement_lost",
			"the connection lost its prepared statements; run the operation again",
		)
	case "22012": // division_by_zero, of the statement that validates reads
		return explanation(
			fault.Conflict, "read_outdated",
			"the account or its endpoints were changed since they were read; run the operation again",
		)
	// character_not_in_repertoire, untranslatable_character, invalid_text_representation
	case "22021", "22P05", "22P02":
		return explanation(
			fault.Invalid, "text_invalid", "a text holds bytes that the database does not take",
		)
	}

	return explainEnded(code)
}

// explainEnded explains a SQLSTATE for a transaction or statement that the server, or a proxy, ended or
// refused.
func explainEnded(code string) sqlstore.Explanation {
	switch code {
	case "40003": // statement_completion_unknown
		return explanation(
			fault.Unavailable,
			"commit_unknown",
			"the database does not know whether the transaction committed; look whether it did, or repeat it "+
				"under the same Idempotency-Key",
		)
	// idle_in_transaction_session_timeout, transaction_timeout
	case "25P03", "25P04":
		return explanation(
			fault.Unavailable, "database_timeout",
			"the database ended a transaction that stood idle or took too long; try again, and raise "+
				"idle_in_transaction_session_timeout or transaction_timeout if it stays so",
		)
	// duplicate_prepared_statement, of another connection behind a pooler
	case "42P05":
		return explanation(
			fault.Unavailable,
			"statement_pooled",
			"a proxy that pools transactions mixes up prepared statements; set pgx's DefaultQueryExecMode to "+
				"QueryExecModeExec, or connect to the database itself",
		)
	case "25P02",
		"40000",
		"40002": // in_failed_sql_transaction, transaction_rollback and its constraint violation
		return explanation(
			fault.Conflict, "transaction_aborted",
			"a statement of the transaction had failed; run the operation again",
		)
	case "55P03": // lock_not_available
		return explanation(fault.Unavailable, "row_locked", "another transaction holds it; try again shortly")
	case "57014": // query_canceled
		return explanation(
			fault.Unavailable, "database_timeout",
			"the database canceled the statement, for example because it took too long; try again",
		)
	}

	return explainServer(code)
}

// explainServer explains a SQLSTATE about the server's state, schema or access rights.
func explainServer(code string) sqlstore.Explanation {
	switch code {
	case "53100": // disk_full
		return explanation(
			fault.Unavailable, "database_full",
			"the database's disk is full; make room and try again",
		)
	case "25006": // read_only_sql_transaction
		return explanation(
			fault.Unavailable, "database_read_only",
			"the database can only be read, for example because it is a standby; connect to the primary",
		)
	case "42P01", "42703", "3F000": // undefined_table, undefined_column, invalid_schema_name
		return explanation(
			fault.Unavailable, "schema_mismatch",
			"the database does not have the tables of this version; run Migrate",
		)
	case "3D000": // invalid_catalog_name
		return explanation(
			fault.Unavailable, "database_missing",
			"the server has no database of this name; create it, or correct the name",
		)
	case "42501", "28000", "28P01": // insufficient_privilege, invalid_authorization, invalid_password
		return explanation(
			fault.Unavailable, "database_denied",
			"the database refuses this user; check credentials and rights",
		)
	}

	switch code[:min(2, len(code))] {
	// connection, insufficient resources, operator intervention, system error
	case "08", "53", "57", "58":
		return explanation(
			fault.Unavailable, "database_down",
			"the database is down, restarting or out of resources; try again",
		)
	}

	return sqlstore.Explanation{}
}

// explainConnection explains an error that did not come from the server.
func explainConnection(err error) sqlstore.Explanation {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)

	switch {
	case connecting,
		network,
		errors.Is(err, driver.ErrBadConn),
		errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed),
		errors.Is(err, sql.ErrConnDone),
		pgconn.SafeToRetry(err):
		return explanation(
			fault.Unavailable, "database_down",
			"the database cannot be reached or cut the connection; try again",
		)
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return explanation(
			fault.Conflict, "transaction_aborted",
			"a statement of the transaction had failed; run the operation again",
		)
	}

	return sqlstore.Explanation{}
}
