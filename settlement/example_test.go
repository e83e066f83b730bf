package settlement_test

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
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// Every confirmed payment has a settlement: its way to the merchant's master wallet, less the platform fee. That of a
// simulated payment is released at once, because it moves no coin.
func ExampleService_List() {
	ctx := context.Background()
	engine, owner := exampleEngine(ctx)

	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: owner,
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},

		Options: []invoice.OptionParams{{Asset: "USDX", Network: "simnet"}},
	})
	if err != nil {
		panic(err)
	}

	_, _, err = engine.Invoices.Simulate(ctx, invoice.SimulateParams{
		Owner:     owner,
		InvoiceID: inv.ID,
		Outcome:   invoice.SimulatePaid,
	})
	if err != nil {
		panic(err)
	}

	page, more, err := engine.Settlements.List(ctx, settlement.Filter{
		Owner:     owner,
		InvoiceID: inv.ID,
	})
	if err != nil {
		panic(err)
	}

	for _, s := range page {
		fmt.Println(s.Status, s.Gross, s.Asset, s.NetReleased)
	}

	fmt.Println("more:", more)
	// Output:
	// released 25000000 USDX 25000000
	// more: false
}

// exampleEngine returns a service on a simulated network, and the owner of what its one merchant makes in test mode.
func exampleEngine(ctx context.Context) (*payments.Engine, event.Owner) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		panic(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{sim.New(sim.Config{}).Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
	})
	if err != nil {
		panic(err)
	}

	merchant, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		panic(err)
	}

	return engine, event.Owner{AccountID: merchant.ID}
}
