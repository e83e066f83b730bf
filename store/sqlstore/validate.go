package sqlstore

// This file holds validated reads. What a transaction reads of an account before its first lock, a store keeps and
// gives to the next transaction, which asks for nothing: it commits only if the rows are still of the versions that
// it was given. Otherwise it ends in fault.Conflict, and its closure reads them anew. So nothing that another process
// changed is missed, however long ago it was read.

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

// premise is what a commit validates: that rows have the versions that were read.
type premise struct {
	// accountID names the row of an account, or the account whose endpoints are meant.
	accountID string
	// mode is "live" or "test" for the endpoints of that mode, and "" for the account itself.
	mode string
	// versions are those of the rows, in the order of their ids.
	versions string
}

// kept is what a store read before: rows, and the premise that they are still as they were.
type kept[T any] struct {
	mu   sync.Mutex
	rows map[string]keptRow[T]
}

type keptRow[T any] struct {
	value   T
	premise premise
}

// get returns what was read of a key.
func (k *kept[T]) get(key string) (row keptRow[T], ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()

	row, ok = k.rows[key]

	return row, ok
}

// put keeps what was read of a key.
func (k *kept[T]) put(key string, row keptRow[T]) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.rows == nil || len(k.rows) >= keptMost {
		k.rows = map[string]keptRow[T]{}
	}

	k.rows[key] = row
}

// drop forgets what was read of a key.
func (k *kept[T]) drop(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.rows, key)
}

// validates reports whether the transaction may be given what was read of a table before. One that holds locks reads
// on its own connection instead: it is not run again for rows that it does not change.
func (tx *transaction) validates(table string) bool {
	return tx.store.dialect.Validate != "" && tx.joined == nil && !tx.begun &&
		!slices.Contains(tx.dirty, table)
}

// validated returns what was read of a key before, or reads it and keeps it. The commit validates it.
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
		a.Logo = nil // nobody asks for it here

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

// versionOf returns how Dialect.Validate names the version of a row.
func versionOf(id string, version int64) string { return id + " " + strconv.FormatInt(version, 10) }

// validate adds the statement that validates premises of one transaction or several.
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

// forgetPremises has what the transaction was given read anew.
func (tx *transaction) forgetPremises() {
	for drop := range maps.Values(tx.premises) {
		drop()
	}
}
