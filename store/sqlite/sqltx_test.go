package sqlite_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// SQLTx says why there is no SQL transaction: the store has none, or the transaction is over.
func TestSQLTxSaysWhy(t *testing.T) {
	err := memory.New().Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		_, err := sqlite.SQLTx(tx)
		return err
	})
	if fault.Code(err) != "transaction_not_sql" || !errors.Is(err, fault.Unsupported) {
		t.Errorf("of another store: %v", err)
	}

	var ended store.Tx

	if err := open(t).Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		ended = tx
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if _, err := sqlite.SQLTx(ended); fault.Code(err) != "transaction_ended" {
		t.Errorf("after its end: %v", err)
	}
}

// A hook that ignores why a transaction broke, and returns an error of its own, does not hide it.
func TestBrokenTransactionIsNamed(t *testing.T) {
	own := errors.New("the host's own")

	err := open(t).Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		tx.(store.Breaker).Break(fault.New(fault.Unavailable, "database_down", "the connection is gone"))

		if _, err := sqlite.SQLTx(tx); !errors.Is(err, fault.Unavailable) {
			t.Errorf("SQLTx of a broken transaction: %v", err)
		}

		return own
	})
	if !errors.Is(err, own) || !errors.Is(err, fault.Unavailable) {
		t.Errorf("a broken transaction: %v", err)
	}
}

// What the host's own statement violates is told as it is: the store means something else by the same refusals.
func TestRefusalsOfTheHostsStatementsAreTheHosts(t *testing.T) {
	for name, statement := range map[string]string{
		"a missing value": "INSERT INTO orders (id) VALUES (NULL)",
		"a duplicate":     "INSERT INTO orders (id) VALUES ('1'), ('1')",
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0

			err := open(t).Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
				runs++

				hosts, err := sqlite.SQLTx(tx)
				if err != nil {
					return err
				}

				if _, err := hosts.ExecContext(
					ctx,
					"CREATE TABLE orders (id text NOT NULL PRIMARY KEY)",
				); err != nil {
					return err
				}

				_, err = hosts.ExecContext(ctx, statement)

				return err
			})
			if err == nil || errors.As(err, new(*fault.Error)) || runs != 1 {
				t.Errorf("after %d runs: %v", runs, err)
			}
		})
	}
}
