package postgres

// This file holds PostgreSQL's dialect: locks, joins and claims.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

func dialect(o Options) sqlstore.Dialect {
	d := sqlstore.Dialect{
		Name:        "PostgreSQL",
		Prefix:      o.prefix(),
		Numbered:    true,
		Upsert:      upsert,
		Returning:   true,
		Unindexed:   func(column string) string { return column + " || ''" },
		Among:       among,
		Each:        each,
		Lock:        " FOR UPDATE",
		LockEach:    lockEach,
		Concurrent:  true,
		Due:         due,
		Claim:       claim,
		Validate:    validate,
		Bound:       bound,
		Begin:       begin,
		Writers:     2,
		Rows:        8,
		Send:        send,
		SendJoined:  sendJoined,
		Explain:     explain,
		TableExists: tableExists,
		Goose:       goose.DialectPostgres,
		Locker:      lock.NewPostgresTableLocker,
		Types: sqlstore.Types{
			Text:     `TEXT COLLATE "C"`,
			Key:      `TEXT COLLATE "C"`,
			Int:      "BIGINT",
			Bool:     "BOOLEAN",
			Time:     "TIMESTAMPTZ",
			Bytes:    "BYTEA",
			Hash:     "BYTEA",
			JSON:     "JSON",
			Churned:  "WITH (fillfactor = 50)",
			Partial:  true,
			Prologue: boundMigration,
		},
	}

	if o.Distributed {
		distribute(&d)
	}

	return d
}

// among looks up each value separately: with = ANY, the cached plan of a prepared statement may compare every
// row with every value. OFFSET 0 keeps the planner from turning the query back into a join.
func among(columns, table, condition, column string) string {
	return "SELECT a.* FROM (SELECT DISTINCT unnest(?::text[]) AS value) w CROSS JOIN LATERAL (SELECT " + columns +
		" FROM {" + table + "} WHERE " + condition + " AND " + column + " = w.value OFFSET 0) a"
}

// each returns a join that the planner cannot reorder; see among.
func each(table, alias, condition string) string {
	return "CROSS JOIN LATERAL (SELECT * FROM {" + table + "} " + alias + " WHERE " + condition + " OFFSET 0) " + alias
}

// lockEach locks each row as it is looked up; see among.
func lockEach(columns, table, column string) string {
	return "SELECT a.* FROM unnest(?::text[]) w (value) CROSS JOIN LATERAL (SELECT " + columns + " FROM {" + table +
		"} WHERE " + column + " = w.value OFFSET 0 FOR UPDATE) a"
}

// due walks from one endpoint with pending deliveries to the next by the index of pending deliveries. Each
// step uses LIMIT and not min: if most deliveries have ended, the planner estimates that hardly any are
// pending, and a min may read them all.
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
WHERE e.id IS NOT NULL AND e.id <> ALL(?::text[])
	AND (NOT ?::boolean OR EXISTS (SELECT 1 FROM {endpoints} l WHERE l.id = e.id AND l.livemode))
ORDER BY d.next_attempt_at, d.id LIMIT ?`

// claim skips rows locked by others and claims the candidates in their order. A candidate that was claimed,
// put off or finished meanwhile no longer matches. Each is looked up by its id. Appending an empty text to
// status rules out the index of pending deliveries, which the planner would read as a whole for each one.
const claim = `id = ANY(ARRAY(SELECT d.id FROM unnest(?::text[]) w (id) CROSS JOIN LATERAL (
	SELECT x.id FROM {deliveries} x
	WHERE x.id = w.id AND x.status || '' = 'pending'
		AND GREATEST(x.next_attempt_at, COALESCE(x.claimed_until, x.next_attempt_at)) <= ?
	OFFSET 0 FOR UPDATE SKIP LOCKED) d LIMIT ?))`

// validate divides by zero if a row has another version, is gone or is new.
const validate = `SELECT 1 / CASE WHEN EXISTS (
	SELECT 1 FROM unnest(?::text[], ?::text[], ?::text[]) AS w (account_id, mode, versions)
	WHERE w.versions IS DISTINCT FROM CASE WHEN w.mode = ''
		THEN (SELECT a.id || ' ' || a.version FROM {accounts} a WHERE a.id = w.account_id)
		ELSE (SELECT COALESCE(string_agg(e.id || ' ' || e.version, ',' ORDER BY e.id), '') FROM {endpoints} e
			WHERE e.account_id = w.account_id AND e.livemode = (w.mode = 'live') AND e.status <> 'disabled')
		END
) THEN 0 ELSE 1 END`

// lock_timeout bounds how long a statement waits for another process. The transaction's setting is saved
// before and restored after.
const (
	boundLocks = `SELECT set_config('payments.lock_timeout', current_setting('lock_timeout'), true), ` +
		`set_config('lock_timeout', $1::bigint::text, true)`
	unboundLocks = `SELECT set_config('lock_timeout', current_setting('payments.lock_timeout'), true)`
)

// bound puts statements between those that set and restore lock_timeout.
func bound(b sqlstore.Batch, wait time.Duration) (bounded sqlstore.Batch, first int) {
	texts := slices.Concat([]string{boundLocks}, b.Texts, []string{unboundLocks})
	args := slices.Concat([][]any{{wait.Milliseconds()}}, b.Args, [][]any{nil})

	return sqlstore.Batch{Begin: b.Begin, Commit: b.Commit, Texts: texts, Args: args}, 1
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

// Time returns the database's time.
func (s *Store) Time(ctx context.Context) (at time.Time, err error) {
	if err := s.db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return at, sqlstore.Explain(explain, err, "read the database's clock")
	}

	return at, nil
}
