package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/kv"
)

// backendMutant is a backend that breaks one sentence of kv.Backend.
type backendMutant struct {
	fails  string
	change func(*model) kv.Backend
}

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

var errTooLarge = errors.New("the transaction is too large")

var backendMutants = map[string]backendMutant{
	"an absent key is an error": {"Values", wrongGet(func(r kv.Reader, key []byte) ([]byte, error) {
		value, err := r.Get(key)
		if err == nil && value == nil {
			err = errors.New("not found")
		}

		return value, err
	})},
	"an absent key is empty": {"Values", wrongGet(func(r kv.Reader, key []byte) ([]byte, error) {
		value, err := r.Get(key)
		return append([]byte{}, value...), err
	})},
	"deleting nothing is an error": {"Values", wrongDelete(func(w writes, key []byte) error {
		if value, _ := w.Get(key); value == nil {
			return errors.New("not found")
		}

		return w.Writer.Delete(key)
	})},
	"a transaction of 5,000 keys is too large": {"Values/Sizes", wrongPut(func(w writes, key, value []byte) error {
		if len(w.own) >= 5000 {
			return errTooLarge
		}

		return w.Writer.Put(key, value)
	})},
	"a transaction of 4 MiB is too large": {"Values/Sizes", wrongPut(func(w writes, key, value []byte) error {
		size := len(value)
		for _, other := range w.own {
			size += len(other)
		}

		if len(w.own) < 10 && size > 4<<20 {
			return errTooLarge
		}

		return w.Writer.Put(key, value)
	})},
	"Put changes its value": {"Values/Kept", wrongPut(func(w writes, key, value []byte) error {
		err := w.Writer.Put(key, bytes.Clone(value))
		value[0]++

		return err
	})},
	"Get answers in one slice": {"Values/Got", wrongReads(func(r kv.Reader) kv.Reader {
		return oneSlice{r, new([]byte)}
	})},
	"a put is written where Get looks": {"Values/Got", wrongPut(func(w writes, key, value []byte) error {
		if before, _ := w.Get(key); len(before) >= len(value) {
			found := w.Writer.(*modelTx).handed
			for _, slice := range found {
				if bytes.Equal(slice, before) {
					copy(slice, value)
				}
			}
		}

		return w.Writer.Put(key, value)
	})},
	"deleting an own put brings the committed value back": {
		"Values/LastWrite", wrongWrites(func(w kv.Writer) kv.Writer {
			committed := map[string][]byte{}

			return writes{
				Writer: w,
				own:    map[string][]byte{},
				put: func(w writes, key, value []byte) error {
					if _, again := w.own[string(key)]; !again {
						before, _ := w.Get(key)
						committed[string(key)] = bytes.Clone(before)
					}

					return w.Writer.Put(key, value)
				},
				delete: func(w writes, key []byte) error {
					if before := committed[string(key)]; before != nil {
						return w.Writer.Put(key, before)
					}

					return w.Writer.Delete(key)
				},
			}
		}),
	},
	"a put after a delete is lost": {"Values/LastWrite", wrongPut(func(w writes, key, value []byte) error {
		if before, deleted := w.own[string(key)]; deleted && before == nil {
			return nil
		}

		return w.Writer.Put(key, value)
	})},
	"to is in the range": {"Order", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			return r.Scan(from, append(bytes.Clone(to), 0), descending, visit)
		},
	)},
	"a descending scan begins at to": {"Order", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			if descending {
				to = append(bytes.Clone(to), 0)
			}

			return r.Scan(from, to, descending, visit)
		},
	)},
	"a descending scan leaves from out": {"Order", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			return r.Scan(from, to, descending, func(key, value []byte) bool {
				return descending && bytes.Equal(key, from) || visit(key, value)
			})
		},
	)},
	"a descending scan passes over a key": {"Order", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			passed := !descending

			return r.Scan(from, to, descending, func(key, value []byte) bool {
				if !passed {
					passed = true
					return true
				}

				return visit(key, value)
			})
		},
	)},
	"a descending scan does not stop": {"Order/Stop", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			return r.Scan(from, to, descending, func(key, value []byte) bool { return visit(key, value) || descending })
		},
	)},
	"a scan ends after 1,000 keys": {"Order/Long", wrongScan(
		func(r kv.Reader, from, to []byte, descending bool, visit func(key, value []byte) bool) error {
			visited := 0

			return r.Scan(from, to, descending, func(key, value []byte) bool {
				visited++
				return visit(key, value) && visited < 1000
			})
		},
	)},
	"own puts are scanned last": {"Order/OwnWrites", wrongWrites(func(w kv.Writer) kv.Writer {
		return ownLast{writes{Writer: w, own: map[string][]byte{}}}
	})},
	"own deletes are scanned": {"Order/OwnWrites", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			var gone [][]byte

			return m.Update(ctx, func(w kv.Writer) error {
				late := writes{Writer: w, own: map[string][]byte{}, delete: func(_ writes, key []byte) error {
					gone = append(gone, key)
					return nil
				}}

				err := f(late)
				for _, key := range gone {
					err = errors.Join(err, w.Delete(key))
				}

				return err
			})
		}
	})},
	"a closure that fails is committed": {"Rollback/Error", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) (failed error) {
			err := m.Update(ctx, func(w kv.Writer) error {
				failed = f(w)
				return nil
			})

			return errors.Join(failed, err)
		}
	})},
	"an error is a text": {"Rollback/Error", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			if err := m.Update(ctx, f); err != nil {
				return fmt.Errorf("update: %s", err) //nolint:errorlint // the mutant loses the error
			}

			return nil
		}
	})},
	"a failed closure leaves its lock behind": {
		"Rollback/Error", locked(func(err error, _ bool) bool { return err != nil }),
	},
	"a panic leaves its lock behind": {"Rollback/Panic", locked(func(_ error, panicked bool) bool { return panicked })},
	"a panic is an error": {"Rollback/Panic", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()

			return m.Update(ctx, f)
		}
	})},
	"an ended context is no error": {"Rollback/Context", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			if ctx.Err() != nil {
				return nil
			}

			return m.Update(ctx, f)
		}
	})},
	"a context that ends is told after the commit": {"Rollback/Context", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			return errors.Join(m.Update(ctx, f), ctx.Err())
		}
	})},
	"a View sees later commits": {"Isolation/Snapshot", wrongCalls(func(b *faultyBackend, m *model) {
		b.view = func(_ context.Context, f func(kv.Reader) error) error { return f(live{m}) }
	})},
	"an Update waits for Views": {"Isolation/Snapshot", exclusive(
		func(lock chan struct{}, f func(kv.Writer) error) func(kv.Writer) error {
			return func(w kv.Writer) error {
				if err := f(w); err != nil {
					return err
				}

				lock <- struct{}{}
				<-lock

				return nil
			}
		},
	)},
	"a View waits for an Update": {"Isolation/Inside", exclusive(
		func(lock chan struct{}, f func(kv.Writer) error) func(kv.Writer) error {
			return func(w kv.Writer) error {
				lock <- struct{}{}
				defer func() { <-lock }()

				return f(w)
			}
		},
	)},
	"a View loses its error": {"Isolation/ViewError", wrongCalls(func(b *faultyBackend, m *model) {
		b.view = func(ctx context.Context, f func(kv.Reader) error) error {
			_ = m.View(ctx, f)
			return nil
		}
	})},
	"a conflict is an error of its own": {"Conflict/Counter", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) error {
			err := m.Update(ctx, f)
			if errors.Is(err, fault.Conflict) {
				return errors.New("write conflict")
			}

			return err
		}
	})},
	"a closure that conflicts runs again inside": {"Conflict/Counter", wrongCalls(func(b *faultyBackend, m *model) {
		b.update = func(ctx context.Context, f func(kv.Writer) error) (err error) {
			for range 5 {
				if err = m.Update(ctx, f); !errors.Is(err, fault.Conflict) {
					break
				}
			}

			return err
		}
	})},
	"what conflicts is committed":    {"Conflict/Counter", wrongCommit(func(f *modelFaults) { f.commitsConflict = true })},
	"absent keys are not compared":   {"Conflict/Absent", wrongCommit(func(f *modelFaults) { f.ignoresAbsent = true })},
	"deletes are not compared":       {"Conflict/Delete", wrongCommit(func(f *modelFaults) { f.ignoresDeletes = true })},
	"only written keys are compared": {"Conflict/WriteSkew", wrongCommit(func(f *modelFaults) { f.ignoresReads = true })},
	"a reopened backend is empty": {"Reopen", func(m *model) kv.Backend {
		m.mu.Lock()
		defer m.mu.Unlock()

		m.items = &modelItems{}

		return m
	}},
	"a commit is in two parts":         {"Crash", wrongCommit(func(f *modelFaults) { f.tearsLog = true })},
	"a commit is durable after a time": {"Crash", wrongCommit(func(f *modelFaults) { f.delaysLog = true })},
}
