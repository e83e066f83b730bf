package sqlstore

// This file keeps accounts, API keys, idempotency keys, counters and leases.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/lease"
)

var accounts = newTable(
	"accounts",
	"account",
	1,
	func(a *account.Account) *int64 { return &a.Version },
	accountRowOf,
	(*accountRow).record,
)

var keys = newTable(
	"api_keys",
	"API key",
	1,
	func(k *account.Key) *int64 { return &k.Version },
	keyRowOf,
	(*keyRow).record,
)

var claims = newTable(
	"idempotency_keys",
	"idempotency key",
	3,
	nil,
	claimRowOf,
	(*claimRow).record,
)

var leases = newTable(
	"leases",
	"lease",
	1,
	nil,
	leaseRowOf,
	(*leaseRow).record,
)

func (r *reader) Account(ctx context.Context, id string) (account.Account, error) {
	return get(ctx, r, accounts, id)
}

func (r *reader) Accounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	q := &query{}
	q.has("id <> ''")

	if after != "" {
		q.has("id < ?", after)
	}

	return list(ctx, r, accounts, q, newest, limit)
}

// keyWithAccount is the query of KeyByHash.
var keyWithAccount = "SELECT " + qualified("k.", keys.columns) + ", " + qualified("a.", accounts.columns) +
	" FROM {api_keys} k JOIN {accounts} a ON a.id = k.account_id WHERE k.hash = ?"

// qualified puts a table's alias before each of a list of columns.
func qualified(alias, columns string) string {
	return alias + strings.ReplaceAll(columns, ", ", ", "+alias)
}

func (r *reader) KeyByHash(ctx context.Context, hash [32]byte) (k account.Key, a account.Account, err error) {
	err = r.retry(ctx, func() error {
		k, a, err = r.keyByHash(ctx, hash)
		return err
	})

	return k, a, err
}

func (r *reader) keyByHash(ctx context.Context, hash [32]byte) (k account.Key, a account.Account, err error) {
	if err := r.flushTables(ctx, keys.name, accounts.name); err != nil {
		return k, a, err
	}

	found, err := r.query(ctx, r.store.text(keyWithAccount), []any{hash[:]})
	if err != nil {
		return k, a, r.readError(ctx, err, keys.object)
	}
	defer found.Close()

	if !found.Next() {
		if err := found.Err(); err != nil {
			return k, a, r.readError(ctx, err, keys.object)
		}

		return k, a, fault.New(fault.NotFound, "resource_missing", "no API key has this hash")
	}

	var (
		keyed  keyRow
		holder accountRow
	)
	if err := found.Scan(append(keys.targets(&keyed), accounts.targets(&holder)...)...); err != nil {
		return k, a, r.readError(ctx, err, keys.object)
	}

	return keyed.record(), holder.record(), nil
}

func (r *reader) Keys(ctx context.Context, accountID string) ([]account.Key, error) {
	q := &query{}
	q.has("account_id = ?", accountID)

	return list(ctx, r, keys, q, newest, 0)
}

func (r *reader) InvoiceSettings(ctx context.Context, accountID string) (invoice.Settings, error) {
	a, err := r.Account(ctx, accountID)
	if err != nil {
		return invoice.Settings{}, err
	}

	return store.InvoiceSettings(a), nil
}

func (r *reader) SettlementSettings(ctx context.Context, accountID string) (settlement.Settings, error) {
	a, err := r.Account(ctx, accountID)
	if err != nil {
		return settlement.Settings{}, err
	}

	return store.SettlementSettings(a), nil
}

func (r *reader) PayoutSettings(ctx context.Context, accountID string) (payout.Settings, error) {
	a, err := r.Account(ctx, accountID)
	if err != nil {
		return payout.Settings{}, err
	}

	return store.PayoutSettings(a), nil
}

func (r *reader) IdempotencyRecord(ctx context.Context, k idempotency.Key) (idempotency.Record, bool, error) {
	return look(ctx, r, claims, false, k.Owner.AccountID, k.Owner.Livemode, k.Key)
}

