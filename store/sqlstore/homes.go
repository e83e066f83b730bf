package sqlstore

// This file remembers the account of an id. If tables are spread by account, a look-up by id alone asks every
// node, and one with the account asks a single node. A record never moves to another account, and records
// that belong to it are of the same account.

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// maxHomes is the least number of ids that are remembered; the most is twice as many.
const maxHomes = 1 << 15

// homeKey is an id of a table.
type homeKey struct {
	table string
	id    any
}

// homes are the accounts of the ids that were last read or written. A nil *homes remembers nothing.
type homes struct {
	mu            sync.Mutex
	recent, older map[homeKey]string
}

func newHomes() *homes { return &homes{recent: map[homeKey]string{}} }

// of returns the account of an id; "" when it is not known.
func (h *homes) of(table string, id any) string {
	if h == nil {
		return ""
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	key := homeKey{table, id}
	if account, ok := h.recent[key]; ok {
		return account
	}

	account, ok := h.older[key]
	if ok {
		h.set(key, account)
	}

	return account
}

// common returns the account of all the ids; "" if it is not known, or if there are several.
func (h *homes) common(table string, ids ...string) string {
	if all := h.all(table, ids...); len(all) == 1 {
		return all[0]
	}

	return ""
}

// all returns the accounts of the ids, each once; none if the account of one id is not known.
func (h *homes) all(table string, ids ...string) (accounts []string) {
	for _, id := range ids {
		account := h.of(table, id)
		if account == "" {
			return nil
		}

		accounts = append(accounts, account)
	}

	slices.Sort(accounts)

	return slices.Compact(accounts)
}

// set remembers an account. The caller holds the lock.
func (h *homes) set(key homeKey, account string) {
	if len(h.recent) >= maxHomes {
		h.recent, h.older = map[homeKey]string{}, h.recent
	}

	h.recent[key] = account
}

// forget forgets an id whose record was not found at its remembered account.
func (h *homes) forget(table string, id any) {
	h.mu.Lock()
	defer h.mu.Unlock()

	delete(h.recent, homeKey{table, id})
	delete(h.older, homeKey{table, id})
}

// remember records the account of a row that was read, in tables whose key is the id and the account.
func remember[T any](h *homes, t *table[T], record *T) {
	if h == nil || t.keys == t.slots {
		return
	}

	fields := reflect.ValueOf(record).Elem()

	noteRow(h, t, func(i int) string { return fields.FieldByIndex(t.cols[i].field).String() })
}

// rememberValues is remember for a row that is written.
func rememberValues[T any](h *homes, t *table[T], values []any) {
	if h == nil || t.keys == t.slots {
		return
	}

	noteRow(h, t, func(i int) string { s, _ := values[i].(string); return s })
}

// noteRow records the account of a row's id and of its deposit address. For transactions it also records that
// of the release or payout, and for deliveries that of the event and the endpoint.
func noteRow[T any](h *homes, t *table[T], column func(i int) string) {
	account := column(1)
	h.note(homeKey{t.name, column(0)}, account)

	if t.network > 0 && t.address > 0 {
		h.note(addressKey(column(t.network), column(t.address)), account)
	}

	if t.sends > 0 {
		h.note(homeKey{sweepsTable, column(t.sends)}, account)
		h.note(homeKey{payoutsTable, column(t.sends)}, account)
	}

	if t.event > 0 {
		h.note(homeKey{events.name, column(t.event)}, account)
		h.note(homeKey{endpoints.name, column(t.endpoint)}, account)
	}
}

// byAddress stands for a table in homes: the addresses of payments, each of which is of one account.
const byAddress = "address"

func addressKey(network, address string) homeKey {
	return homeKey{byAddress, addressPlace(network, address)}
}

// addressPlace identifies an address among those of all networks.
func addressPlace(network, address string) string { return network + " " + address }

// note remembers an account.
func (h *homes) note(key homeKey, account string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.set(key, account)
}

// mostAccounts is the most accounts that a query names. A query for more concerns most machines anyway.
const mostAccounts = 8

// ofAccounts returns the condition that a row belongs to one of the accounts, of which there must be at least
// one. The number of its arguments is a power of two, so that few different statements are ever prepared.
func ofAccounts(accounts []string) (condition string, args []any) {
	n := 1
	for n < len(accounts) {
		n *= 2
	}

	for i := range n {
		args = append(args, accounts[min(i, len(accounts)-1)])
	}

	if n == 1 {
		return "account_id = ?", args
	}

	return "account_id IN (?" + strings.Repeat(", ?", n-1) + ")", args
}
