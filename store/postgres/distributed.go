package postgres

// This file holds the differences on a Citus cluster, where the rows of one account lie on one node. A query
// for several accounts is sent to all nodes. It must not use a recursion, an ordered join, or locks of single
// rows.

import (
	"context"
	"database/sql"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// distribute changes a dialect for a cluster.
func distribute(d *sqlstore.Dialect) {
	d.Types.Distributed = true
	d.Among = amongShards
	d.Each = eachShard
	d.Due = dueOnShards
	d.Claim = claimOnShards
	d.Send = sendExplicitly
	d.Validate = "" // accounts and endpoints lie on different machines
}

// amongShards looks the values up on each node, in the node's own shards.
func amongShards(columns, table, condition, column string) string {
	return "SELECT " + columns + " FROM {" + table + "} WHERE " + column + " = ANY(?::text[]) AND " + condition
}

// eachShard returns a join of rows of one account, which lie on one node.
func eachShard(table, alias, condition string) string {
	return "CROSS JOIN LATERAL (SELECT * FROM {" + table + "} " + alias + " WHERE " + condition + ") " + alias
}

// dueOnShards numbers each endpoint's due deliveries on the node that has them.
const dueOnShards = `SELECT id, account_id FROM (
	SELECT id, account_id, endpoint_id, livemode, next_attempt_at,
		row_number() OVER (PARTITION BY account_id, endpoint_id ORDER BY next_attempt_at, id) AS nth
	FROM {deliveries}
	WHERE status = 'pending' AND next_attempt_at <= ? AND (claimed_until IS NULL OR claimed_until <= ?)
) d WHERE nth <= ? AND endpoint_id <> ALL(?::text[]) AND (livemode OR NOT ?::boolean)
ORDER BY next_attempt_at, id LIMIT ?`

// claimOnShards claims deliveries of one account, on the node that has them, and skips rows locked by others.
const claimOnShards = `account_id = $6 AND id = ANY(ARRAY(SELECT x.id FROM {deliveries} x
	WHERE x.account_id = $6 AND x.id = ANY($3::text[]) AND x.status = 'pending'
		AND GREATEST(x.next_attempt_at, COALESCE(x.claimed_until, x.next_attempt_at)) <= $4
	ORDER BY x.next_attempt_at, x.id LIMIT $5 FOR UPDATE SKIP LOCKED))`

// sendExplicitly runs a batch between BEGIN and COMMIT. On a cluster, a pipeline without them is not one
// transaction, because each statement commits on its node.
func sendExplicitly(ctx context.Context, conn *sql.Conn, b sqlstore.Batch) ([]int64, error) {
	if b.Begin && b.Commit {
		begun, err := send(ctx, conn, sqlstore.Batch{Begin: true, Texts: b.Texts, Args: b.Args})
		if err != nil {
			return begun, err
		}

		_, err = send(ctx, conn, sqlstore.Batch{Commit: true})

		return begun, err
	}

	return send(ctx, conn, b)
}
