package memory

import (
	"context"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// items are the keys in their order. A value is []byte, or a record that kv stored as it is.
type items = btree.Map[string, any]

// tree is a kv.Backend over a B-tree. A transaction writes into a copy, which shares all nodes that it does
// not change, and replaces the committed tree at its end.
type tree struct {
	committed atomic.Pointer[items]
	// writer holds a token while no Update runs.
	writer chan struct{}
}

func newTree() *tree {
	t := &tree{writer: make(chan struct{}, 1)}
	t.committed.Store(&items{})
	t.writer <- struct{}{}

	return t
}

// clone returns a tree with the committed items.
func (t *tree) clone() *tree {
	<-t.writer
	defer func() { t.writer <- struct{}{} }()

	out := newTree()
	out.committed.Store(t.committed.Load().IsoCopy())

	return out
}

func (t *tree) View(_ context.Context, f func(kv.Reader) error) error {
	return f(transaction{t.committed.Load()})
}

func (t *tree) Update(ctx context.Context, f func(kv.Writer) error) error {
	select {
	case <-t.writer:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { t.writer <- struct{}{} }()

	changed := t.committed.Load().IsoCopy()
	if err := f(transaction{changed}); err != nil {
		return err
	}

	t.committed.Store(changed)

	return nil
}

func (t *tree) Close() error { return nil }

// transaction reads and writes one copy of the tree.
type transaction struct{ items *items }

var _ kv.RecordWriter = transaction{}

func (tx transaction) Get(key []byte) ([]byte, error) {
	value, _ := tx.items.Get(string(key))
	bytes, _ := value.([]byte)

	return bytes, nil
}

func (tx transaction) Record(key []byte) any {
	record, _ := tx.items.Get(string(key))
	return record
}

func (tx transaction) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	low, high := string(from), string(to)
	inside := func(key string, value any) bool {
		bytes, _ := value.([]byte)
		return visit([]byte(key), bytes)
	}

	if !descending {
		tx.items.Ascend(low, func(key string, value any) bool { return key < high && inside(key, value) })
		return nil
	}

	tx.items.Descend(high, func(key string, value any) bool {
		return key == high || key >= low && inside(key, value)
	})

	return nil
}

func (tx transaction) Put(key, value []byte) error {
	tx.items.Set(string(key), value)
	return nil
}

func (tx transaction) PutRecord(key []byte, record any) { tx.items.Set(string(key), record) }

func (tx transaction) Delete(key []byte) error {
	tx.items.Delete(string(key))
	return nil
}
