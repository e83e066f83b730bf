// Command platform serves many merchants from one payment engine.
//
// Each merchant is onboarded with an account, an API key and a webhook endpoint of its own. The platform takes a fee
// from each payment, at a rate per merchant, on an address of its own; the rest goes to the merchant's wallet.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run onboards two merchants and lets a payer pay each one coin.
func run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	network := sim.New(sim.Config{BlockTime: 50 * time.Millisecond})
	feeAddress := network.NewAddress()

	engine, err := newEngine(network, feeAddress)
	if err != nil {
		return err
	}

	// 0.5 % and 1.5 %, in basis points.
	tea, err := onboard(ctx, engine, "Tea shop", 50)
	if err != nil {
		return err
	}
	defer tea.close()

	games, err := onboard(ctx, engine, "Game shop", 150)
	if err != nil {
		return err
	}
	defer games.close()

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)

	go network.Run(running)
	go func() { ended <- engine.Run(running) }()

	defer func() {
		stop()

		err = errors.Join(err, <-ended)
	}()

	for _, shop := range []*merchant{tea, games} {
		if err := sell(ctx, engine, network, shop); err != nil {
			return err
		}
	}

	fmt.Printf("the platform's address holds %s SIM\n", coins(network.Balance(feeAddress, "SIM")))

	return isolated(engine, tea, games)
}

func newEngine(network *sim.Chain, feeAddress chain.Address) (*payments.Engine, error) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		return nil, err
	}

	return payments.New(payments.Config{
		Store:        memory.New(),
		Drivers:      []payments.ChainDriver{network.Driver()},
		Signer:       sim.NewSigner(1, nil),
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    []byte("32 random bytes, from your vault"),
		FeeAddresses: map[string]string{network.Network().Slug: string(feeAddress)},
		// The merchants of this example listen on this machine, where webhooks are otherwise never sent.
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
}

// sell makes an invoice over one coin, pays it, and prints how the coin was shared.
func sell(ctx context.Context, engine *payments.Engine, network *sim.Chain, shop *merchant) error {
	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: shop.owner,
		Options: []invoice.OptionParams{{
			Asset:   "SIM",
			Network: network.Network().Slug,
			Amount:  chain.Pow10(18),
		}},
	})
	if err != nil {
		return err
	}

	network.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)

	released, err := shop.awaitRelease(ctx)
	if err != nil {
		return err
	}

	parts := [3]chain.Amount{}
	for i, digits := range []string{released.Gross, released.FeePaid, released.NetReleased} {
		if parts[i], err = chain.ParseAmount(digits); err != nil {
			return err
		}
	}

	fmt.Printf(
		"%s received: %s SIM came, %s SIM is the platform's\n",
		shop.name,
		coins(parts[0]),
		coins(parts[1]),
	)

	// What neither of them has is the network's, for the transactions.
	if parts[0].Less(parts[1].Add(parts[2])) {
		return fmt.Errorf("%s: more was shared than came", shop.name)
	}

	return nil
}

// isolated shows that a merchant's key does not reach another merchant's invoice.
func isolated(engine *payments.Engine, tea, games *merchant) error {
	api := httpapi.Handler(engine, nil)

	for _, shop := range []*merchant{tea, games} {
		status := shop.get(api, "/v1/invoices/"+tea.invoiceID())
		fmt.Printf(
			"the key of %s reads the invoice of %s: %s\n",
			shop.name,
			tea.name,
			http.StatusText(status),
		)
	}

	return nil
}

// coins writes an amount of the coin, which has 18 decimals.
func coins(amount chain.Amount) string { return amount.Decimal(18).String() }
