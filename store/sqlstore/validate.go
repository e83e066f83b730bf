package sqlstore

// This file holds validated reads. The store keeps the rows of an account that a transaction reads before its
// first lock. The next transaction is given these rows without a query, and commits only if they still have
// the same versions. Otherwise it ends in fault.Conflict, and its closure reads them anew. So no change by
// another process is missed, however long ago the rows were read.

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// keptMost bounds how many accounts and owners of endpoints a store keeps.
const keptMost = 4096

// readOutdated is the code of a commit whose premise no longer holds.
const readOutdated = "read_outdated"

// premise is a condition of a commit: rows still have the versions that were read.
type premise struct {
	// accountID is the id of the account, or of the account whose endpoints the premise is about.
	accountID string
	// mode is "live" or "test" for the endpoints of that mode, and "" for the account itself.
	mode string
	// versions are the versions of the rows, in the order of their ids.
	versions string
}

// kept holds rows that a store read before, with the premise that they are unchanged.
type kept[T any] struct {
	mu   sync.Mutex
	rows map[string]keptRow[T]
}

type keptRow[T any] struct {
	value   T
	premise premise
}

// get returns the row that was read for a key.
func (k *kept[T]) get(key string) (row keptRow[T], ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	row, ok = k.rows[key]

	return row, ok
}

// put keeps the row that was read for a key.
func (k *kept[T]) put(key string, row keptRow[T]) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.rows == nil || len(k.rows) >= keptMost {
		k.rows = map[string]keptRow[T]{}
	}

	k.rows[key] = row
}

// drop forgets the row that was read for a key.
func (k *kept[T]) drop(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.rows, key)
}

// validates reports whether the transaction may be given rows of a table that were read before. A transaction
// that holds locks reads on its own connection instead: it need not run again for rows that it does not
// change.
func (tx *transaction) validates(table string) bool {
	return tx.store.dialect.Validate != "" && tx.joined == nil && !tx.begun &&
		!slices.Contains(tx.dirty, table)
}

// validated returns the value that was read for a key before, or reads it and keeps it. The commit validates
// it.
func validated[T any](
	tx *transaction,
	from *kept[T],
	key string,
	read func() (T, premise, error),
) (value T, err error) {
	row, ok := from.get(key)
	if !ok {
		if row.value, row.premise, err = read(); err != nil {
			return value, err
		}

		from.put(key, row)
	}

	if tx.premises == nil {
		tx.premises = make(map[premise]func(), 2)
	}

	tx.premises[row.premise] = func() { from.drop(key) }

	return row.value, nil
}

// account returns an account whose version the commit validates. Its slices are shared.
func (tx *transaction) account(ctx context.Context, id string) (account.Account, error) {
	if !tx.validates(accounts.name) {
		return get(ctx, &tx.reader, accounts, id)
	}

	return validated(tx, &tx.store.keptAccounts, id, func() (account.Account, premise, error) {
		a, err := get(ctx, &tx.reader, accounts, id)
		a.Logo = nil // callers do not need it

		return a, premise{accountID: id, versions: versionOf(id, a.Version)}, err
	})
}

// endpointsOf returns the endpoints of an owner that are not disabled, whose versions the commit validates. Their
// slices are shared.
func (tx *transaction) endpointsOf(ctx context.Context, owner event.Owner) ([]webhook.Endpoint, error) {
	if !tx.validates(endpoints.name) {
		return tx.readEndpointsOf(ctx, owner)
	}

	mode := "test"
	if owner.Livemode {
		mode = "live"
	}

	all, err := validated(
		tx, &tx.store.keptEndpoints, owner.AccountID+" "+mode,
		func() ([]webhook.Endpoint, premise, error) {
			all, err := tx.readEndpointsOf(ctx, owner)
			versions := make([]string, len(all))

			for i, e := range all {
				versions[i] = versionOf(e.ID, e.Version)
			}

			return all, premise{owner.AccountID, mode, strings.Join(versions, ",")}, err
		},
	)

	return slices.Clone(all), err
}

// versionOf returns the version of a row in the form that Dialect.Validate compares.
func versionOf(id string, version int64) string { return id + " " + strconv.FormatInt(version, 10) }

// validate adds the statement that validates premises of one or more transactions.
func (s *sqlStore) validate(b *Batch, premises map[premise]func()) {
	if len(premises) == 0 {
		return
	}

	var ids, modes, versions []string
	for p := range premises {
		ids, modes, versions = append(ids, p.accountID), append(modes, p.mode), append(versions, p.versions)
	}

	b.add(s.text(s.dialect.Validate), s.dialect.args([]any{ids, modes, versions}))
}

// forgetPremises makes the next transaction read the rows anew that this one was given.
func (tx *transaction) forgetPremises() {
	for drop := range maps.Values(tx.premises) {
		drop()
	}
}
