package sqlstore

// This file keeps events, endpoints and deliveries.

import (
	"cmp"
	"context"
	"database/sql"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/webhook"
)

var events = newTable[event.Event]("events", "event", "id")

var endpoints = newTable[webhook.Endpoint]("endpoints", "webhook endpoint", "id")

var deliveries = newTable[webhook.Delivery](
	"deliveries", "webhook delivery", "id",
	named("Trigger", "cause"),
)

func (r *reader) Event(ctx context.Context, owner event.Owner, id string) (event.Event, error) {
	return owned(ctx, r, events, owner, id, func(e event.Event) event.Owner { return e.Owner })
}

func (r *reader) EventsByID(ctx context.Context, ids []string) ([]event.Event, error) {
	return several(ctx, r, events, ids)
}

func (r *reader) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	q := of(r, f.Owner, f.After, f.ObjectID)
	oneOf(q, "type", f.Types)
	q.is("object_id", f.ObjectID)
	q.made("id", id.EventBound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, events, q, newest, f.Limit)
}

// AppendEvents is PutEvents: the engine runs the reactions to events.
func (tx *transaction) AppendEvents(ctx context.Context, all ...event.Event) error {
	return tx.PutEvents(ctx, all...)
}

func (tx *transaction) PutEvents(ctx context.Context, all ...event.Event) error {
	for i := range all {
		e := &all[i]
		if e.ID == "" {
			return fault.New(
				fault.Invalid, "event_unrendered",
				"an event %s about %s has no id: events are given one and rendered before they are stored",
				e.Type, e.ObjectID,
			)
		}

		if err := add(ctx, tx, events, e); err != nil {
			return err
		}
	}

	return nil
}

const pruneEvents = `DELETE FROM {events} WHERE id IN (SELECT * FROM (SELECT id FROM {events} e WHERE created_at < ?
	AND NOT EXISTS (SELECT 1 FROM {deliveries} d WHERE d.event_id = e.id AND d.account_id = e.account_id
		AND d.status = 'pending')
	ORDER BY created_at LIMIT ?) old)`

func (tx *transaction) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := tx.execNow(ctx, pruneEvents, before, rowLimit(limit))
	return int(n), err
}

func (r *reader) WebhookEndpoint(
	ctx context.Context,
	owner event.Owner,
	id string,
) (webhook.Endpoint, error) {
	return owned(ctx, r, endpoints, owner, id, func(e webhook.Endpoint) event.Owner { return e.Owner })
}

func (r *reader) WebhookEndpoints(ctx context.Context, f webhook.EndpointFilter) ([]webhook.Endpoint, error) {
	return list(ctx, r, endpoints, of(r, f.Owner, f.After), newest, f.Limit)
}

func (r *reader) EndpointsByID(ctx context.Context, ids []string) ([]webhook.Endpoint, error) {
	return several(ctx, r, endpoints, ids)
}

func (tx *transaction) EndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	return tx.endpointsOf(ctx, owner)
}

// readEndpointsOf reads the endpoints that EndpointsOf returns.
func (tx *transaction) readEndpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	q := of(&tx.reader, owner, "")
	q.has("status <> 'disabled'")

	return list(ctx, &tx.reader, endpoints, q, "ORDER BY id", 0)
}

func (tx *transaction) PutEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	return put(ctx, tx, endpoints, e)
}

func (tx *transaction) DeleteEndpoint(ctx context.Context, id string) error {
	return remove(ctx, tx, endpoints, id)
}

func (r *reader) Delivery(ctx context.Context, owner event.Owner, id string) (webhook.Delivery, error) {
	return owned(ctx, r, deliveries, owner, id, func(d webhook.Delivery) event.Owner { return d.Owner })
}

func (r *reader) Deliveries(ctx context.Context, f webhook.DeliveryFilter) ([]webhook.Delivery, error) {
	q := of(r, f.Owner, f.After, f.EventID, f.EndpointID)
	q.is("event_id", f.EventID)
	q.is("endpoint_id", f.EndpointID)
	oneOf(q, "status", f.Statuses)

	return list(ctx, r, deliveries, q, newest, f.Limit)
}

