package account_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
)

// rows is a database of accounts and keys. It holds one lock for a whole transaction and drops a failed one.
type rows struct {
	mu       sync.Mutex
	accounts map[string]account.Account
	keys     map[string]account.Key
	counters map[string]int64
	events   []event.Event
	lookups  int
	onLookup func()
}

type rowsTx struct{ *rows } // over a copy that nobody else has

func newRows() *rows {
	return &rows{
		accounts: map[string]account.Account{},
		keys:     map[string]account.Key{},
		counters: map[string]int64{},
	}
}

func (r *rows) Update(ctx context.Context, f func(context.Context, account.Tx) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	work := &rows{
		accounts: maps.Clone(r.accounts),
		keys:     maps.Clone(r.keys),
		counters: maps.Clone(r.counters),
		events:   slices.Clone(r.events),
	}
	if err := f(ctx, rowsTx{work}); err != nil {
		return err
	}

	r.accounts, r.keys, r.counters, r.events = work.accounts, work.keys, work.counters, work.events

	return nil
}

func (r *rows) Account(_ context.Context, id string) (account.Account, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	a, ok := r.accounts[id]
	if !ok {
		return account.Account{}, fault.Missing("account", id)
	}

	return a, nil
}

func (r *rows) Accounts(_ context.Context, after string, limit int) ([]account.Account, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	var out []account.Account
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(r.accounts))) {
		if (after == "" || id < after) && len(out) < limit {
			out = append(out, r.accounts[id])
		}
	}

	return out, nil
}

func (r *rows) KeyByHash(_ context.Context, hash [32]byte) (account.Key, account.Account, error) {
	r.mu.Lock()
	r.lookups++

	var found account.Key

	for _, k := range r.keys {
		if k.Hash == hash {
			found = k
		}
	}

	a, hook := r.accounts[found.Owner.AccountID], r.onLookup
	r.mu.Unlock()

	if hook != nil {
		hook()
	}

	if found.ID == "" {
		return account.Key{}, account.Account{}, fault.Missing("API key", "")
	}

	return found, a, nil
}

func (r *rows) Keys(_ context.Context, accountID string) ([]account.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	var out []account.Key

	for _, id := range slices.Backward(slices.Sorted(maps.Keys(r.keys))) {
		if r.keys[id].Owner.AccountID == accountID {
			out = append(out, r.keys[id])
		}
	}

	return out, nil
}

func (t rowsTx) PutAccount(_ context.Context, a *account.Account) error {
	if t.accounts[a.ID].Version != a.Version {
		return fault.Conflict
	}

	a.Version++
	t.accounts[a.ID] = *a

	return nil
}

func (t rowsTx) PutKey(_ context.Context, k *account.Key) error {
	if t.keys[k.ID].Version != k.Version {
		return fault.Conflict
	}

	k.Version++
	t.keys[k.ID] = *k

	return nil
}

func (t rowsTx) ReserveNumbers(_ context.Context, counter string, n int, first int64) (int64, error) {
	next, ok := t.counters[counter]
	if !ok {
		next = first
	}

	t.counters[counter] = next + int64(n)

	return next, nil
}

func (t rowsTx) AppendEvents(_ context.Context, e ...event.Event) error {
	t.events = append(t.events, e...)
	return nil
}

// network is a driver that only knows its addresses: those that begin with its slug, canonical in capitals.
type network struct {
	chain.Driver
	slug     string
	livemode bool
}

func (n network) Network() chain.Network {
	return chain.Network{
		Slug:          n.slug,
		Family:        chain.Sim,
		CAIP2:         "sim:" + n.slug,
		Rule:          chain.RuleConfirmations,
		Confirmations: 1,
		Livemode:      n.livemode,
	}.With(chain.Asset{Symbol: "SIM", Kind: chain.Native, Decimals: 8})
}

func (n network) ParseAddress(s string) (chain.Address, error) {
	if !strings.HasPrefix(strings.ToLower(s), n.slug+":") {
		return "", fault.New(fault.Invalid, "address_invalid", "not an address of %s", n.slug)
	}

	return chain.Address(strings.ToUpper(s)), nil
}

// harness is a service over rows, with a test network alpha, a live network beta, and one account.
type harness struct {
	*account.Service
	db       *rows
	registry *chain.Registry
	now      time.Time
	account  account.Account
}

func newHarness(t *testing.T) *harness {
	t.Helper()

	registry, err := chain.NewRegistry(network{slug: "alpha"}, network{slug: "beta", livemode: true})
	if err != nil {
		t.Fatal(err)
	}

	h := &harness{db: newRows(), registry: registry, now: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)}
	h.Service = h.another(t)

	h.account, err = h.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	return h
}

// another returns the service of another process over the same rows.
func (h *harness) another(t *testing.T) *account.Service {
	t.Helper()

	s, err := account.New(
		account.Config{
			DB:        h.db,
			Registry:  h.registry,
			IDs:       id.New(h.clock, nil),
			Now:       h.clock,
			KeyPrefix: "shop",
		},
	)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func (h *harness) clock() time.Time { return h.now }

func (h *harness) key(t *testing.T, p account.KeyParams) (account.Key, string) {
	t.Helper()

	p.AccountID = h.account.ID

	k, secret, err := h.CreateKey(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}

	return k, secret
}
