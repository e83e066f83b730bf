// Package memory is a store in the memory of one process: for tests, demos and trying the library out.
//
// It is store/kv over a copy-on-write B-tree, without durability: the records end with the process, and no
// other process sees them. Updates run one at a time. Reads outside of them never wait and never see a
// part of one.
//
// A host cannot join a transaction of its own: there is no database.
package memory

import (
	"context"
	"fmt"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// Store is a store in memory, made by New.
type Store struct {
	*kv.Store
	tree *tree
}

// New returns an empty store.
func New() *Store { return open(newTree()) }

// Clone returns a store with the committed records as they are now: a backup. Later writes to either do not
// show in the other.
func (s *Store) Clone() *Store { return open(s.tree.clone()) }

func open(t *tree) *Store {
	st, err := kv.Open(context.Background(), t)
	if err != nil {
		panic(fmt.Sprintf("a tree in memory cannot be opened: %v", err)) // it has no way to fail
	}

	return &Store{Store: st, tree: t}
}
