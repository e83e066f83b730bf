// Package memory is a store in the memory of one process: for tests, demos and trying the library out.
//
// It implements package store without durability: the rows end with the process, and no other process
// sees them. Updates run one at a time. Each writes into a layer of its own above the committed rows until
// it commits: reads outside of it never wait and never see a part of it. Stored rows are never changed,
// only replaced, and are copied on the way in and out.
//
// A host cannot join a transaction of its own: there is no database.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// maxTries bounds how often Update runs a closure that ends in fault.Conflict.
const maxTries = 10

// Store is a store in memory, made by New.
type Store struct {
	reader
	// writer holds a token while no Update runs.
	writer chan struct{}
	// mu guards the committed rows: commits lock it, reads share it.
	mu sync.RWMutex
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	s := &Store{writer: make(chan struct{}, 1)}
	s.writer <- struct{}{}

	s.reader = reader{store: s, base: newLayer()}

	return s
}

// Clone returns a store with the committed rows as they are now: a backup. Later writes to either do not
// show in the other.
func (s *Store) Clone() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()

	out := New()
	for slot, table := range s.base {
		out.base[slot] = table.(cloner).clone()
	}

	return out
}

// Close does nothing: there is nothing to release.
func (s *Store) Close() error { return nil }

type updating struct{ store *Store }

// Update runs f in one transaction; see package store. An Update inside the closure of another one is
// refused with fault.State, because it would wait for itself.
func (s *Store) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if ctx.Value(updating{s}) != nil {
		return fault.New(
			fault.State, "update_nested",
			"an update was started inside an update: use the transaction that the closure was given",
		)
	}

	var err error
	for range maxTries {
		if err = s.try(ctx, f); !errors.Is(err, fault.Conflict) {
			return err
		}
	}

	return fmt.Errorf("gave up after %d tries: %w", maxTries, err)
}

func (s *Store) try(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	select {
	case <-s.writer:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { s.writer <- struct{}{} }()

	tx := &transaction{reader: reader{store: s, base: s.base, over: make(layer, len(tables))}}
	committed := false

	defer func() { // also while a panic of f passes through
		tx.ended = true
		if !committed {
			tx.restoreVersions()
		}
	}()

	if err := f(context.WithValue(ctx, updating{s}, true), tx); err != nil {
		return err
	}

	if err := ctx.Err(); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for slot, over := range tx.over {
		if over != nil {
			over.(merger).mergeInto(s.base[slot])
		}
	}

	committed = true

	return nil
}

// reader reads the committed rows and, inside a transaction, its own writes above them.
type reader struct {
	store *Store
	base  layer
	over  layer // nil outside a transaction
	ended bool
}

// ready returns an error after the end of the context or of the transaction.
func (r *reader) ready(ctx context.Context) error {
	if r.ended {
		return fault.New(
			fault.State, "transaction_ended", "the transaction is over: its closure has returned",
		)
	}

	return ctx.Err()
}

// transaction is a running Update.
type transaction struct {
	reader
	raised []raised
}

var _ store.Tx = (*transaction)(nil)

// raised is a version that a Put raised in a caller's record.
type raised struct {
	version *int64
	before  int64
}

// restoreVersions resets the versions in callers' records, so that a retried closure may put a record
// that it captured.
func (tx *transaction) restoreVersions() {
	for i := len(tx.raised) - 1; i >= 0; i-- {
		*tx.raised[i].version = tx.raised[i].before
	}
}
