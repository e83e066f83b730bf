package engine

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// A host that goes on after a failed UpdateIn commits no half of it: the invoice without its events.
func TestFailedUpdateInBreaksTheJoinedTransaction(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "host.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	if err := sqlite.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	refused := errors.New("the host refuses")
	e := newEngine(t, nil, Config{
		Store:   sqlite.New(db),
		Drivers: []chain.Driver{sim.New(sim.Config{})},
		OnEvent: func(context.Context, Tx, event.Event) error { return refused },
	})

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	prepared, err := e.Invoices.PrepareCreate(t.Context(), invoice.CreateParams{
		Owner:   event.Owner{AccountID: made.ID},
		Joined:  true,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}

	sqlTx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sqlTx.Rollback() }()

	joined, flush := sqlite.Join(sqlTx)

	create := func(ctx context.Context, tx Tx) error {
		_, err := prepared(ctx, tx)
		return err
	}
	if err := e.UpdateIn(t.Context(), joined, create); !errors.Is(err, refused) {
		t.Errorf("the hook refused, and UpdateIn answered %v", err)
	}

	for what, err := range map[string]error{
		"another UpdateIn": e.UpdateIn(t.Context(), joined, create),
		"the flush":        flush(t.Context()),
	} {
		if !errors.Is(err, fault.State) || fault.Code(err) != "transaction_broken" {
			t.Errorf("%s answered %v", what, err)
		}
	}
}
