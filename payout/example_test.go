package payout_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A payout is pending until it is signed, and confirmed by the network's rule. Step stands for Run here, and time
// passes with the blocks.
func ExampleService_Create() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	network := sim.New(sim.Config{Clock: clock})

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, clock)
	if err != nil {
		panic(err)
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{network},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
		Now:       clock,
	})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()

	merchant, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		panic(err)
	}

	owner := event.Owner{AccountID: merchant.ID}

	mine := func(blocks int) {
		for range blocks {
			now = now.Add(network.Network().BlockTime)
			network.Mine(1)

			for did := true; did; {
				if did, err = engine.Step(ctx); err != nil {
					panic(err)
				}
			}
		}
	}
	mine(1)

	// The master wallet gets two coins.

	balances, err := engine.Payouts.Balances(ctx, owner)
	if err != nil {
		panic(err)
	}

	network.Fund(balances[0].Address, "SIM", chain.Pow10(18).Mul(2))
	mine(1)

	made, err := engine.Payouts.Create(ctx, payout.Params{
		Owner:       owner,
		Network:     "simnet",
		Asset:       "SIM",
		Amount:      chain.Pow10(18),
		Destination: string(network.NewAddress()),
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(made.Status)
	mine(6)

	done, err := engine.Payouts.Get(ctx, owner, made.ID)
	if err != nil {
		panic(err)
	}

	fmt.Println(done.Status, done.Amount)
	// Output:
	// pending
	// confirmed 1000000000000000000
}
