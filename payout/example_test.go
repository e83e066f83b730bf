package payout_test

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
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A payout is pending until it is signed, and confirmed by the network's rule.
func ExampleService_Create() {
	ctx := context.Background()
	service := newExampleService(ctx)
	service.fundMaster(ctx, "SIM", chain.Pow10(18).Mul(2))

	made, err := service.engine.Payouts.Create(ctx, payout.Params{
		Owner:       service.owner,
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(service.network.NewAddress()),
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(made.Status)
	service.mine(ctx, 6)

	done, err := service.engine.Payouts.Get(ctx, service.owner, made.ID)
	if err != nil {
		panic(err)
	}

	fmt.Println(done.Status, done.Amount)
	// Output:
	// pending
	// confirmed 1000000000000000000
}

// There is a balance per asset of each network. What payouts that are under way may cost is reserved, fees included.
func ExampleService_Balances() {
	ctx := context.Background()
	service := newExampleService(ctx)
	service.fundMaster(ctx, "USDX", chain.Units(25_000_000))

	balances, err := service.engine.Payouts.Balances(ctx, service.owner)
	if err != nil {
		panic(err)
	}

	for _, b := range balances {
		asset, _ := service.network.Network().AssetByID(b.AssetID)
		fmt.Println(asset.Symbol, "on", b.Network+":", b.OnChain, "base units, to spend", b.Available())
	}
	// Unordered output:
	// SIM on simnet: 0 base units, to spend 0
	// USDX on simnet: 25000000 base units, to spend 25000000
}

// A refund is paid by the merchant's wallet to an address that the customer names, never to the sender's. That of a
// simulated payment succeeds at once.
func ExampleService_CreateRefund() {
	ctx := context.Background()
	service := newExampleService(ctx)

	inv, err := service.engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: service.owner,
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},
	})
	if err != nil {
		panic(err)
	}

	_, _, err = service.engine.Invoices.Simulate(ctx, invoice.SimulateParams{
		Owner:     service.owner,
		InvoiceID: inv.ID,
		Outcome:   invoice.SimulatePaid,
	})
	if err != nil {
		panic(err)
	}

	refund, err := service.engine.Payouts.CreateRefund(ctx, payout.RefundParams{
		Owner:       service.owner,
		InvoiceID:   inv.ID,
		Destination: string(service.network.NewAddress()), // whom the customer named
		Reason:      "wrong size",
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(refund.Status)
	// Output: succeeded
}

// exampleService is a service on a simulated network with one merchant. Time passes with the network's blocks.
type exampleService struct {
	engine  *payments.Engine
	network *sim.Chain
	owner   event.Owner
	now     time.Time
}

func newExampleService(ctx context.Context) *exampleService {
	s := &exampleService{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	s.network = sim.New(sim.Config{Clock: clock})

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, clock)
	if err != nil {
		panic(err)
	}

	s.engine, err = payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{s.network.Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
		Now:       clock,
	})
	if err != nil {
		panic(err)
	}

	merchant, err := s.engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		panic(err)
	}

	s.owner = event.Owner{AccountID: merchant.ID}
	s.mine(ctx, 1)

	return s
}

// mine adds blocks to the network. Step stands for Run: it does the work that is due.
func (s *exampleService) mine(ctx context.Context, blocks int) {
	for range blocks {
		s.now = s.now.Add(s.network.Network().BlockTime)
		s.network.Mine(1)

		for did := true; did; {
			var err error

			if did, err = s.engine.Step(ctx); err != nil {
				panic(err)
			}
		}
	}
}

// fundMaster sends an amount of an asset, in base units, to the merchant's master wallet.
func (s *exampleService) fundMaster(ctx context.Context, asset string, amount chain.Amount) {
	balances, err := s.engine.Payouts.Balances(ctx, s.owner)
	if err != nil {
		panic(err)
	}

	s.network.Fund(balances[0].Address, asset, amount)
	s.mine(ctx, 1)
}
