package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

const (
	// maxTries bounds how often Update runs a closure that ends in fault.Conflict. Closures run again one at
	// a time, but each new one may still commit first: the limit is above the number that the suite runs at
	// once.
	maxTries = 40
	// format is the format of keys and values; a database with another one is refused.
	format = "1"
)

// formatKey is where the format is stored, below all tables.
var formatKey = key("\x00format")

// kvStore is a store.Store over a Backend.
type kvStore struct {
	reader
	backend Backend
	// turn holds a token that a closure needs to run again, so that closures in conflict take turns.
	turn chan struct{}

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	closing sync.Once
	failed  error // the error of the backend's Close
}

var _ store.Store = (*kvStore)(nil)

// Open returns a store over a backend, which the store's Close closes. Errors:
//   - fault.Unavailable: the backend fails, or holds records of another format (code format_unknown)
func Open(ctx context.Context, backend Backend) (store.Store, error) {
	s := &kvStore{backend: backend, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}

	s.reader.view = s.view

	err := backend.Update(ctx, func(b Writer) error {
		stored, err := b.Get(formatKey)
		if err != nil {
			return err
		}

		if stored == nil {
			return b.Put(formatKey, []byte(format))
		}

		if string(stored) != format {
			return fault.New(
				fault.Unavailable, "format_unknown",
				"the database has format %q, and this program reads %q", stored, format,
			)
		}

		return nil
	})
	if err != nil {
		return nil, explain(err, "open the store")
	}

	return s, nil
}

// Close closes the backend when the last transaction has ended. Later calls fail with fault.Unavailable.
func (s *kvStore) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()

		s.running.Wait()

		if err := s.backend.Close(); err != nil {
			s.failed = explain(err, "close the store")
		}
	})

	return s.failed
}

// begin registers a transaction, which ends with s.running.Done.
func (s *kvStore) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closed {
		return fault.New(fault.Unavailable, "store_closed", "the store is closed")
	}

	s.running.Add(1)

	return nil
}

// view reads committed records.
func (s *kvStore) view(ctx context.Context, f func(Reader) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()

	return explain(s.backend.View(ctx, f), "read")
}

type updating struct{ store *kvStore }

// Update runs f in one transaction; see package store. An Update inside the closure of another one is
// refused with fault.State, because it would wait for itself.
func (s *kvStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if ctx.Value(updating{s}) != nil {
		return fault.New(
			fault.State, "update_nested",
			"an update was started inside an update: use the transaction that the closure was given",
		)
	}

	err := s.try(ctx, f)
	for tries := 1; errors.Is(err, fault.Conflict); tries++ {
		if tries == maxTries {
			return fmt.Errorf("gave up after %d tries: %w", tries, err)
		}

		err = s.tryAlone(ctx, f)
	}

	return err
}

// tryAlone is try while no other closure of this process runs again.
func (s *kvStore) tryAlone(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { s.turn <- struct{}{} }()

	return s.try(ctx, f)
}

// try runs f once.
func (s *kvStore) try(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()

	tx := &transaction{}
	tx.reader.view = tx.read
	committed := false

	defer func() { // also while a panic of f passes through
		tx.ended = true
		if !committed {
			tx.restoreVersions()
		}
	}()

	var failed error

	err := s.backend.Update(ctx, func(b Writer) error {
		tx.on = b

		failed = f(context.WithValue(ctx, updating{s}, true), tx)
		if failed == nil {
			failed = tx.usable(ctx)
		}

		tx.ended = true

		return failed
	})

	committed = err == nil && failed == nil
	if failed != nil {
		return failed
	}

	return explain(err, "commit")
}

// explain wraps an error of the backend in fault.Unavailable, unless it already has a kind.
func explain(err error, doing string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	if _, classified := errors.AsType[*fault.Error](err); classified {
		return err
	}

	for _, kind := range []error{fault.Conflict, fault.Unavailable} {
		if errors.Is(err, kind) {
			return err
		}
	}

	return fault.Wrap(err, fault.Unavailable, "store_unavailable", "%s: the database failed", doing)
}
