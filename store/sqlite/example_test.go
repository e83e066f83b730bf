package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// A shop marks an order as paid in the transaction that makes its invoice paid: both are true from
// the same commit on, or neither is, whatever fails in between. The other way round, it makes an
// invoice in a transaction of its own.
func Example() {
	dir, err := os.MkdirTemp("", "shop")
	check(err)

	defer os.RemoveAll(dir)

	store, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	check(err)

	defer func() { check(store.Close()) }()
	// The shop's own tables lie beside the library's.
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	check(err)

	defer db.Close()

	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
	check(err)

	stockroom := errors.New("the stockroom does not answer")
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Hour, nil)
	check(err)
	engine, err := payments.New(payments.Config{
		Store:     store,
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32), // in earnest: 32 random bytes
		OnEvent: func(ctx context.Context, tx payments.Tx, ev event.Event) error {
			if ev.Type != event.InvoicePaid {
				return nil
			}

			inv, err := tx.InvoiceByID(ctx, ev.InvoiceID)
			if err != nil {
				return err
			}

			sqlTx, _ := sqlite.SQLTx(tx) // the transaction in which the invoice becomes paid
			if _, err := sqlTx.ExecContext(
				ctx, "UPDATE orders SET state = 'paid' WHERE id = ?",
				inv.OrderID,
			); err != nil {
				return err
			}

			return stockroom
		},
	})
	check(err)

	ctx := context.Background()
	merchant, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	check(err)

	owner := event.Owner{AccountID: merchant.ID}

	// The order and its invoice are made together, in the shop's own transaction.
	prepared, err := engine.Invoices.PrepareCreate(ctx, invoice.CreateParams{
		Owner:   owner,
		OrderID: "order-1",
		Joined:  true,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	check(err)
	sqlTx, err := db.BeginTx(ctx, nil)
	check(err)
	_, err = sqlTx.Exec("INSERT INTO orders VALUES ('order-1', 'open')")
	check(err)

	joined, flush := sqlite.Join(sqlTx)

	var inv invoice.Invoice

	check(engine.UpdateIn(ctx, joined, func(ctx context.Context, tx payments.Tx) (err error) {
		inv, err = prepared(ctx, tx)
		return err
	}))
	check(flush(ctx))
	check(sqlTx.Commit())
	engine.Wake()

	show := func(when string) {
		now, err := engine.Invoices.GetByID(ctx, inv.ID)
		check(err)

		var state string
		check(db.QueryRow("SELECT state FROM orders WHERE id = 'order-1'").Scan(&state))
		fmt.Printf("%s: the invoice is %s, the order is %s\n", when, now.Status, state)
	}
	show("made")

	pay := func() error {
		_, _, err := engine.Invoices.Simulate(
			ctx,
			invoice.SimulateParams{Owner: owner, InvoiceID: inv.ID, Outcome: invoice.SimulatePaid},
		)

		return err
	}
	fmt.Println("the shop refuses:", errors.Is(pay(), stockroom))
	show("after the refusal")

	stockroom = nil

	check(pay())
	show("after the next try")
	// Output:
	// made: the invoice is open, the order is open
	// the shop refuses: true
	// after the refusal: the invoice is open, the order is open
	// after the next try: the invoice is paid, the order is paid
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
