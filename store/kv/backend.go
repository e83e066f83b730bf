// Package kv is a whole store over any ordered key-value engine.
//
// An engine that keeps keys in the order of their bytes and commits transactions needs a Backend, which has
// seven methods; Open makes a store.Store of it. Records, unique and ordered indexes, versions, counters,
// leases, pruning and lists are written here once. For each record there is a table (the var blocks of
// account.go, invoice.go …) with its key and its indexes; the methods below the table read and write its
// records.
//
// docs/write-a-store.md explains how to write a Backend, conformance.TestBackend tests one, and
// examples/boltstore is one.
//
// It is one package because a transaction spans all records: each has a file, and they share the tables'
// private code.
package kv

import "context"

// Backend is an ordered key-value engine. Keys and values are bytes; keys are in the order of bytes.Compare.
// It is safe for concurrent use.
//
// A Backend returns the engine's errors as they are: the store wraps them in fault.Unavailable. An engine
// that finds two transactions in conflict returns fault.Conflict.
type Backend interface {
	// View calls f once with a snapshot: all that was committed when View was called, whatever commits
	// meanwhile. It does not wait for an Update that is running. It may be called inside one, and then does
	// not see its writes. It returns f's error, as it is or wrapped.
	View(ctx context.Context, f func(Reader) error) error
	// Update calls f once in a transaction that sees what was committed, and its own writes.
	//
	//   - f returns nil: everything is committed (durably if the engine is durable), or nothing is.
	//   - f returns an error: nothing remains, and that error is returned, as it is or wrapped.
	//   - f panics: nothing remains, and the panic goes on.
	//
	// Transactions that get the same keys run as if one after the other. If another transaction put or
	// deleted a key that this one got, or found absent, Update waits for that one first. Or it returns
	// fault.Conflict with nothing of f committed. Keys that only a scan visited need no comparison, nor do
	// ranges: the store gets every row on which it bases a decision.
	//
	// While Update waits to begin, the end of the context may end it with the context's error. Later the
	// context changes nothing: an error of Update always means that nothing was committed.
	Update(ctx context.Context, f func(Writer) error) error
	// Close frees the backend's resources. The store calls it once, when no View and no Update runs.
	Close() error
}

// Reader reads inside View or Update. It is used by one goroutine.
type Reader interface {
	// Get returns the value of a key, or nil when there is none. The slice must not change until the
	// transaction ends, whatever is read and written meanwhile. The store changes nothing in it, and does not
	// read it after that.
	Get(key []byte) ([]byte, error)
	// Scan calls visit for each key at or above from and below to, in ascending or in descending order, until
	// visit returns false. Neither bound is nil. The store keeps no key or value after visit returns, and
	// calls only Get inside visit.
	Scan(from, to []byte, descending bool, visit func(key, value []byte) (more bool)) error
}

// Writer reads and writes inside Update. Its reads see its writes.
type Writer interface {
	Reader
	// Put sets the value of a key. Keys have at most 8 KiB and values 1 MiB; neither is empty. The store
	// never changes either slice afterwards, so that the backend may keep them.
	//
	// One transaction has to hold 10,000 puts, and 8 MiB. If one key is written several times, the last write
	// counts.
	Put(key, value []byte) error
	// Delete removes a key; an absent one is no error.
	Delete(key []byte) error
}

// RecordReader is implemented by the Reader of a backend in the process's own memory, which keeps records
// without encoding. The store then copies records on their way in and out, and encodes none. store/memory has
// it.
type RecordReader interface {
	// Record returns the record that PutRecord stored under a key, or nil. The record must never be changed:
	// the store may read it after the transaction.
	Record(key []byte) any
}

// RecordWriter is implemented by the Writer of a backend whose Readers are RecordReaders.
type RecordWriter interface {
	RecordReader
	// PutRecord stores a record in place of Put: a pointer through which nobody writes any more.
	PutRecord(key []byte, record any)
}
