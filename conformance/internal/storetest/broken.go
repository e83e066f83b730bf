package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// testBroken breaks a transaction, where the store can, and goes on in it as if nothing had happened.
func testBroken(t *testing.T, st store.Store) {
	can := true

	err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		var b store.Breaker
		if b, can = tx.(store.Breaker); !can {
			return errRefused
		}

		if err := putAll(ctx, tx, 10); err != nil {
			return err
		}

		b.Break(errRefused)

		if _, err := tx.InvoiceByID(ctx, recordID(0)); !errors.Is(err, errRefused) {
			t.Errorf("a read in a broken transaction answered %v", err)
		}

		if err := tx.PutInvoice(ctx, &invoice.Invoice{ID: recordID(1)}); !errors.Is(err, errRefused) {
			t.Errorf("a write in a broken transaction answered %v", err)
		}

		return nil
	})
	if !can {
		t.Skip("the store's transactions are no store.Breaker")
	}

	if !errors.Is(err, errRefused) {
		t.Errorf("a broken transaction was committed: %v", err)
	}

	expectEmpty(t, st)
}
