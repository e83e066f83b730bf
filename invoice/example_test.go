package invoice_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// An invoice over a fiat price has no amounts until its payer chooses an asset: the amount is quoted then.
func ExampleService_Create() {
	ctx := context.Background()
	engine, owner := exampleEngine(ctx)

	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner:   owner,
		OrderID: "order-1",
		Price:   &invoice.Price{Currency: "USD", Amount: "25.00"},
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet"},
			{Asset: "USDX", Network: "simnet"},
		},
	})
	if err != nil {
		panic(err)
	}

	inv, err = engine.Invoices.Select(ctx, &owner, inv.ID, inv.Options[1].ID)
	if err != nil {
		panic(err)
	}

	option := inv.Option(inv.SelectedOptionID)
	fmt.Println(inv.Status, option.AmountDue, option.Asset, "at", option.Rate)
	// Output: open 25000000 USDX at 1
}

// A deposit address takes any number of payments; each is credited when it is confirmed.
func ExampleService_CreateDeposit() {
	ctx := context.Background()
	engine, owner := exampleEngine(ctx)

	address, err := engine.Invoices.CreateDeposit(ctx, invoice.DepositParams{
		Owner:   owner,
		Network: "simnet",
		Name:    "alice",
	})
	if err != nil {
		panic(err)
	}

	_, payment, err := engine.Invoices.Simulate(ctx, invoice.SimulateParams{
		Owner:            owner,
		DepositAddressID: address.ID,
		Asset:            "USDX",
		Amount:           chain.Units(7_000_000),
		Outcome:          invoice.SimulateConfirmed,
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(address.Name, payment.Status, payment.Amount, payment.Asset)
	// Output: alice confirmed 7000000 USDX
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
