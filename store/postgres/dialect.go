package postgres

// This file holds what PostgreSQL does its own way: locks, claims, and what its errors mean.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

func dialect(o Options) sqlstore.Dialect {
	return sqlstore.Dialect{
		Name:          "PostgreSQL",
		Prefix:        o.prefix(),
		Numbered:      true,
		In:            func(column string) string { return column + " = ANY(?)" },
		Among:         among,
		Each:          each,
		Lock:          " FOR UPDATE",
		Concurrent:    true,
		Due:           due,
		Claim:         claim,
		BeforeClaim:   beforeClaim,
		AfterClaim:    afterClaim,
		Begin:         begin,
		Writers:       2,
		Rows:          8,
		Send:          send,
		Explain:       explain,
		SchemaVersion: o.schemaVersion,
		WantVersion:   sqlstore.LatestVersion(migrations),
	}
}

// among looks each value up on its own: with = ANY, the plan that a prepared statement settles on
// may compare every row with every value. OFFSET 0 keeps the planner from making a join of it
// again.
func among(columns, table, condition, column string) string {
	return "SELECT a.* FROM (SELECT DISTINCT unnest(?::text[]) AS value) w CROSS JOIN LATERAL (SELECT " + columns +
		" FROM {" + table + "} WHERE " + condition + " AND " + column + " = w.value OFFSET 0) a"
}

// each is a join that the planner has no choice about; see among.
func each(table, alias, condition string) string {
	return "CROSS JOIN LATERAL (SELECT * FROM {" + table + "} WHERE " + condition + " OFFSET 0) " + alias
}

// due walks from one endpoint with pending deliveries to the next by the index of pending
// deliveries. Each step is a LIMIT and not a min: beside many deliveries that ended, the planner
// thinks that hardly any are pending, and a min may read them all.
const due = `WITH RECURSIVE e (id) AS (
	(SELECT endpoint_id FROM {deliveries} WHERE status = 'pending' ORDER BY endpoint_id LIMIT 1)
	UNION ALL
	SELECT (SELECT endpoint_id FROM {deliveries} WHERE status = 'pending' AND endpoint_id > e.id
		ORDER BY endpoint_id LIMIT 1) FROM e WHERE e.id IS NOT NULL
)
SELECT d.id FROM e CROSS JOIN LATERAL (
	SELECT x.id, x.next_attempt_at FROM {deliveries} x
	WHERE x.status = 'pending' AND x.endpoint_id = e.id AND x.next_attempt_at <= ?
		AND (x.claimed_until IS NULL OR x.claimed_until <= ?)
	ORDER BY x.next_attempt_at, x.id LIMIT ?) d
WHERE e.id IS NOT NULL ORDER BY d.next_attempt_at, d.id LIMIT ?`

// claim passes over what others lock, and takes the candidates in their order. A row that was
// claimed or ended since it was a candidate does not match any more. Each is looked up by its id:
// the status is written so that the index of pending deliveries does not fit, which the planner
// would read as a whole for every one.
const claim = `id = ANY(ARRAY(SELECT d.id FROM unnest(?::text[]) w (id) CROSS JOIN LATERAL (
	SELECT x.id FROM {deliveries} x
	WHERE x.id = w.id AND x.status || '' = 'pending' AND (x.claimed_until IS NULL OR x.claimed_until <= ?)
	OFFSET 0 FOR UPDATE SKIP LOCKED) d LIMIT ?))`

// The wait of a claim for a rival is bounded by lock_timeout, in the claim's own round trip; the
// transaction's setting is kept aside and put back.
const (
	beforeClaim = `SELECT set_config('payments.lock_timeout', current_setting('lock_timeout'), true), ` +
		`set_config('lock_timeout', ?::bigint::text, true)`
	afterClaim = `SELECT set_config('lock_timeout', current_setting('payments.lock_timeout'), true)`
)

// schemaVersion reads the version; 0 when the table of versions is not there.
func (o Options) schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", o.versionTable()).
		Scan(&there); err != nil ||
		!there {
		return 0, err
	}

	var version sql.NullInt64

	err := db.QueryRowContext(ctx, "SELECT max(version_id) FROM "+o.versionTable()+" WHERE is_applied").
		Scan(&version)

	return version.Int64, err
}

// explain reads SQLSTATE codes (PostgreSQL documentation, appendix A) and broken connections.
func explain(err error) sqlstore.Explanation {
	is := func(word error, code, sentence string) sqlstore.Explanation {
		return sqlstore.Explanation{Word: word, Code: code, Sentence: sentence}
	}

	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "23505": // unique_violation
			return is(fault.Duplicate, "duplicate", "it, or one with the same unique value, already exists")
		case "40001", "40P01": // serialization_failure, deadlock_detected
			return is(
				fault.Conflict, "transaction_conflict",
				"another transaction came in between; run the operation again",
			)
		case statementLost:
			return is(
				fault.Conflict, "statement_lost",
				"the connection lost its prepared statements; run the operation again",
			)
		case "55P03": // lock_not_available
			return is(fault.Unavailable, "claim_busy", "another transaction holds it; try again shortly")
		case "57014": // query_canceled
			return is(
				fault.Unavailable, "database_timeout",
				"the database canceled the statement, for example because it took too long; try again",
			)
		case "53100": // disk_full
			return is(
				fault.Unavailable, "database_full",
				"the database's disk is full; make room and try again",
			)
		case "25006": // read_only_sql_transaction
			return is(
				fault.Unavailable, "database_read_only",
				"the database can only be read, for example because it is a standby; connect to the primary",
			)
		// character_not_in_repertoire, untranslatable_character, invalid_text_representation
		case "22021", "22P05", "22P02":
			return is(fault.Invalid, "text_invalid", "a text holds bytes that the database does not take")
		case "42P01", "42703", "3F000": // undefined_table, undefined_column, invalid_schema_name
			return is(
				fault.Unavailable, "schema_mismatch",
				"the database does not have the tables of this version; run Migrate",
			)
		// insufficient_privilege, invalid_authorization, invalid_password, invalid_catalog_name
		case "42501", "28000", "28P01", "3D000":
			return is(
				fault.Unavailable, "database_denied",
				"the database refuses this user; check credentials and rights",
			)
		}

		switch e.Code[:min(2, len(e.Code))] {
		// connection, insufficient resources, operator intervention, system error
		case "08", "53", "57", "58":
			return is(
				fault.Unavailable, "database_down",
				"the database is down, restarting or out of resources; try again",
			)
		}

		return sqlstore.Explanation{}
	}

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
		return is(
			fault.Unavailable, "database_down",
			"the database cannot be reached or cut the connection; try again",
		)
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return is(
			fault.Conflict, "transaction_aborted",
			"a statement of the transaction had failed; run the operation again",
		)
	}

	return sqlstore.Explanation{}
}