func (tx *transaction) PutAccount(ctx context.Context, a *account.Account) error {
	return put(ctx, tx, accounts, a)
}

func (tx *transaction) PutKey(ctx context.Context, k *account.Key) error {
	return put(ctx, tx, keys, k)
}

func (tx *transaction) LockAccount(ctx context.Context, accountID string) error {
	if err := tx.flush(ctx); err != nil {
		return err
	}

	_, ok, err := look(ctx, &tx.reader, accounts, true, accountID)
	if err == nil && !ok {
		err = fault.Missing(accounts.object, accountID)
	}

	return err
}

// counter is the next number of a sequence.
type counter struct {
	Name string `db:"name"`
	Next int64  `db:"next"`
}

var counters = newTable(
	"counters",
	"counter",
	1,
	nil,
	func(from *counter) counter { return *from },
	func(row *counter) counter { return *row },
)

const (
	reserve = "INSERT INTO {counters} AS c (name, next) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET " +
		"next = c.next + ? RETURNING next"
	advance = "UPDATE {counters} SET next = next + ? WHERE name = ?"
)

func (tx *transaction) ReserveNumbers(
	ctx context.Context,
	name string,
	n int,
	first int64,
) (int64, error) {
	if n <= 0 {
		return 0, fault.New(
			fault.Invalid, "count_invalid", "%d numbers cannot be reserved: ask for at least 1",
			n,
		)
	}

	if err := tx.begin(ctx); err != nil {
		return 0, err
	}

	if tx.store.dialect.Returning {
		next, err := tx.count(ctx, counters.name, reserve, name, first+int64(n), int64(n))
		return int64(next - n), err
	}

	if _, err := tx.execNow(ctx, counters.insertNew(tx.store.dialect), name, first); err != nil {
		return 0, err
	}

	if _, err := tx.execNow(ctx, advance, int64(n), name); err != nil {
		return 0, err
	}

	counted, _, err := look(ctx, &tx.reader, counters, false, name)

	return counted.Next - int64(n), err
}

// dropStale deletes the old record before a claim of a key that was claimed long ago and never answered.
const dropStale = "DELETE FROM {idempotency_keys} WHERE account_id = ? AND livemode = ? AND " +
	"idempotency_key = ? AND created_at <= ?"

// ClaimIdempotencyKey takes a key that nobody holds, or one that is stale: a rival's fresh claim is never
// taken over. Where there is nothing stale to replace, the claim is the first write of the buffer.
func (tx *transaction) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	wait = max(wait, time.Millisecond) // 0 would wait for ever

	if stale.IsZero() && tx.store.dialect.Bound != nil && !tx.begun && tx.joined == nil &&
		len(tx.writes) == 0 {
		return tx.bufferClaim(ctx, r, wait)
	}

	return tx.claimNow(ctx, r, stale, wait)
}

// claimBusy is the code of a claim whose wait is over.
const claimBusy = "claim_busy"

// claimWait returns how long the buffered claim may wait for a rival; 0 without one.
func (tx *transaction) claimWait() time.Duration {
	if len(tx.writes) == 0 {
		return 0
	}

	return tx.writes[0].wait
}

// bufferClaim buffers a claim. What is sent or locked next sends it first.
func (tx *transaction) bufferClaim(ctx context.Context, r idempotency.Record, wait time.Duration) error {
	if err := add(ctx, tx, claims, &r); err != nil {
		return err
	}

	tx.writes[0].wait = wait

	return nil
}

// claimNow claims at once. Both statements go in one round trip.
func (tx *transaction) claimNow(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	if err := tx.flush(ctx); err != nil {
		return err
	}

	values, err := claims.values(&r)
	if err != nil {
		return err
	}

	s := tx.store
	key := values[:claims.keys]

	b := Batch{}
	b.add(s.text(dropStale), s.dialect.args(append(slices.Clone(key), stale)))
	b.add(s.text(claims.insertNew(s.dialect)), s.dialect.args(values))
	b, first := s.bound(b, wait)

	changed, err := tx.send(ctx, b)
	if err != nil {
		return tx.breakWith(ctx, err, "claim the idempotency key "+r.Key.Key)
	}

	if changed[first+1] == 0 {
		return duplicate(claims.object, r.Key.Key)
	}

	tx.hasClaimed(claims.slot(key))

	return nil
}

