package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Where tables are spread by account, every machine is asked for an id once: afterwards its account is known. A record
// that is not where it was is looked for on all of them again.
func TestEveryMachineIsAskedForAnIDOnce(t *testing.T) {
	st, db := openSQLite(t)
	fill(t, st)

	look, texts := sqlstore.Spread(db, "sqlite")
	step := func(what, owner string, byAccount ...bool) {
		t.Helper()

		got, err := look.InvoiceByID(t.Context(), "inv_007")
		if err != nil || got.Owner.AccountID != owner {
			t.Fatalf("%s: the invoice is of %q, %v", what, got.Owner.AccountID, err)
		}

		askedByAccount(t, what, texts(), byAccount...)
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

// askedByAccount checks of each statement whether it names the account.
func askedByAccount(t *testing.T, what string, texts []string, want ...bool) {
	t.Helper()

	if len(texts) != len(want) {
		t.Fatalf("%s: %q", what, texts)
	}

	for i, text := range texts {
		if strings.Contains(text, "account_id = ?") != want[i] {
			t.Errorf("%s: statement %d is %s", what, i, text)
		}
	}
}

// What belongs to a record whose account is known is asked of one machine, and so are records by their ids.
func TestOneMachineIsAskedForWhatBelongsToAnAccount(t *testing.T) {
	st, db := openSQLite(t)
	fill(t, st)

	address := chain.Address(fmt.Sprintf("0x%040x", 7))

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		at := chain.Party{Address: address}
		order := chain.Order{From: at}

		if err := tx.PutTransaction(ctx, &wallet.Transaction{
			ID:       "txn_1",
			Owner:    scanned,
			Network:  "ethereum",
			Order:    order,
			ObjectID: "swp_1",
		}); err != nil {
			return err
		}

		if err := tx.PutSweep(ctx, &settlement.Sweep{ID: "swp_1", Owner: scanned}); err != nil {
			return err
		}

		return tx.PutSettlements(ctx, &settlement.Settlement{
			ID:        "stl_1",
			PaymentID: "pay_007",
			Owner:     scanned,
			Network:   "ethereum",
			AssetID:   "eth",
			Deposit:   at,
			Status:    settlement.Pending,
		})
	}); err != nil {
		t.Fatal(err)
	}

	var (
		look  store.Reader
		texts func() []string
	)

	for name, read := range map[string]func(ctx context.Context) (int, error){
		"the payments of an invoice": func(ctx context.Context) (int, error) {
			found, err := look.PaymentsOfInvoices(ctx, []string{"inv_007"})
			return len(found), err
		},
		"the settlements of payments": func(ctx context.Context) (int, error) {
			found, err := look.SettlementsOfPayments(ctx, []string{"pay_007"})
			return len(found), err
		},
		"the settlements at an address": func(ctx context.Context) (int, error) {
			found, err := look.SettlementsAt(ctx, "ethereum", address, "eth")
			return len(found), err
		},
		"the payments at an address": func(ctx context.Context) (int, error) {
			found, err := look.BalancePayments(ctx, "ethereum", []chain.Address{address})
			return len(found), err
		},
		"what an address sends": func(ctx context.Context) (int, error) {
			found, err := look.LiveTransactions(ctx, "ethereum", address)
			return len(found), err
		},
		"settlements by id": func(ctx context.Context) (int, error) {
			found, err := look.SettlementsByID(ctx, []string{"stl_1"})
			return len(found), err
		},
	} {
		look, texts = sqlstore.Spread(db, "sqlite")

		before, err := read(t.Context())
		if err != nil || before != 1 {
			t.Fatalf("%s: %d rows, %v", name, before, err)
		}

		askedByAccount(t, name, texts(), false)

		if _, err := look.InvoiceByID(t.Context(), "inv_007"); err != nil {
			t.Fatal(err)
		}

		if _, err := look.PaymentByID(t.Context(), "pay_007"); err != nil {
			t.Fatal(err)
		}

		texts()

		after, err := read(t.Context())
		if err != nil || after != 1 {
			t.Fatalf("%s, with their account: %d rows, %v", name, after, err)
		}

		askedByAccount(t, name, texts(), true)
	}

	// A transaction that was read says where its release is.
	look, texts = sqlstore.Spread(db, "sqlite")

	if _, err := look.Transaction(t.Context(), "txn_1"); err != nil {
		t.Fatal(err)
	}

	if _, err := look.Sweep(t.Context(), "swp_1"); err != nil {
		t.Fatal(err)
	}

	askedByAccount(t, "a transaction and its release", texts(), false, true)
}

// Records of a few accounts are asked of the machines of those, and what a delivery delivers of its own.
func TestMachinesOfAFewAccountsAreAsked(t *testing.T) {
	st, db := openSQLite(t)
	ids := []string{"1", "2", "3"}

	if err := st.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		for _, id := range ids {
			owner := event.Owner{AccountID: "account " + id}

			if err := tx.PutEvents(ctx, event.Event{ID: id, Owner: owner}); err != nil {
				return err
			}

			if err := tx.PutDeliveries(ctx, &webhook.Delivery{
				ID:         id,
				Owner:      owner,
				EventID:    id,
				EndpointID: id,
				Status:     webhook.DeliveryFailed,
			}); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	look, texts := sqlstore.Spread(db, "sqlite")
	byAccounts := func() bool {
		asked := texts()
		return len(asked) == 1 && strings.Contains(asked[0], "account_id IN (?, ?, ?, ?)")
	}

	for _, named := range []bool{false, true} {
		found, err := look.DeliveriesByID(t.Context(), ids)
		if err != nil || len(found) != len(ids) {
			t.Fatalf("%d deliveries, %v", len(found), err)
		}

		if byAccounts() != named {
			t.Errorf("deliveries whose accounts are known, %v, were asked for otherwise", named)
		}
	}

	found, err := look.EventsByID(t.Context(), ids)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("%d events, %v", len(found), err)
	}

	if !byAccounts() {
		t.Error("the events of deliveries were asked for on all machines")
	}
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
