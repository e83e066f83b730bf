package kv

import (
	"context"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
)

// transaction is a running Update.
type transaction struct {
	reader
	on     Writer
	raised []raised
	ended  bool
	broken error // the first failure of the backend: the transaction must not commit
}

var (
	_ store.Tx      = (*transaction)(nil)
	_ store.Breaker = (*transaction)(nil)
)

// Break implements store.Breaker.
func (tx *transaction) Break(err error) {
	if tx.broken == nil {
		tx.broken = err
	}
}

// usable returns an error after the end of the context or the transaction, or after a failure of the backend.
func (tx *transaction) usable(ctx context.Context) error {
	if tx.ended {
		return fault.New(
			fault.State, "transaction_ended", "the transaction is over: its closure has returned",
		)
	}

	if tx.broken != nil {
		return tx.broken
	}

	return ctx.Err()
}

// read calls f with the transaction's view of the records.
func (tx *transaction) read(ctx context.Context, f func(Reader) error) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	return tx.breakWith(f(tx.on))
}

// write calls f with the transaction of the backend.
func (tx *transaction) write(ctx context.Context, f func(Writer) error) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	return f(tx.on)
}

// breakWith records that the backend failed, so that the transaction cannot commit even when the caller
// ignores the error.
func (tx *transaction) breakWith(err error) error {
	if err != nil {
		tx.broken = explain(err, "use the database")
		return tx.broken
	}

	return nil
}

// raised is a version that a put raised in a caller's record.
type raised struct {
	version *int64
	before  int64
}

// raise raises a version in a caller's record.
func (tx *transaction) raise(version *int64) {
	tx.raised = append(tx.raised, raised{version, *version})
	*version++
}

// restoreVersions resets the versions in callers' records, so that a closure that runs again may put a
// record that it captured.
func (tx *transaction) restoreVersions() {
	for i := len(tx.raised) - 1; i >= 0; i-- {
		*tx.raised[i].version = tx.raised[i].before
	}
}
