package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/btree"

	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/kv"
)

// TestBackendOfModel is the suite over the weakest backend that kv.Backend allows. The store asks for no more
// than the comments say if it passes, and the mutants of the suite are made of it.
func TestBackendOfModel(t *testing.T) {
	conformance.TestBackend(t, conformance.Backends{
		Open: func(dir string) (kv.Backend, error) {
			m, err := openModel(filepath.Join(dir, "log"))
			if err != nil {
				return nil, err
			}

			if mutant, ok := allBackendMutants()[os.Getenv(mutantVariable)]; ok {
				return mutant.change(m), nil
			}

			return m, nil
		},
	})
}

// model is a kv.Backend in memory with a log of its commits in a file.
//
// Its transactions are optimistic and compare no scans: only keys that were got, and found absent, conflict. What
// it passes to visit, and what Get returned, is overwritten as soon as the contract allows.
type model struct {
	faults modelFaults

	mu      sync.Mutex
	items   *modelItems
	commits int            // so far
	changed map[string]int // the commit that changed a key last
	log     *os.File
}

// modelItems are the keys with their values. Values are never written to.
type modelItems = btree.Map[string, []byte]

// modelFaults are what a mutant does wrong at its commits.
type modelFaults struct {
	ignoresReads    bool // compares the keys that were written alone
	ignoresAbsent   bool // does not compare keys that were found absent
	ignoresDeletes  bool // does not remember who deleted a key
	commitsConflict bool // commits, and then reports the conflict
	tearsLog        bool // writes its log in two parts
	delaysLog       bool // writes its log at Close
}

func openModel(path string) (*model, error) {
	log, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}

	m := &model{items: &modelItems{}, changed: map[string]int{}, log: log}

	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the last line was not written to its end
			_, err = log.Seek(-int64(len(line)), 1)
			return m, err
		}

		var writes []modelPair
		if err := json.Unmarshal(line, &writes); err != nil {
			return nil, err
		}

		m.apply(writes)
	}
}

// modelPair is a key with its value, nil for none. JSON keeps their bytes.
type modelPair struct{ Key, Value []byte }

func (m *model) apply(writes []modelPair) {
	m.commits++

	for _, write := range writes {
		if write.Value == nil {
			m.items.Delete(string(write.Key))
		} else {
			m.items.Set(string(write.Key), write.Value)
		}

		if write.Value != nil || !m.faults.ignoresDeletes {
			m.changed[string(write.Key)] = m.commits
		}
	}
}

func (m *model) View(_ context.Context, f func(kv.Reader) error) error {
	tx := m.begin()
	defer tx.poison()

	return f(tx)
}

func (m *model) Update(_ context.Context, f func(kv.Writer) error) error {
	tx := m.begin()
	defer tx.poison()

	if err := f(tx); err != nil {
		return err
	}

	return m.commit(tx)
}

func (m *model) begin() *modelTx {
	m.mu.Lock()
	defer m.mu.Unlock()

	return &modelTx{
		items:  m.items.IsoCopy(),
		began:  m.commits,
		got:    map[string]bool{},
		writes: map[string][]byte{},
	}
}

func (m *model) commit(tx *modelTx) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	conflict := m.conflicts(tx)
	if conflict && !m.faults.commitsConflict {
		return errModelConflict
	}

	writes := make([]modelPair, 0, len(tx.order))
	for _, key := range tx.order {
		writes = append(writes, modelPair{[]byte(key), tx.writes[key]})
	}

	if err := m.append(writes); err != nil {
		return err
	}

	m.apply(writes)

	if conflict {
		return errModelConflict
	}

	return nil
}

var errModelConflict = fault.New(
	fault.Conflict,
	"write_conflict",
	"another transaction changed what this one got",
)

// conflicts reports whether a key that the transaction got was changed since it began.
func (m *model) conflicts(tx *modelTx) bool {
	for key, existed := range tx.got {
		_, written := tx.writes[key]
		if m.faults.ignoresReads && !written || m.faults.ignoresAbsent && !existed {
			continue
		}

		if m.changed[key] > tx.began {
			return true
		}
	}

	return false
}

// tornFor is how long a commit in two parts is torn: long beside the rest of it, so that a crash finds it so.
const tornFor = 25 * time.Millisecond

// append writes a commit to the log.
func (m *model) append(writes []modelPair) error {
	parts := [][]modelPair{writes}
	if m.faults.tearsLog {
		parts = [][]modelPair{writes[:len(writes)/2], writes[len(writes)/2:]}
	}

	for _, part := range parts {
		line, err := json.Marshal(part)
		if err != nil {
			return err
		}

		if m.faults.delaysLog {
			continue
		}

		if _, err := m.log.Write(append(line, '\n')); err != nil {
			return err
		}

		if m.faults.tearsLog {
			if err := m.log.Sync(); err != nil {
				return err
			}

			time.Sleep(tornFor)
		}
	}

	return nil
}

func (m *model) Close() error { return m.log.Close() }

// modelTx is a transaction of a model.
type modelTx struct {
	items  *modelItems // with its own writes
	began  int
	got    map[string]bool // and whether there was a value
	writes map[string][]byte
	order  []string // the keys of writes
	handed [][]byte // what Get returned
}

func (tx *modelTx) Get(key []byte) ([]byte, error) {
	value, ok := tx.items.Get(string(key))

	if _, own := tx.writes[string(key)]; !own {
		tx.got[string(key)] = ok
	}

	if !ok {
		return nil, nil
	}

	tx.handed = append(tx.handed, bytes.Clone(value))

	return tx.handed[len(tx.handed)-1], nil
}

func (tx *modelTx) Scan(from, to []byte, descending bool, visit func(key, value []byte) bool) error {
	low, high := string(from), string(to)

	show := func(key string, value []byte) bool {
		k, v := []byte(key), bytes.Clone(value)
		defer overwrite(k, v)

		return visit(k, v)
	}

	if !descending {
		tx.items.Ascend(low, func(key string, value []byte) bool { return key < high && show(key, value) })
		return nil
	}

	tx.items.Descend(high, func(key string, value []byte) bool {
		return key == high || key >= low && show(key, value)
	})

	return nil
}

func (tx *modelTx) Put(key, value []byte) error {
	if len(key) == 0 || len(value) == 0 {
		return errors.New("the store puts an empty key or value")
	}

	tx.write(string(key), value)
	tx.items.Set(string(key), value)

	return nil
}

func (tx *modelTx) Delete(key []byte) error {
	tx.write(string(key), nil)
	tx.items.Delete(string(key))

	return nil
}

func (tx *modelTx) write(key string, value []byte) {
	if _, again := tx.writes[key]; !again {
		tx.order = append(tx.order, key)
	}

	tx.writes[key] = value
}

// poison overwrites what Get returned: the transaction has ended.
func (tx *modelTx) poison() { overwrite(tx.handed...) }

func overwrite(slices ...[]byte) {
	for _, slice := range slices {
		for i := range slice {
			slice[i] = 0xee
		}
	}
}
