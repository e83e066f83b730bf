package kv

import (
	"context"
	"slices"
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

var (
	accounts = newTable(
		1, "account",
		func(a *account.Account) key { return keyOf(a.ID) },
		func(a *account.Account) *int64 { return &a.Version },
	)
	_ = accounts.unique(1, func(a *account.Account) key { return keyOf(a.Index) })

	apiKeys = newTable(
		2, "API key",
		func(k *account.Key) key { return keyOf(k.ID) },
		func(k *account.Key) *int64 { return &k.Version },
	)
	apiKeysByHash    = apiKeys.unique(1, func(k *account.Key) key { return keyOf(k.Hash) })
	apiKeysByAccount = apiKeys.ordered(2, func(k *account.Key) key { return keyOf(k.Owner.AccountID) })

	claims = newTable(
		3, "idempotency key",
		func(r *idempotency.Record) key { return keyOf(r.Owner, r.Key.Key) },
		nil,
	)
	claimsByAge = claims.ordered(1, func(r *idempotency.Record) key { return keyOf(r.CreatedAt) })

	counters = newTable(4, "counter", func(c *counter) key { return keyOf(c.Name) }, nil)
	leases   = newTable(5, "lease", func(l *lease.Lease) key { return keyOf(l.Name) }, nil)
	locks    = newTable(6, "account lock", func(l *lock) key { return keyOf(l.AccountID) }, nil)
)

// counter is a sequence of numbers.
type counter struct {
	Name string
	Next int64
}

// lock is a record that LockAccount changes, so that the engine serializes transactions that lock one
// account.
type lock struct {
	AccountID string
	Count     int64
}

func (r *reader) Account(ctx context.Context, id string) (account.Account, error) {
	return get(ctx, r, accounts, id, nil)
}

func (r *reader) Accounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	return list(ctx, r, accounts.primary(), nil, page[account.Account](after, limit, nil))
}

func (r *reader) KeyByHash(
	ctx context.Context,
	hash [32]byte,
) (k account.Key, a account.Account, err error) {
	found, err := list(ctx, r, apiKeysByHash, keyOf(hash), window[account.Key]{})
	if err != nil {
		return k, a, err
	}

	if len(found) == 0 {
		return k, a, fault.New(fault.NotFound, "resource_missing", "no API key has this hash")
	}

	if a, err = r.Account(ctx, found[0].Owner.AccountID); err != nil {
		return k, a, err
	}

	return found[0], a, nil
}

func (r *reader) Keys(ctx context.Context, accountID string) ([]account.Key, error) {
	return list(ctx, r, apiKeysByAccount, keyOf(accountID), window[account.Key]{descending: true})
}

func (r *reader) InvoiceSettings(ctx context.Context, accountID string) (invoice.Settings, error) {
	a, err := peek(ctx, r, accounts, accountID, nil)
	if err != nil {
		return invoice.Settings{}, err
	}

	settings := store.InvoiceSettings(*a)
	settings.Assets = slices.Clone(settings.Assets)

	return settings, nil
}

func (r *reader) SettlementSettings(ctx context.Context, accountID string) (settlement.Settings, error) {
	a, err := peek(ctx, r, accounts, accountID, nil)
	if err != nil {
		return settlement.Settings{}, err
	}

	return store.SettlementSettings(*a), nil
}

func (r *reader) PayoutSettings(ctx context.Context, accountID string) (payout.Settings, error) {
	a, err := r.Account(ctx, accountID)
	if err != nil {
		return payout.Settings{}, err
	}

	return store.PayoutSettings(a), nil
}

func (tx *transaction) PutAccount(ctx context.Context, a *account.Account) error {
	return put(ctx, tx, accounts, a)
}

func (tx *transaction) PutKey(ctx context.Context, k *account.Key) error {
	return put(ctx, tx, apiKeys, k)
}

// LockAccount changes a record of the account: two transactions that lock one account conflict.
func (tx *transaction) LockAccount(ctx context.Context, accountID string) error {
	if _, err := peek(ctx, &tx.reader, accounts, accountID, nil); err != nil {
		return err
	}

	held, _, err := try(ctx, &tx.reader, locks, locks.at(accountID))
	if err != nil {
		return err
	}

	return put(ctx, tx, locks, &lock{AccountID: accountID, Count: held.Count + 1})
}

func (tx *transaction) ReserveNumbers(ctx context.Context, name string, n int, first int64) (int64, error) {
	if n <= 0 {
		return 0, fault.New(
			fault.Invalid, "count_invalid", "%d numbers cannot be reserved: ask for at least 1",
			n,
		)
	}

	c, ok, err := try(ctx, &tx.reader, counters, counters.at(name))
	if err != nil {
		return 0, err
	}

	if ok {
		first = c.Next
	}

	return first, put(ctx, tx, counters, &counter{Name: name, Next: first + int64(n)})
}

func (r *reader) IdempotencyRecord(ctx context.Context, k idempotency.Key) (idempotency.Record, bool, error) {
	return try(ctx, r, claims, claims.at(k.Owner, k.Key))
}

// ClaimIdempotencyKey never waits: the backend has competing transactions wait or conflict as a whole.
func (tx *transaction) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	_ time.Duration,
) error {
	old, ok, err := try(ctx, &tx.reader, claims, claims.at(r.Owner, r.Key.Key))
	if err != nil {
		return err
	}

	if ok && !old.CreatedAt.IsZero() && !old.CreatedAt.After(stale) {
		return put(ctx, tx, claims, &r)
	}

	return add(ctx, tx, claims, &r)
}

func (tx *transaction) PutIdempotencyAnswer(ctx context.Context, r idempotency.Record) error {
	claimed, ok, err := try(ctx, &tx.reader, claims, claims.at(r.Owner, r.Key.Key))
	if err != nil {
		return err
	}

	if !ok {
		return fault.New(
			fault.Conflict, "claim_missing",
			"the idempotency key %q has no claim to answer; run the operation again",
			r.Key.Key,
		)
	}

	claimed.Status, claimed.SealedBody = r.Status, r.SealedBody

	return put(ctx, tx, claims, &claimed)
}

func (tx *transaction) PruneIdempotencyKeys(ctx context.Context, before time.Time, limit int) (int, error) {
	return prune(ctx, tx, claimsByAge, before, limit, nil)
}

func (tx *transaction) Leases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	found := make(map[string]lease.Lease, len(names))

	err := tx.read(ctx, func(b Reader) error {
		for _, name := range names {
			row, err := leases.load(b, leases.at(name))
			if err != nil {
				return err
			}

			if row != nil {
				found[name] = *leases.read(row)
			}
		}

		return nil
	})

	return found, err
}

// ReadLeases is Leases: reads lock nothing, and a commit fails if another one changed a row that was read.
func (tx *transaction) ReadLeases(ctx context.Context, names []string) (map[string]lease.Lease, error) {
	return tx.Leases(ctx, names)
}

func (tx *transaction) ReplaceLease(ctx context.Context, was, l lease.Lease) error {
	rows, err := tx.Leases(ctx, []string{l.Name})
	if err != nil {
		return err
	}

	if now := rows[l.Name]; now.Owner != was.Owner || now.Fence != was.Fence {
		return fault.New(
			fault.Conflict, "version_conflict",
			"lease %s was changed by somebody else since it was read; run the operation again", l.Name,
		)
	}

	return tx.PutLease(ctx, l)
}

func (tx *transaction) PutLease(ctx context.Context, l lease.Lease) error {
	return put(ctx, tx, leases, &l)
}
