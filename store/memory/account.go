package memory

// This file keeps accounts, API keys, idempotency keys, counters and leases.

import (
	"context"
	"slices"
	"strconv"
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
	accounts = newKind(
		"account", func(a *account.Account) string { return a.ID },
		func(a *account.Account) *int64 { return &a.Version },
	)
	accountsByID = accounts.ordered(func(a *account.Account) (string, string, bool) { return "", a.ID, true })
	// No query uses an account's index, but it is unique.
	_ = accounts.only(
		func(a *account.Account) (string, bool) { return strconv.FormatUint(uint64(a.Index), 10), true },
	)

	keys = newKind(
		"API key", func(k *account.Key) string { return k.ID },
		func(k *account.Key) *int64 { return &k.Version },
	)
	keysByHash    = keys.only(func(k *account.Key) (string, bool) { return string(k.Hash[:]), true })
	keysByAccount = keys.ordered(
		func(k *account.Key) (string, string, bool) { return k.Owner.AccountID, k.ID, true },
	)

	claims = newKind(
		"idempotency key", func(r *idempotency.Record) string { return claimKey(r.Key) }, nil,
	)
	claimsByAge = claims.ordered(func(r *idempotency.Record) (string, string, bool) {
		return "", join(moment(r.CreatedAt), claimKey(r.Key)), true
	})

	leases   = newKind("lease", func(l *lease.Lease) string { return l.Name }, nil)
	counters = newKind("counter", func(c *counter) string { return c.name }, nil)
)

type counter struct {
	name string
	next int64
}

func claimKey(k idempotency.Key) string { return join(ownerKey(k.Owner), k.Key) }

func (r *reader) Account(ctx context.Context, id string) (account.Account, error) {
	return get(ctx, r, accounts, id, nil)
}

func (r *reader) Accounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	return scanRows(ctx, r, accountsByID, "", page[account.Account](after, limit, nil))
}

func (r *reader) KeyByHash(ctx context.Context, hash [32]byte) (account.Key, account.Account, error) {
	found, err := scanRows(ctx, r, keysByHash, string(hash[:]), window[account.Key]{})
	if err != nil {
		return account.Key{}, account.Account{}, err
	}

	if len(found) == 0 {
		return account.Key{}, account.Account{}, fault.New(
			fault.NotFound, "resource_missing", "no API key has this hash",
		)
	}

	a, err := r.Account(ctx, found[0].Owner.AccountID)
	if err != nil {
		return account.Key{}, account.Account{}, err
	}

	return found[0], a, nil
}

func (r *reader) Keys(ctx context.Context, accountID string) ([]account.Key, error) {
	return scanRows(ctx, r, keysByAccount, accountID, window[account.Key]{downward: true})
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
	return try(ctx, r, claims, claimKey(k))
}

func (tx *transaction) PutAccount(ctx context.Context, a *account.Account) error {
	return put(ctx, tx, accounts, a)
}

func (tx *transaction) PutKey(ctx context.Context, k *account.Key) error {
	return put(ctx, tx, keys, k)
}

// LockAccount only makes sure that there is such an account: updates queue up as it is.
func (tx *transaction) LockAccount(ctx context.Context, accountID string) error {
	a, err := lookup(ctx, &tx.reader, accounts, accountID)
	if err == nil && a == nil {
		err = fault.Missing("account", accountID)
	}

	return err
}

func (tx *transaction) ReserveNumbers(ctx context.Context, name string, n int, first int64) (int64, error) {
	if n <= 0 {
		return 0, fault.New(
			fault.Invalid, "count_invalid", "%d numbers cannot be reserved: ask for at least 1",
			n,
		)
	}

	c, err := lookup(ctx, &tx.reader, counters, name)
	if err != nil {
		return 0, err
	}

	if c != nil {
		first = c.next
	}

	return first, put(ctx, tx, counters, &counter{name, first + int64(n)})
}

// ClaimIdempotencyKey never waits: rivals wait for the whole update.
func (tx *transaction) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	_ time.Duration,
) error {
	old, ok, err := try(ctx, &tx.reader, claims, claimKey(r.Key))
	if err != nil {
		return err
	}

	if ok && !old.CreatedAt.IsZero() && !old.CreatedAt.After(stale) {
		return put(ctx, tx, claims, &r)
	}

	return add(ctx, tx, claims, &r)
}

func (tx *transaction) PutIdempotencyAnswer(ctx context.Context, r idempotency.Record) error {
	claimed, ok, err := try(ctx, &tx.reader, claims, claimKey(r.Key))
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
	return prune(
		ctx, tx, claimsByAge, before, limit,
		func(r *idempotency.Record) bool { return r.CreatedAt.Before(before) },
	)
}

// prune deletes up to limit matching rows of an index by time.
func prune[T any](
	ctx context.Context,
	tx *transaction,
	ix *index[T],
	before time.Time,
	limit int,
	match func(*T) bool,
) (int, error) {
	old, err := scanStored(ctx, &tx.reader, ix, "", window[T]{to: until(before), match: match, limit: limit})
	if err != nil {
		return 0, err
	}

	for row := range slices.Values(old) {
		if err := remove(ctx, tx, ix.of, ix.of.key(row)); err != nil {
			return 0, err
		}
	}

	return len(old), nil
}

func (tx *transaction) Lease(ctx context.Context, name string) (lease.Lease, bool, error) {
	return try(ctx, &tx.reader, leases, name)
}

func (tx *transaction) PutLease(ctx context.Context, l lease.Lease) error {
	return put(ctx, tx, leases, &l)
}