func (r *reader) DeliveriesByID(ctx context.Context, ids []string) ([]webhook.Delivery, error) {
	return several(ctx, r, deliveries, ids)
}

func (r *reader) PendingDeliveries(ctx context.Context, endpointID string) (int, error) {
	return r.count(
		ctx, deliveries.name,
		"SELECT count(*) FROM {deliveries} WHERE status = 'pending' AND endpoint_id = ?",
		endpointID,
	)
}

// backlogs reads every pending delivery, and counts the due ones by account and mode:
// webhook.Delivery.DueSince as SQL.
const backlogs = `SELECT account_id, livemode, count(*) AS due, min(since) AS since FROM
	(SELECT account_id, livemode, CASE WHEN attempts = 0 THEN created_at ELSE next_attempt_at END AS since
		FROM {deliveries} WHERE status = 'pending') pending
	WHERE since <= ? GROUP BY account_id, livemode`

// backlogRow is a row of backlogs.
type backlogRow struct {
	AccountID string `db:"account_id"`
	Livemode  bool   `db:"livemode"`
	Due       int    `db:"due"`
	Since     moment `db:"since"`
}

func (r *reader) Backlogs(ctx context.Context, now time.Time) (all []webhook.Backlog, err error) {
	err = r.retry(ctx, func() error {
		all, err = r.backlogs(ctx, now)
		return err
	})

	return all, err
}

func (r *reader) backlogs(ctx context.Context, now time.Time) ([]webhook.Backlog, error) {
	if err := r.flushTables(ctx, deliveries.name); err != nil {
		return nil, err
	}

	if err := r.ready(ctx); err != nil {
		return nil, r.readError(ctx, err, "backlogs")
	}

	var found []backlogRow
	if err := sqlx.SelectContext(
		ctx, r.on, &found, r.store.text(backlogs), r.store.dialect.args([]any{now})...,
	); err != nil {
		return nil, r.readError(ctx, err, "backlogs")
	}

	all := make([]webhook.Backlog, len(found))
	for i, row := range found {
		all[i] = webhook.Backlog{
			Owner: event.Owner{AccountID: row.AccountID, Livemode: row.Livemode},
			Due:   row.Due,
			Since: time.Time(row.Since),
		}
	}

	return all, nil
}

func (tx *transaction) PutDeliveries(ctx context.Context, d ...*webhook.Delivery) error {
	return putAll(ctx, tx, deliveries, d)
}

// ClaimDeliveries first looks for candidates without locking. It walks the endpoints that have due
// deliveries, so that neither a long queue of one endpoint nor many endpoints without due deliveries cost
// much. Then it claims the candidates that are still unlocked and unclaimed. If writers are concurrent, it
// looks at more candidates than it takes, so that simultaneous claimers do not all choose the same rows.
func (tx *transaction) ClaimDeliveries(ctx context.Context, c webhook.Claim) ([]webhook.Delivery, error) {
	if c.Limit <= 0 {
		c.Limit = 1 << 30
	}

	if c.PerEndpoint <= 0 {
		c.PerEndpoint = 1 << 30
	}

	look := int64(c.Limit)
	if tx.store.dialect.Concurrent {
		look *= 4
	}

	if err := tx.flush(ctx); err != nil {
		return nil, err
	}

	except := append([]string{}, c.Except...) // never nil: a NULL list would exclude every endpoint

	due, err := tx.candidates(
		ctx, c.Now, c.Now, int64(c.PerEndpoint), except, c.Live, look,
	)
	if err != nil || len(due) == 0 {
		return nil, err
	}

	if err := tx.begin(ctx); err != nil {
		return nil, err
	}

	claimed, err := tx.claimByAccount(ctx, due, c)
	slices.SortFunc(claimed, func(a, b webhook.Delivery) int {
		return cmp.Or(a.NextAttemptAt.Compare(b.NextAttemptAt), cmp.Compare(a.ID, b.ID))
	})

	return claimed, err
}

