package sqlite_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// endTransaction is a statement of a host that fails and takes its transaction with it, as SQLite does by itself where
// a write is interrupted or the disk is full.
const endTransaction = "INSERT OR ROLLBACK INTO orders VALUES ('taken')"

// A hook that swallows the error of a statement which ended the transaction has nothing committed alone, before it or
// after it: a payout would be paid again under its idempotency key.
func TestEndedTransactionCommitsNothing(t *testing.T) {
	db, _ := host(t)
	st := sqlite.New(db)

	if _, err := db.Exec(
		"CREATE TABLE orders (id TEXT PRIMARY KEY); INSERT INTO orders VALUES ('taken')",
	); err != nil {
		t.Fatal(err)
	}

	attempts := 0

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := put("before")(ctx, tx); err != nil {
			return err
		}

		attempts++

		hosts, _ := sqlite.SQLTx(tx)
		if _, err := hosts.ExecContext(ctx, endTransaction); err == nil {
			t.Error("the host's statement did not fail")
		}

		return put("after")(ctx, tx)
	})
	if err == nil || attempts != 1 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}

	for _, id := range []string{"before", "after"} {
		if _, err := st.InvoiceByID(t.Context(), id); !errors.Is(err, fault.NotFound) {
			t.Errorf("what was put %s the transaction ended was committed alone: %v", id, err)
		}
	}

	joined, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer joined.Rollback()

	tx, flush := sqlite.Join(joined)
	if err := put("joined")(t.Context(), tx); err != nil {
		t.Fatal(err)
	}

	if _, err := joined.Exec(endTransaction); err == nil {
		t.Error("the host's statement did not fail")
	}

	if err := flush(t.Context()); !errors.Is(err, fault.Conflict) {
		t.Errorf("what is flushed into an ended transaction answers %v", err)
	}

	_ = joined.Rollback()

	if _, err := st.InvoiceByID(t.Context(), "joined"); !errors.Is(err, fault.NotFound) {
		t.Errorf("a joined write was committed alone: %v", err)
	}
}
