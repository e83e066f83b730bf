// Package migrated makes databases that have the schema of today. Each is a copy of one that a test binary migrates
// once; a migration from nothing takes many times as long as what most tests do.
package migrated

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// SQLite returns the path of a new, migrated SQLite file in a directory of the test.
func SQLite(t testing.TB) string {
	t.Helper()

	file, err := sqliteFile()
	if err != nil {
		t.Fatalf("migrated: SQLite: %v", err)
	}

	path := filepath.Join(t.TempDir(), "payments.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatalf("migrated: SQLite: %v", err)
	}

	return path
}

// sqliteFile returns the content of a migrated file.
var sqliteFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "migrated")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "payments.db")

	db, err := sqlite.Open(path)
	if err != nil {
		return nil, err
	}

	if err := db.Close(); err != nil {
		return nil, err
	}

	// What a log beside the file holds would be missing in a copy.
	log, err := os.Stat(path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case log.Size() > 0:
		return nil, errors.New("a closed store left a log beside its file")
	}

	return os.ReadFile(path)
})
