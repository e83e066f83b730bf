package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// testReadsOwnWrites puts records and reads every list of their kind in the same transaction.
func testReadsOwnWrites(t *testing.T, st store.Store) {
	owner := event.Owner{AccountID: "acc", Livemode: true}

	update(t, st, func(ctx context.Context, tx store.Tx) error {
		for _, read := range []func(context.Context, *testing.T, store.Tx, event.Owner) error{
			readOwnPayments,
			readOwnAccount,
			readOwnTransactions,
			readOwnEndpoints,
		} {
			if err := read(ctx, t, tx, owner); err != nil {
				return err
			}
		}

		return nil
	})
}

// expectOne checks that a list has one record.
func expectOne(t *testing.T, what string, count int, err error) {
	t.Helper()

	if err != nil || count != 1 {
		t.Errorf("%s: %d records of the transaction's own (%v), want 1", what, count, err)
	}
}

func readOwnPayments(ctx context.Context, t *testing.T, tx store.Tx, owner event.Owner) error {
	t.Helper()

	payment := invoice.Payment{
		ID:        recordID(0),
		Owner:     owner,
		Status:    invoice.Detected,
		InvoiceID: "inv",
		Network:   "net",
		TxHash:    "h",
		TxIndex:   2,
		Address:   "a",
		AssetID:   "s",
		Block:     chain.Ref{Height: 5, Hash: "b"},
		DueAt:     epoch,
	}
	if err := tx.PutPayments(ctx, &payment); err != nil {
		return err
	}

	list, err := tx.Payments(ctx, invoice.PaymentFilter{Owner: owner, Limit: 5})
	expectOne(t, "Payments", len(list), err)

	payment.Required = 3
	if err := tx.PutPayments(ctx, &payment); err != nil {
		return err
	}

	list, err = tx.PaymentsOfInvoices(ctx, []string{"inv"})
	expectOne(t, "PaymentsOfInvoices", len(list), err)

	if len(list) == 1 && list[0].Required != 3 {
		t.Errorf("the second put of a transaction is not read: %+v", list[0])
	}

	list, err = tx.PaymentsByHash(ctx, "net", []string{"h", "x"})
	expectOne(t, "PaymentsByHash", len(list), err)

	list, err = tx.DuePayments(ctx, epoch, 5)
	expectOne(t, "DuePayments", len(list), err)

	list, err = tx.UnconfirmedPayments(ctx, "net", 5, 5)
	expectOne(t, "UnconfirmedPayments", len(list), err)

	return nil
}

func readOwnAccount(ctx context.Context, t *testing.T, tx store.Tx, owner event.Owner) error {
	t.Helper()

	own := account.Account{ID: "acc", Settings: account.Settings{ToleranceBPS: 7}}
	if err := tx.PutAccount(ctx, &own); err != nil {
		return err
	}

	if settings, err := tx.InvoiceSettings(ctx, "acc"); err != nil || settings.ToleranceBPS != 7 {
		t.Errorf("InvoiceSettings: %+v %v", settings, err)
	}

	if err := tx.LockAccount(ctx, "acc"); err != nil {
		t.Errorf("LockAccount: %v", err)
	}

	if err := tx.PutKey(ctx, &account.Key{ID: recordID(3), Owner: owner, Hash: [32]byte{9}}); err != nil {
		return err
	}

	key, of, err := tx.KeyByHash(ctx, [32]byte{9})
	if err != nil || key.ID != recordID(3) || of.ID != "acc" {
		t.Errorf("KeyByHash: %+v %+v %v", key, of, err)
	}

	return nil
}

func readOwnTransactions(ctx context.Context, t *testing.T, tx store.Tx, _ event.Owner) error {
	t.Helper()

	if err := tx.PutAttemptHash(ctx, "net", "hash", "tx", wallet.Sweep); err != nil {
		return err
	}

	own, err := tx.OwnTransactions(ctx, "net", []string{"hash", "other"})
	expectOne(t, "OwnTransactions", len(own), err)

	return nil
}

func readOwnEndpoints(ctx context.Context, t *testing.T, tx store.Tx, owner event.Owner) error {
	t.Helper()

	endpoint := webhook.Endpoint{ID: recordID(4), Owner: owner, Status: webhook.Enabled}
	if err := tx.PutEndpoint(ctx, &endpoint); err != nil {
		return err
	}

	endpoints, err := tx.EndpointsOf(ctx, owner)
	expectOne(t, "EndpointsOf", len(endpoints), err)

	return nil
}

func testReadsOwnDeletes(t *testing.T, st store.Store) {
	owner := event.Owner{AccountID: "acc"}
	endpoint := webhook.Endpoint{ID: recordID(0), Owner: owner}

	update(t, st, func(ctx context.Context, tx store.Tx) error { return tx.PutEndpoint(ctx, &endpoint) })
	update(t, st, func(ctx context.Context, tx store.Tx) error {
		if err := tx.DeleteEndpoint(ctx, endpoint.ID); err != nil {
			return err
		}

		if _, err := tx.WebhookEndpoint(ctx, owner, endpoint.ID); !errors.Is(err, fault.NotFound) {
			t.Errorf("a deleted endpoint is read by its id (%v)", err)
		}

		all, err := tx.WebhookEndpoints(ctx, webhook.EndpointFilter{Owner: owner, Limit: 5})
		if err != nil || len(all) != 0 {
			t.Errorf("a deleted endpoint is in the list: %+v %v", all, err)
		}

		if _, err := st.WebhookEndpoint(ctx, owner, endpoint.ID); err != nil {
			t.Errorf("an endpoint is gone before its deletion was committed: %v", err)
		}

		recreated := webhook.Endpoint{ID: endpoint.ID, Owner: owner, URL: "again"}
		if err := tx.PutEndpoint(ctx, &recreated); err != nil {
			return err
		}

		return tx.DeleteEndpoint(ctx, "none")
	})

	got, err := st.WebhookEndpoint(t.Context(), owner, endpoint.ID)
	if err != nil || got.URL != "again" || got.Version != 1 {
		t.Errorf("put after its deletion: %+v %v", got, err)
	}
}
