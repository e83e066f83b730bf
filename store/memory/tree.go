package memory

import (
	"context"
	"sync"

	"github.com/tidwall/btree"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// items are the keys in their order. A value is []byte, or a record that kv stored as it is.
type items = btree.Map[string, any]

// tree is a kv.Backend over a B-tree whose copies share their unchanged parts.
//
// A transaction writes in place and records how to undo it. If a View holds the tree meanwhile, the
// transaction writes into a copy. The first View that begins during a transaction makes a copy without the
// transaction's writes, for itself and for later Views.
type tree struct {
	// writer holds a token while no Update runs.
	writer chan struct{}

	mu      sync.Mutex // guards the fields below, readers, and every write
	current *version
	undo    []item   // what the running Update replaced, in order
	before  *version // the committed tree, set when a View began during the running Update
}

// version is a tree that some Views read.
type version struct {
	items   *items
	readers int
}

// item is a key with its value; nil if it has none.
type item struct {
	key   string
	value any
}

func newTree() *tree {
	t := &tree{writer: make(chan struct{}, 1), current: &version{items: &items{}}}
	t.writer <- struct{}{}

	return t
}

// clone returns a tree with the committed items.
func (t *tree) clone() *tree {
	t.mu.Lock()
	defer t.mu.Unlock()

	out := newTree()
	out.current.items = t.committed().items.IsoCopy()

	return out
}

// committed returns the tree as it was before the running Update.
func (t *tree) committed() *version {
	if len(t.undo) == 0 {
		return t.current
	}

	if t.before == nil {
		t.before = &version{items: t.current.items.IsoCopy()}
		revert(t.before.items, t.undo)
	}

	return t.before
}

// revert undoes a transaction's writes, last first.
func revert(in *items, undo []item) {
	for i := len(undo) - 1; i >= 0; i-- {
		set(in, undo[i])
	}
}

// set sets or deletes a key and returns the item that it replaced.
func set(in *items, i item) (before item) {
	if i.value == nil {
		value, _ := in.Delete(i.key)
		return item{i.key, value}
	}

	value, _ := in.Set(i.key, i.value)

	return item{i.key, value}
}

func (t *tree) View(_ context.Context, f func(kv.Reader) error) error {
	v := t.hold()

	defer func() {
		t.mu.Lock()
		v.readers--
		t.mu.Unlock()
	}()

	return f(reader{v.items})
}

// hold returns the committed tree, which is not changed until its readers are gone.
func (t *tree) hold() *version {
	t.mu.Lock()
	defer t.mu.Unlock()

	v := t.committed()
	v.readers++

	return v
}

func (t *tree) Update(ctx context.Context, f func(kv.Writer) error) error {
	select {
	case <-t.writer:
	case <-ctx.Done():
		return ctx.Err()
	}

	defer func() { t.writer <- struct{}{} }()

	committed := false

	defer func() { // also while a panic of f passes through
		t.mu.Lock()
		defer t.mu.Unlock()

		if !committed {
			revert(t.current.items, t.undo)
		}

		clear(t.undo)
		t.undo, t.before = t.undo[:0], nil
	}()

	if err := f(&writer{reader{t.current.items}, t}); err != nil {
		return err
	}

	committed = true

	return nil
}

// write sets or deletes a key in the running Update, and returns the tree that has it.
func (t *tree) write(i item) *items {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.current.readers > 0 {
		t.current = &version{items: t.current.items.IsoCopy()}
	}

	t.undo = append(t.undo, set(t.current.items, i))

	return t.current.items
}

func (t *tree) Close() error { return nil }
