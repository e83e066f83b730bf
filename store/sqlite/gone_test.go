package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// A file that was deleted under the process still takes writes, and they are lost: they are refused instead.
func TestFileThatWentAwayRefusesWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.db")

	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()

	if err := st.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	if err := st.Probe(
		t.Context(),
	); !errors.Is(err, fault.Unavailable) ||
		fault.Code(err) != "database_gone" {
		t.Errorf("the probe found %v", err)
	}

	err = st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(ctx, &account.Account{ID: "a"})
	})
	if !errors.Is(err, fault.Unavailable) {
		t.Errorf("a write to a file that is gone: %v", err)
	}
}