// candidate is a due delivery. Its account is read if tables are spread.
type candidate struct {
	ID        string         `db:"id"`
	AccountID sql.NullString `db:"account_id"`
}

// candidates returns the due deliveries.
func (tx *transaction) candidates(ctx context.Context, args ...any) (due []candidate, err error) {
	d := tx.store.dialect

	if err = sqlx.SelectContext(ctx, tx.on, &due, tx.store.text(d.Due), d.args(args)...); err != nil {
		return nil, tx.readError(ctx, err, "due deliveries")
	}

	return due, nil
}

// maxClaims is the most accounts for which one transaction claims, if each needs a statement.
const maxClaims = 32

// claimByAccount claims the candidates that are still free, longest waiting first. If tables are spread, it
// claims by account: such a statement runs on one machine, and locks only rows of the account.
func (tx *transaction) claimByAccount(
	ctx context.Context,
	due []candidate,
	c webhook.Claim,
) (claimed []webhook.Delivery, err error) {
	var accounts []sql.NullString

	ids := map[sql.NullString][]string{}

	for _, d := range due {
		if ids[d.AccountID] == nil {
			accounts = append(accounts, d.AccountID)
		}

		ids[d.AccountID] = append(ids[d.AccountID], d.ID)
	}

	if len(due) <= c.Limit { // all are taken; simultaneous claimers begin at different ones
		n := rand.N(len(accounts))
		accounts = slices.Concat(accounts[n:], accounts[:n])
	}

	most := c.Limit

	for _, account := range accounts[:min(len(accounts), maxClaims)] {
		if c.Limit = most - len(claimed); c.Limit <= 0 {
			break
		}

		args := []any{c.By, c.Until, ids[account], c.Now, int64(c.Limit)}
		if account.Valid {
			args = append(args, account.String)
		}

		some, err := tx.claimOf(ctx, c, args)
		if err != nil {
			return nil, err
		}

		claimed = append(claimed, some...)
	}

	return claimed, nil
}

// claimOf claims the candidates that are still free. args are the arguments of the statement with Returning.
func (tx *transaction) claimOf(ctx context.Context, c webhook.Claim, args []any) ([]webhook.Delivery, error) {
	d := tx.store.dialect
	if d.Returning {
		text := "UPDATE {deliveries} SET lapsed_at = claimed_until, claimed_by = ?, claimed_until = ?, fence " +
			"= fence + 1, version = version + 1 WHERE " + d.Claim + " RETURNING " + deliveries.columns

		return rows(ctx, &tx.reader, deliveries, tx.store.text(text), args)
	}

	text := "SELECT " + deliveries.columns + " FROM {deliveries} WHERE " + d.Claim + d.Lock

	claimed, err := rows(ctx, &tx.reader, deliveries, tx.store.text(text), args[2:])
	if err != nil {
		return nil, err
	}

	for i := range claimed {
		mine := &claimed[i]
		mine.LapsedAt, mine.ClaimedBy, mine.ClaimedUntil = mine.ClaimedUntil, c.By, c.Until
		mine.Fence++

		if err := put(ctx, tx, deliveries, mine); err != nil {
			return nil, err
		}
	}

	return claimed, tx.flush(ctx)
}

func (tx *transaction) FailDeliveries(ctx context.Context, endpointID string) error {
	_, err := tx.execNow(
		ctx,
		`UPDATE {deliveries} SET status = 'failed', next_attempt_at = NULL, version = version + 1
		WHERE status = 'pending' AND endpoint_id = ?`,
		endpointID,
	)

	return err
}

const pruneDeliveries = `DELETE FROM {deliveries} WHERE id IN
	(SELECT * FROM (SELECT id FROM {deliveries} WHERE status <> 'pending' AND created_at < ?
		ORDER BY created_at LIMIT ?) old)`

func (tx *transaction) PruneDeliveries(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := tx.execNow(ctx, pruneDeliveries, before, rowLimit(limit))
	return int(n), err
}
