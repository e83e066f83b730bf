package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/kv"
)

// backendMutant is a backend that breaks one sentence of kv.Backend.
type backendMutant struct {
	fails  string
	change func(*model) kv.Backend
}

var errTooLarge = errors.New("the transaction is too large")

// allBackendMutants returns the mutants of the whole suite.
func allBackendMutants() map[string]backendMutant {
	all := maps.Clone(backendMutants)
	maps.Copy(all, scanMutants)

	return all
}

var backendMutants = map[string]backendMutant{
	"an absent key is an error": {
		"Values",
		wrongGet(func(r kv.Reader, key []byte) ([]byte, error) {
			value, err := r.Get(key)
			if err == nil && value == nil {
				err = errors.New("not found")
			}

			return value, err
		}),
	},
	"an absent key is empty": {
		"Values",
		wrongGet(func(r kv.Reader, key []byte) ([]byte, error) {
			value, err := r.Get(key)
			return append([]byte{}, value...), err
		}),
	},
	"deleting nothing is an error": {
		"Values",
		wrongDelete(func(w writes, key []byte) error {
			if value, _ := w.Get(key); value == nil {
				return errors.New("not found")
			}

			return w.Writer.Delete(key)
		}),
	},
	"a transaction of 5,000 keys is too large": {
		"Values/Sizes",
		wrongPut(func(w writes, key, value []byte) error {
			if len(w.own) >= 5000 {
				return errTooLarge
			}

			return w.Writer.Put(key, value)
		}),
	},
	"a transaction of 4 MiB is too large": {
		"Values/Sizes",
		wrongPut(func(w writes, key, value []byte) error {
			size := len(value)
			for _, other := range w.own {
				size += len(other)
			}

			if len(w.own) < 10 && size > 4<<20 {
				return errTooLarge
			}

			return w.Writer.Put(key, value)
		}),
	},
	"Put changes its value": {
		"Values/Kept",
		wrongPut(func(w writes, key, value []byte) error {
			err := w.Writer.Put(key, bytes.Clone(value))
			value[0]++

			return err
		}),
	},
	"Get answers in one slice": {
		"Values/Got",
		wrongReads(func(r kv.Reader) kv.Reader {
			return oneSlice{r, new([]byte)}
		}),
	},
	"a put is written where Get looks": {
		"Values/Got",
		wrongPut(func(w writes, key, value []byte) error {
			if before, _ := w.Get(key); len(before) >= len(value) {
				found := w.Writer.(*modelTx).handed
				for _, slice := range found {
					if bytes.Equal(slice, before) {
						copy(slice, value)
					}
				}
			}

			return w.Writer.Put(key, value)
		}),
	},
	"deleting an own put brings the committed value back": {
		"Values/LastWrite",
		wrongWrites(func(w kv.Writer) kv.Writer {
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
	"a put after a delete is lost": {
		"Values/LastWrite",
		wrongPut(func(w writes, key, value []byte) error {
			if before, deleted := w.own[string(key)]; deleted && before == nil {
				return nil
			}

			return w.Writer.Put(key, value)
		}),
	},
	"a closure that fails is committed": {
		"Rollback/Error",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) (failed error) {
				err := m.Update(ctx, func(w kv.Writer) error {
					failed = f(w)
					return nil
				})

				return errors.Join(failed, err)
			}
		}),
	},
	"an error is a text": {
		"Rollback/Error",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) error {
				if err := m.Update(ctx, f); err != nil {
					return fmt.Errorf("update: %s", err) //nolint:errorlint // the mutant loses the error
				}

				return nil
			}
		}),
	},
	"a failed closure leaves its lock behind": {
		"Rollback/Error",
		locked(func(err error, _ bool) bool { return err != nil }),
	},
	"a panic leaves its lock behind": {
		"Rollback/Panic",
		locked(func(_ error, panicked bool) bool { return panicked }),
	},
	"a panic is an error": {
		"Rollback/Panic",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
				}()

				return m.Update(ctx, f)
			}
		}),
	},
	"an ended context is no error": {
		"Rollback/Context",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) error {
				if ctx.Err() != nil {
					return nil
				}

				return m.Update(ctx, f)
			}
		}),
	},
	"a context that ends is told after the commit": {
		"Rollback/Context",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) error {
				return errors.Join(m.Update(ctx, f), ctx.Err())
			}
		}),
	},
	"a View sees later commits": {
		"Isolation/Snapshot",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.view = func(_ context.Context, f func(kv.Reader) error) error { return f(live{m}) }
		}),
	},
	"an Update waits for Views": {
		"Isolation/Snapshot",
		exclusive(
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
		),
	},
	"a View waits for an Update": {
		"Isolation/Inside",
		exclusive(
			func(lock chan struct{}, f func(kv.Writer) error) func(kv.Writer) error {
				return func(w kv.Writer) error {
					lock <- struct{}{}
					defer func() { <-lock }()

					return f(w)
				}
			},
		),
	},
	"a View loses its error": {
		"Isolation/ViewError",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.view = func(ctx context.Context, f func(kv.Reader) error) error {
				_ = m.View(ctx, f)
				return nil
			}
		}),
	},
	"a conflict is an error of its own": {
		"Conflict/Counter",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) error {
				err := m.Update(ctx, f)
				if errors.Is(err, fault.Conflict) {
					return errors.New("write conflict")
				}

				return err
			}
		}),
	},
	"a closure that conflicts runs again inside": {
		"Conflict/Counter",
		wrongCalls(func(b *faultyBackend, m *model) {
			b.update = func(ctx context.Context, f func(kv.Writer) error) (err error) {
				for range 5 {
					if err = m.Update(ctx, f); !errors.Is(err, fault.Conflict) {
						break
					}
				}

				return err
			}
		}),
	},
	"what conflicts is committed": {
		"Conflict/Counter",
		wrongCommit(func(f *modelFaults) { f.commitsConflict = true }),
	},
	"absent keys are not compared": {
		"Conflict/Absent",
		wrongCommit(func(f *modelFaults) { f.ignoresAbsent = true }),
	},
	"deletes are not compared": {
		"Conflict/Delete",
		wrongCommit(func(f *modelFaults) { f.ignoresDeletes = true }),
	},
	"only written keys are compared": {
		"Conflict/WriteSkew",
		wrongCommit(func(f *modelFaults) { f.ignoresReads = true }),
	},
	"a reopened backend is empty": {
		"Reopen",
		func(m *model) kv.Backend {
			m.mu.Lock()
			defer m.mu.Unlock()

			m.items = &modelItems{}

			return m
		},
	},
	"a commit is in two parts": {
		"Crash",
		wrongCommit(func(f *modelFaults) { f.tearsLog = true }),
	},
	"a commit is durable after a time": {
		"Crash",
		wrongCommit(func(f *modelFaults) { f.delaysLog = true }),
	},
}
