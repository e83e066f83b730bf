package conformance_test

import (
	"bytes"
	"context"

	"github.com/seed-8ee7f392/payments/store/kv"
)

// wrongCommit makes the model's own commits wrong.
func wrongCommit(set func(*modelFaults)) func(*model) kv.Backend {
	return func(m *model) kv.Backend {
		set(&m.faults)
		return m
	}
}

// faultyBackend is a backend with calls of it replaced.
type faultyBackend struct {
	kv.Backend
	view   func(ctx context.Context, f func(kv.Reader) error) error
	update func(ctx context.Context, f func(kv.Writer) error) error
}

func (b faultyBackend) View(ctx context.Context, f func(kv.Reader) error) error {
	return b.view(ctx, f)
}

func (b faultyBackend) Update(ctx context.Context, f func(kv.Writer) error) error {
	return b.update(ctx, f)
}

// wrongCalls replaces calls of a backend.
func wrongCalls(change func(b *faultyBackend, m *model)) func(*model) kv.Backend {
	return func(m *model) kv.Backend {
		b := faultyBackend{m, m.View, m.Update}
		change(&b, m)

		return b
	}
}

// wrongReads replaces the reads of both kinds of transactions.
func wrongReads(wrap func(kv.Reader) kv.Reader) func(*model) kv.Backend {
	return wrongCalls(func(b *faultyBackend, m *model) {
		b.view = func(ctx context.Context, f func(kv.Reader) error) error {
			return m.View(ctx, func(r kv.Reader) error { return f(wrap(r)) })
		}
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			return m.Update(ctx, func(w kv.Writer) error { return f(rereadWriter{w, wrap(w)}) })
		}
	})
}

// rereadWriter is a writer with other reads.
type rereadWriter struct {
	kv.Writer
	reads kv.Reader
}

func (w rereadWriter) Get(key []byte) ([]byte, error) { return w.reads.Get(key) }

func (w rereadWriter) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	return w.reads.Scan(from, to, descending, visit)
}

// wrongWrites replaces the writer of an Update.
func wrongWrites(wrap func(w kv.Writer) kv.Writer) func(*model) kv.Backend {
	return wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			return m.Update(ctx, func(w kv.Writer) error { return f(wrap(w)) })
		}
	})
}

// scans is a reader with another Scan.
type scans struct {
	kv.Reader
	scan func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error
}

func (r scans) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	return r.scan(r.Reader, from, to, descending, visit)
}

func wrongScan(
	scan func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error,
) func(*model) kv.Backend {
	return wrongReads(func(r kv.Reader) kv.Reader { return scans{r, scan} })
}

// gets is a reader with another Get.
type gets struct {
	kv.Reader
	get func(r kv.Reader, key []byte) ([]byte, error)
}

func (r gets) Get(key []byte) ([]byte, error) { return r.get(r.Reader, key) }

func wrongGet(get func(r kv.Reader, key []byte) ([]byte, error)) func(*model) kv.Backend {
	return wrongReads(func(r kv.Reader) kv.Reader { return gets{r, get} })
}

// writes is a writer that remembers what it wrote, with a Put, a Delete or a Scan of its own.
type writes struct {
	kv.Writer
	own    map[string][]byte
	put    func(w writes, key, value []byte) error
	delete func(w writes, key []byte) error
}

func (w writes) Put(key, value []byte) error {
	defer func() { w.own[string(key)] = value }()

	if w.put != nil {
		return w.put(w, key, value)
	}

	return w.Writer.Put(key, value)
}

func (w writes) Delete(key []byte) error {
	defer func() { w.own[string(key)] = nil }()

	if w.delete != nil {
		return w.delete(w, key)
	}

	return w.Writer.Delete(key)
}

func wrongPut(put func(w writes, key, value []byte) error) func(*model) kv.Backend {
	return wrongWrites(func(w kv.Writer) kv.Writer { return writes{Writer: w, own: map[string][]byte{}, put: put} })
}

func wrongDelete(remove func(w writes, key []byte) error) func(*model) kv.Backend {
	return wrongWrites(func(w kv.Writer) kv.Writer {
		return writes{Writer: w, own: map[string][]byte{}, delete: remove}
	})
}

// oneSlice is a reader whose Get answers in one slice.
type oneSlice struct {
	kv.Reader
	slice *[]byte
}

func (r oneSlice) Get(key []byte) ([]byte, error) {
	value, err := r.Reader.Get(key)
	if value == nil {
		return nil, err
	}

	*r.slice = append((*r.slice)[:0], value...)

	return *r.slice, err
}

// ownLast is a writer that scans what is committed, and then its own puts.
type ownLast struct{ writes }

func (w ownLast) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	more := true

	for _, own := range []bool{false, true} {
		err := w.Writer.Scan(from, to, descending, func(key, value []byte) bool {
			if _, put := w.own[string(key)]; more && put == own {
				more = visit(key, value)
			}

			return more
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// live is a reader that sees what is committed after its View began.
type live struct{ m *model }

func (r live) Get(key []byte) (value []byte, err error) {
	err = r.m.View(context.Background(), func(r kv.Reader) error {
		found, err := r.Get(key)
		value = bytes.Clone(found)

		return err
	})

	return value, err
}

func (r live) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	return r.m.View(context.Background(), func(r kv.Reader) error { return r.Scan(from, to, descending, visit) })
}

// locked runs Updates with a lock that some ends leave behind.
func locked(keep func(err error, panicked bool) bool) func(*model) kv.Backend {
	return wrongCalls(func(b *faultyBackend, m *model) {
		lock := make(chan struct{}, 1)

		b.update = func(ctx context.Context, f func(kv.Writer) error) (err error) {
			lock <- struct{}{}
			panicked := true

			defer func() {
				if !keep(err, panicked) {
					<-lock
				}
			}()

			err = m.Update(ctx, f)
			panicked = false

			return err
		}
	})
}

// exclusive runs Views and Updates one after the other, where they take the lock.
func exclusive(inUpdate func(lock chan struct{}, f func(kv.Writer) error) func(kv.Writer) error) func(*model) kv.Backend {
	return wrongCalls(func(b *faultyBackend, m *model) {
		lock := make(chan struct{}, 1)

		b.view = func(ctx context.Context, f func(kv.Reader) error) error {
			lock <- struct{}{}
			defer func() { <-lock }()

			return m.View(ctx, f)
		}
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			return m.Update(ctx, inUpdate(lock, f))
		}
	})
}