// hasClaimed notes that the transaction has the row of a claim.
func (tx *transaction) hasClaimed(slot string) {
	if tx.claimed == nil {
		tx.claimed = map[string]bool{}
	}

	tx.claimed[slot] = true
}

// bound lets a batch wait for locks for at most a time; first is the index of its first statement.
func (s *sqlStore) bound(b Batch, wait time.Duration) (bounded Batch, first int) {
	if wait == 0 || s.dialect.Bound == nil {
		return b, 0
	}

	return s.dialect.Bound(b, wait)
}

func (tx *transaction) PutIdempotencyAnswer(ctx context.Context, r idempotency.Record) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	k := []any{r.Owner.AccountID, r.Owner.Livemode, r.Key.Key}
	body := append([]byte(nil), r.SealedBody...)
	tx.proof = proof{answered, append(slices.Clone(k), body)}

	if w := tx.rows[claims.slot(k)]; w != nil {
		return tx.answerClaim(w, r.Status, body)
	}

	args := append([]any{int64(r.Status), body}, k...)
	claimed := tx.claimed[claims.slot(k)]
	// Not under the row's slot: the buffer does not hold the whole record, so reads of it must ask
	// the database. The row of a claim of this transaction is there: databases that count only rows that a
	// statement changes may count none.
	tx.buffer(&write{
		table:   claims.name,
		object:  claims.object,
		key:     []any{r.Key.Key},
		values:  args,
		one:     !claimed,
		certain: claimed,
		text: func(*write) (string, []any) {
			return "UPDATE {idempotency_keys} SET status = ?, sealed_body = ? WHERE account_id = ? AND " +
				"livemode = ? AND idempotency_key = ?", args
		},
	})
	tx.partial = claims.name

	return nil
}

// answerClaim puts the answer into a claim that is still buffered.
func (tx *transaction) answerClaim(w *write, status int, body []byte) error {
	record, err := claims.fill(w.values)
	if err != nil {
		return err
	}

	record.Status, record.SealedBody = status, body
	w.values, err = claims.values(&record)

	return err
}

const pruneClaims = `DELETE FROM {idempotency_keys} WHERE (account_id, livemode, idempotency_key) IN
	(SELECT * FROM (SELECT account_id, livemode, idempotency_key FROM {idempotency_keys}
		WHERE created_at < ? ORDER BY created_at LIMIT ?) old)`

func (tx *transaction) PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := tx.execNow(ctx, pruneClaims, before, rowLimit(limit))
	return int(n), err
}

// Lease locks the row. Where writers are concurrent, a lease that does not exist is made as a row of fence 0
// first, which counts as none, so that there is something to lock.
func (tx *transaction) Lease(ctx context.Context, name string) (lease.Lease, bool, error) {
	l, ok, err := look(ctx, &tx.reader, leases, true, name)
	if err != nil || ok && l.Fence > 0 || !tx.store.dialect.Concurrent ||
		tx.rows[leases.slot([]any{name})] != nil {
		return l, ok && l.Fence > 0, err
	}

	if _, err := tx.execNow(
		ctx,
		leases.insertNew(tx.store.dialect),
		name,
		"",
		int64(0),
		nil,
		"",
	); err != nil {
		return lease.Lease{}, false, err
	}

	l, ok, err = look(ctx, &tx.reader, leases, true, name)
	if !ok || l.Fence == 0 {
		return lease.Lease{}, false, err
	}

	return l, true, err
}

func (tx *transaction) PutLease(ctx context.Context, l lease.Lease) error {
	return set(ctx, tx, leases, &l)
}
