package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// Where tables are spread by account, every machine is asked for an id once: afterwards its account is known. A record
// that is not where it was is looked for on all of them again.
func TestEveryMachineIsAskedForAnIDOnce(t *testing.T) {
	st, db := openSQLite(t)
	fill(t, st)

	look := sqlstore.Spread(db, "sqlite")
	step := func(what, owner string, byAccount ...bool) {
		t.Helper()

		got, texts, err := look(t.Context(), "inv_007")
		if err != nil || got != owner || len(texts) != len(byAccount) {
			t.Fatalf("%s: the invoice is of %q by %q, %v", what, got, texts, err)
		}

		for i, text := range texts {
			if strings.HasSuffix(text, "account_id = ?") != byAccount[i] {
				t.Errorf("%s: statement %d is %s", what, i, text)
			}
		}
	}

	step("the first look", scanned.AccountID, false)
	step("the second", scanned.AccountID, true)

	if _, err := db.ExecContext(
		t.Context(), "UPDATE payments_invoices SET account_id = 'other' WHERE id = 'inv_007'",
	); err != nil {
		t.Fatal(err)
	}

	step("a record that is elsewhere", "other", true, false)
	step("the next look", "other", true)
}

// openSQLite returns a new store, and its file opened beside it.
func openSQLite(t testing.TB) (*sqlite.Store, *sql.DB) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "payments.db")

	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })

	if err := sqlite.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = st.Close() })

	return st, db
}
