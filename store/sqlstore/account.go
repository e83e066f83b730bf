package sqlstore

// This file keeps accounts, API keys, idempotency keys, counters and leases.

import (
	"context"
	"maps"
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

var accounts = newTable[account.Account]("accounts", "account", "id", named("Index", "idx"))

var keys = newTable[account.Key]("api_keys", "API key", "id", named("AllowedIPs", "allowed_ips"))

var claims = newTable[idempotency.Record](
	"idempotency_keys", "idempotency key", "account_id, livemode, idempotency_key",
	named("Key.Key", "idempotency_key"),
)

var leases = newTable[lease.Lease]("leases", "lease", "name", foreign("Note"))

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

// qualified puts a table's alias before each column of a list.
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

	if err := found.Scan(append(keys.targets(&k), accounts.targets(&a)...)...); err != nil {
		return account.Key{}, account.Account{}, r.readError(ctx, err, keys.object)
	}

	return k, a, nil
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

// InvoiceSettings returns the settings that hold at the commit.
func (tx *transaction) InvoiceSettings(ctx context.Context, accountID string) (invoice.Settings, error) {
	a, err := tx.account(ctx, accountID)
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

var counters = newTable[counter]("counters", "counter", "name")

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

const pruneClaims = `DELETE FROM {idempotency_keys} WHERE (account_id, livemode, idempotency_key) IN
	(SELECT * FROM (SELECT account_id, livemode, idempotency_key FROM {idempotency_keys}
		WHERE created_at < ? ORDER BY created_at LIMIT ?) old)`

func (tx *transaction) PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := tx.execNow(ctx, pruneClaims, before, rowLimit(limit))
	return int(n), err
}

// Leases locks the rows in one statement. If writers are concurrent, it first makes leases that do not exist,
// as rows of fence 0, so that there is a row to lock. Such rows count as absent. If two transactions make
// rows that the other one also makes, they could wait for each other; the database then aborts one, which
// runs again.
func (tx *transaction) Leases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	found := make(map[string]lease.Lease, len(names))

	if err := tx.flushTables(ctx, leases.name); err != nil || len(names) == 0 {
		return found, err
	}

	if err := tx.begin(ctx); err != nil {
		return nil, err
	}

	if err := tx.lockLeases(ctx, names, found); err != nil {
		return nil, err
	}

	missing := slices.DeleteFunc(names, func(name string) bool { _, ok := found[name]; return ok })
	if len(missing) > 0 && tx.store.dialect.Concurrent {
		if err := tx.makeLeases(ctx, missing); err != nil {
			return nil, err
		}

		if err := tx.lockLeases(ctx, missing, found); err != nil {
			return nil, err
		}
	}

	maps.DeleteFunc(found, func(_ string, l lease.Lease) bool { return l.Fence == 0 })

	return found, nil
}

// lockLeases locks the rows of sorted names and adds them to found.
func (tx *transaction) lockLeases(ctx context.Context, names []string, found map[string]lease.Lease) error {
	d := tx.store.dialect

	template := d.Among(leases.columns, leases.name, "1 = 1", "name")
	if d.Concurrent {
		template = d.LockEach(leases.columns, leases.name, "name")
	}

	locked, err := rows(ctx, &tx.reader, leases, tx.store.text(template), []any{names})
	for _, l := range locked {
		found[l.Name] = l
	}

	return err
}

// makeLeases inserts rows of fence 0 for leases that do not exist.
func (tx *transaction) makeLeases(ctx context.Context, names []string) error {
	d := tx.store.dialect

	var b Batch
	for _, name := range names {
		b.add(tx.store.text(leases.insertNew(d)), d.args(noLease(name)))
	}

	if _, err := tx.send(ctx, b); err != nil {
		return tx.breakWith(ctx, err, "make the rows of leases")
	}

	return nil
}

// ReadLeases leaves out rows of fence 0, as Leases does.
func (tx *transaction) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	read, err := among(ctx, &tx.reader, leases, "name", names, "", "fence > 0")

	found := make(map[string]lease.Lease, len(read))
	for _, l := range read {
		found[l.Name] = l
	}

	return found, err
}

const replaceLease = "UPDATE {leases} SET owner = ?, fence = ?, updated_at = ?, note = ? " +
	"WHERE name = ? AND owner = ? AND fence = ?"

// noLease returns the values of a row that stands for an absent lease, so that there is a row to lock.
func noLease(name string) []any { return []any{name, "", int64(0), nil, ""} }

// ReplaceLease buffers an update of the row as it was read. If it was absent, a row of fence 0 is made first.
func (tx *transaction) ReplaceLease(ctx context.Context, was, l lease.Lease) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	values, err := leases.values(&l)
	if err != nil {
		return err
	}

	name := values[:leases.slots]
	args := slices.Concat(values[leases.slots:], name, []any{was.Owner, was.Fence})

	if was.Fence == 0 {
		tx.buffer(&write{
			table:   leases.name,
			object:  leases.object,
			key:     name,
			certain: true,
			text:    func(*write) (string, []any) { return leases.insertNew(tx.store.dialect), noLease(l.Name) },
		})
	}

	tx.buffer(&write{
		table:  leases.name,
		object: leases.object,
		key:    name,
		one:    true,
		text:   func(*write) (string, []any) { return replaceLease, args },
	})

	return nil
}

func (tx *transaction) PutLease(ctx context.Context, l lease.Lease) error {
	return set(ctx, tx, leases, &l)
}
