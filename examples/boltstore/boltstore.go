// Package boltstore is a store in one file: store/kv over go.etcd.io/bbolt.
//
// docs/write-a-store.md explains it line by line.
package boltstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/kv"
)

const (
	// lockTimeout is how long Open waits for another process that has the file open.
	lockTimeout = time.Second
	// addressSpace is mapped at once. While the file is smaller, no transaction maps it anew, for which it
	// would have to wait until nobody reads.
	addressSpace = 1 << 30
)

// bucketName names the only bucket.
var bucketName = []byte("payments")

// Open returns the store in a file, which it makes if there is none.
func Open(ctx context.Context, path string) (store.Store, error) {
	b, err := OpenBackend(path)
	if err != nil {
		return nil, err
	}

	st, err := kv.Open(ctx, b)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}

	return st, nil
}

// Backend is a kv.Backend over a file of bbolt.
type Backend struct{ db *bbolt.DB }

// OpenBackend opens a file, which it makes if there is none.
func OpenBackend(path string) (*Backend, error) {
	options := *bbolt.DefaultOptions
	options.Timeout = lockTimeout
	options.InitialMmapSize = addressSpace

	db, err := bbolt.Open(path, 0o600, &options)
	if err != nil {
		return nil, err
	}

	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}

	return &Backend{db}, nil
}

// View calls f with a snapshot.
func (b *Backend) View(_ context.Context, f func(kv.Reader) error) error {
	return b.db.View(func(tx *bbolt.Tx) error { return f(transaction{tx.Bucket(bucketName)}) })
}

// Update calls f in the only transaction that writes.
func (b *Backend) Update(ctx context.Context, f func(kv.Writer) error) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}

		return f(transaction{tx.Bucket(bucketName)})
	})
}

// Close closes the file.
func (b *Backend) Close() error { return b.db.Close() }

// transaction is the bucket in one transaction.
type transaction struct{ bucket *bbolt.Bucket }

// Get returns the value of a key, or nil.
func (t transaction) Get(key []byte) ([]byte, error) { return t.bucket.Get(key), nil }

// Scan visits the keys at or above from and below to.
func (t transaction) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	cursor := t.bucket.Cursor()

	next := cursor.Next

	key, value := cursor.Seek(from)
	if descending {
		next = cursor.Prev
		key, value = last(cursor, to)
	}

	for ; inside(key, from, to) && visit(key, value); key, value = next() {
	}

	return nil
}

// inside reports whether a key is at or above from and below to. The cursor's end has none.
func inside(key, from, to []byte) bool {
	return key != nil && bytes.Compare(key, from) >= 0 && bytes.Compare(key, to) < 0
}

// last moves the cursor to the last key below to.
func last(cursor *bbolt.Cursor, to []byte) (key, value []byte) {
	if key, _ := cursor.Seek(to); key == nil {
		return cursor.Last()
	}

	return cursor.Prev()
}

// Put sets the value of a key.
func (t transaction) Put(key, value []byte) error { return t.bucket.Put(key, value) }

// Delete removes a key.
func (t transaction) Delete(key []byte) error { return t.bucket.Delete(key) }
