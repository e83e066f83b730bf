package payments_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A service is a configuration. This one has a simulated network, and ships when an invoice is paid.
func ExampleNew() {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		panic(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{})},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
		OnEvent: func(_ context.Context, _ payments.Tx, ev event.Event) error {
			if ev.Type == event.InvoicePaid {
				fmt.Println("ship it")
			}

			return nil
		},
	})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()

	shop, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		panic(err)
	}

	owner := event.Owner{AccountID: shop.ID}

	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: owner,
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},
	})
	if err != nil {
		panic(err)
	}

	fmt.Println("the invoice is", inv.Status)

	inv, _, err = engine.Invoices.Simulate(ctx, invoice.SimulateParams{
		Owner:     owner,
		InvoiceID: inv.ID,
		Outcome:   invoice.SimulatePaid,
	})
	if err != nil {
		panic(err)
	}

	fmt.Println("the invoice is", inv.Status)
	// Output:
	// the invoice is open
	// ship it
	// the invoice is paid
}
