package memory

import "github.com/seed-8ee7f392/payments/store/kv"

// reader reads one version of the tree.
type reader struct{ items *items }

var _ kv.RecordReader = reader{}

func (r reader) Get(key []byte) ([]byte, error) {
	value, _ := r.items.Get(string(key))
	bytes, _ := value.([]byte)

	return bytes, nil
}

func (r reader) Record(key []byte) any {
	record, _ := r.items.Get(string(key))
	return record
}

func (r reader) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	var buffer []byte // of the visited key

	low, high := string(from), string(to)
	inside := func(key string, value any) bool {
		buffer = append(buffer[:0], key...)
		bytes, _ := value.([]byte)

		return visit(buffer, bytes)
	}

	if !descending {
		r.items.Ascend(low, func(key string, value any) bool { return key < high && inside(key, value) })
		return nil
	}

	r.items.Descend(high, func(key string, value any) bool {
		return key == high || key >= low && inside(key, value)
	})

	return nil
}

// writer writes in the running Update.
type writer struct {
	reader
	tree *tree
}

var _ kv.RecordWriter = (*writer)(nil)

func (w *writer) Put(key, value []byte) error {
	w.items = w.tree.write(item{string(key), value})
	return nil
}

func (w *writer) PutRecord(key []byte, record any) {
	w.items = w.tree.write(item{string(key), record})
}

func (w *writer) Delete(key []byte) error {
	w.items = w.tree.write(item{string(key), nil})
	return nil
}
