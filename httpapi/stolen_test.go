package httpapi_test

import (
	"context"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/payout"
)

// storeOf returns the shop's database, as somebody who stole its password has it.
func storeOf(s *shop) payments.Store {
	return internal.Of(s.engine).Store().(payments.Store)
}

// write changes the database without the engine.
func write(t *testing.T, db payments.Store, f func(ctx context.Context, tx payments.Tx) error) {
	t.Helper()

	if err := db.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// rows returns a payout with its transaction.
func rows(ctx context.Context, tx payments.Tx, id string) (payout.Payout, wallet.Transaction, error) {
	p, err := tx.PayoutByID(ctx, id)
	if err != nil {
		return p, wallet.Transaction{}, err
	}

	t, err := tx.Transaction(ctx, p.TransactionID)

	return p, t, err
}

// putRows stores a payout and its transaction, unless reading them failed.
func putRows(
	ctx context.Context,
	tx payments.Tx,
	p payout.Payout,
	t wallet.Transaction,
	err error,
) error {
	if err == nil {
		err = tx.PutPayout(ctx, &p)
	}

	if err == nil {
		err = tx.PutTransaction(ctx, &t)
	}

	return err
}
