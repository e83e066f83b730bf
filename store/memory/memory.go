// Package memory is a store in the memory of one process: for tests, demos and trying the library out.
//
// It is store/kv over a copy-on-write B-tree, without durability: the records end with the process, and no
// other process sees them. Updates run one at a time. Reads outside of Updates never wait, and never see part
// of one.
//
// A host cannot join a transaction of its own: there is no database.
package memory

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/kv"
	"github.com/seed-8ee7f392/payments/webhook"
)

// New returns an empty store.
func New() store.Store { return open(newTree()) }

// treeStore is a store over a tree.
type treeStore struct {
	store.Store
	store.AttentionReader
	webhook.BacklogReader

	tree *tree
}

func open(t *tree) *treeStore { return openOn(t, t) }

// openOn opens a store over a backend that has the records of a tree.
func openOn(b kv.Backend, t *tree) *treeStore {
	st, err := kv.Open(context.Background(), b)
	if err != nil {
		// A tree in memory has no way to fail.
		panic(fmt.Sprintf("a tree in memory cannot be opened: %v", err))
	}

	counting, ok := st.(webhook.BacklogReader)
	if !ok {
		panic("a store of package kv counts no backlogs")
	}

	noting, ok := st.(store.AttentionReader)
	if !ok {
		panic("a store of package kv counts nothing that needs attention")
	}

	return &treeStore{Store: st, AttentionReader: noting, BacklogReader: counting, tree: t}
}

// Clone returns a store with the committed records as they are now: a backup. Later writes to either do not
// show in the other. Tests find it by assertion.
func (s *treeStore) Clone() store.Store { return open(s.tree.clone()) }

// Intercept returns a store over the same records. Its reads outside of Updates call before first, and fail
// with before's error. Tests find it by assertion.
func (s *treeStore) Intercept(before func() error) store.Store {
	return openOn(intercepted{s.tree, before}, s.tree)
}

// intercepted is a tree whose Views may fail.
type intercepted struct {
	*tree
	before func() error
}

// View calls f with a snapshot, unless before fails.
func (i intercepted) View(ctx context.Context, f func(kv.Reader) error) error {
	if err := i.before(); err != nil {
		return err
	}

	return i.tree.View(ctx, f)
}

// Format prints the name of the type for every verb, without the stored records.
func (s treeStore) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("memory.Store")) }
