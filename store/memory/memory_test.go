package memory_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// TestReadsDoNotWait proves that a read on the store inside a closure neither hangs nor sees what
// is not committed.
func TestReadsDoNotWait(t *testing.T) {
	st, ctx := memory.New(), t.Context()
	inv := invoice.Invoice{
		ID:      "a",
		Options: []invoice.Option{{ID: "o", AmountDue: chain.Units(5)}},
		DueAt:   time.Unix(5, 0),
	}

	err := st.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.PutInvoice(ctx, &inv); err != nil {
			return err
		}

		if _, err := st.InvoiceByID(ctx, "a"); !errors.Is(err, fault.NotFound) {
			t.Errorf("the store shows what is not committed: %v", err)
		}

		if got, err := tx.InvoiceByID(ctx, "a"); err != nil || got.Version != 1 {
			t.Errorf("the transaction does not see its own write: %+v %v", got, err)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	inv.Options[0].ID = "changed"

	got, err := st.DueInvoices(ctx, time.Unix(5, 0), 1)
	if err != nil || len(got) != 1 || got[0].Options[0].ID != "o" {
		t.Fatalf("the stored row follows the caller's record: %+v %v", got, err)
	}
}

// TestNestedUpdate proves that an update inside an update is refused instead of waiting for itself.
func TestNestedUpdate(t *testing.T) {
	st := memory.New()

	err := st.Update(t.Context(), func(ctx context.Context, _ store.Tx) error {
		return st.Update(ctx, func(context.Context, store.Tx) error { return nil })
	})
	if fault.Code(err) != "update_nested" {
		t.Fatalf("got %v", err)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	update := func(s store.Store, id string) {
		t.Helper()

		if err := s.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.PutAccount(ctx, &account.Account{ID: id, Index: uint32(id[0])})
		}); err != nil {
			t.Fatal(err)
		}
	}
	accounts := func(s store.Store) (ids []string) {
		t.Helper()

		all, err := s.Accounts(t.Context(), "", 10)
		if err != nil {
			t.Fatal(err)
		}

		for _, a := range all {
			ids = append(ids, a.ID)
		}

		return ids
	}

	original := memory.New()
	update(original, "1")

	clone := original.(interface{ Clone() store.Store }).Clone()
	update(original, "2")
	update(clone, "3")

	if got := accounts(original); !slices.Equal(got, []string{"1", "2"}) &&
		!slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("the original has %q", got)
	}

	if got := accounts(clone); !slices.Equal(got, []string{"1", "3"}) &&
		!slices.Equal(got, []string{"3", "1"}) {
		t.Errorf("the clone has %q", got)
	}
}
