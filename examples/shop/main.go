// Command shop keeps its orders and its payments in one SQLite file, each in the other's transactions.
//
// An order and its invoice are made by one commit of the shop. A paid invoice and its paid order are made by
// one commit of the library. No state in between is ever stored, whatever fails.
package main

import (
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
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run sells a pair of shoes.
func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	network := sim.New(sim.Config{BlockTime: 50 * time.Millisecond})

	shop, closeShop, err := open(ctx, filepath.Join(dir, "shop.db"), network)
	if err != nil {
		return err
	}
	defer closeShop()

	inv, err := shop.order(ctx, "shoes-1", "49.90")
	if err != nil {
		return err
	}

	if err := shop.show(ctx, "ordered", inv.ID); err != nil {
		return err
	}

	// The same order number again: the shop's own rule refuses it, and its invoice is gone with it.
	_, err = shop.order(ctx, "shoes-1", "49.90")
	fmt.Println("ordered twice, refused:", err != nil)

	if err := shop.show(ctx, "after the refusal", inv.ID); err != nil {
		return err
	}

	if err := shop.sell(ctx, network, inv); err != nil {
		return err
	}

	return shop.show(ctx, "paid", inv.ID)
}

// shop is the application: a table of its own and the payment engine over the same file.
type shop struct {
	db     *sql.DB
	engine *payments.Engine
	owner  event.Owner
}

// open opens the shop's file. The returned function closes it.
func open(ctx context.Context, path string, network *sim.Chain) (*shop, func(), error) {
	store, err := sqlite.Open(path)
	if err != nil {
		return nil, nil, err
	}

	// Transactions of the shop take the writer's lock at their beginning, and wait for it.
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}

	closeBoth := func() {
		_ = db.Close()
		_ = store.Close()
	}

	_, err = db.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, invoice_id TEXT, state TEXT)")
	if err != nil {
		return nil, closeBoth, err
	}

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		return nil, closeBoth, err
	}

	engine, err := payments.New(payments.Config{
		Store:     store,
		Drivers:   []payments.ChainDriver{network.Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
		OnEvent:   markPaid,
	})
	if err != nil {
		return nil, closeBoth, err
	}

	merchant, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		return nil, closeBoth, err
	}

	return &shop{db: db, engine: engine, owner: event.Owner{AccountID: merchant.ID}}, closeBoth, nil
}

// markPaid marks the order of an invoice as paid, in the transaction in which the invoice becomes paid. If it returns
// an error, neither happens, and both are tried again.
func markPaid(ctx context.Context, tx payments.Tx, ev event.Event) error {
	if ev.Type != event.InvoicePaid {
		return nil
	}

	sqlTx, err := sqlite.SQLTx(tx)
	if err != nil {
		return err
	}

	_, err = sqlTx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE invoice_id = ?", ev.InvoiceID)

	return err
}

// order makes an order and its invoice in one transaction of the shop.
func (s *shop) order(ctx context.Context, id, dollars string) (invoice.Invoice, error) {
	// What needs prices or keys is done before the transaction begins.
	prepared, err := s.engine.Invoices.PrepareCreate(ctx, invoice.CreateParams{
		Owner:   s.owner,
		OrderID: id,
		Price:   &invoice.Price{Currency: "USD", Amount: dollars},
		Joined:  true,
	})
	if err != nil {
		return invoice.Invoice{}, err
	}

	sqlTx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return invoice.Invoice{}, err
	}
	defer sqlTx.Rollback()

	joined, flush := sqlite.Join(sqlTx)

	var inv invoice.Invoice

	err = s.engine.UpdateIn(ctx, joined, func(ctx context.Context, tx payments.Tx) (err error) {
		inv, err = prepared(ctx, tx)
		return err
	})
	if err != nil {
		return invoice.Invoice{}, err
	}

	_, err = sqlTx.ExecContext(ctx, "INSERT INTO orders VALUES (?, ?, 'open')", id, inv.ID)
	if err != nil {
		return invoice.Invoice{}, err
	}

	if err := flush(ctx); err != nil {
		return invoice.Invoice{}, err
	}

	if err := sqlTx.Commit(); err != nil {
		return invoice.Invoice{}, err
	}

	s.engine.Wake()

	return inv, nil
}

// sell runs the service until the invoice is paid by somebody on the network.
func (s *shop) sell(ctx context.Context, network *sim.Chain, inv invoice.Invoice) error {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)

	go network.Run(running)
	go func() { ended <- s.engine.Run(running) }()

	err := s.payment(ctx, network, inv)

	stop()

	return errors.Join(err, <-ended)
}

// payment pays the invoice with its first option, as a payer on the checkout page, and waits until it is paid.
func (s *shop) payment(ctx context.Context, network *sim.Chain, inv invoice.Invoice) error {
	inv, err := s.engine.Invoices.Select(ctx, &s.owner, inv.ID, inv.Options[0].ID)
	if err != nil {
		return err
	}

	option := inv.Option(inv.SelectedOptionID)
	network.Pay(option.Address, option.Asset, option.AmountDue)

	for now, err := range s.engine.Watch(ctx, inv.ID) {
		if err != nil {
			return err
		}

		if now.Status == invoice.Paid {
			return nil
		}
	}

	return fmt.Errorf("the invoice was not paid: %w", ctx.Err())
}

// show prints the invoice, its order, and how many of each there are.
func (s *shop) show(ctx context.Context, when, invoiceID string) error {
	inv, err := s.engine.Invoices.GetByID(ctx, invoiceID)
	if err != nil {
		return err
	}

	all, _, err := s.engine.Invoices.List(ctx, invoice.Filter{Owner: s.owner, Limit: 10})
	if err != nil {
		return err
	}

	var (
		state  string
		orders int
	)

	err = s.db.QueryRowContext(
		ctx, "SELECT state, (SELECT count(*) FROM orders) FROM orders WHERE invoice_id = ?", inv.ID,
	).Scan(&state, &orders)
	if err != nil {
		return err
	}

	fmt.Printf(
		"%s: order %s, invoice %s (orders: %d, invoices: %d)\n",
		when, state, inv.Status, orders, len(all),
	)

	return nil
}
