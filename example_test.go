package payments_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// A service is a configuration. This one has a simulated network, and ships when an invoice is paid.
func ExampleNew() {
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

// A service works in Run and serves two handlers. When its context ends, it gives its work to the other processes.
func ExampleEngine_Run() {
	engine, _ := exampleEngine()

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)

	go func() { ended <- engine.Run(ctx) }()

	mux := http.NewServeMux()
	mux.Handle("/v1/", httpapi.Handler(engine, nil))
	mux.Handle("/checkout/", checkout.Handler(engine, nil))

	server := limits.Server(ctx, mux) // ListenAndServeTLS follows
	defer server.Close()

	stop()
	fmt.Println(<-ended)
	// Output: <nil>
}

// A key is shown once: its hash is all that is kept.
func ExampleEngine_accounts() {
	ctx := context.Background()
	engine, owner := exampleEngine()

	key, secret, err := engine.Accounts.CreateKey(ctx, account.KeyParams{
		AccountID: owner.AccountID,
		Name:      "the shop's server",
		Scopes:    []account.Scope{account.InvoicesRead, account.InvoicesWrite},
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(key.Name, strings.HasPrefix(secret, "pay_test_"))
	// Output: the shop's server true
}

// An endpoint's secret is shown once too. Whoever receives the webhooks verifies them with webhook.NewReceiver.
func ExampleEngine_webhooks() {
	ctx := context.Background()
	engine, owner := exampleEngine()

	endpoint, secret, err := engine.Webhooks.CreateEndpoint(ctx, webhook.EndpointParams{
		Owner:  owner,
		URL:    "https://shop.example.com/webhooks",
		Events: []event.Type{event.InvoicePaid, event.SettlementReleased},
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(endpoint.URL, strings.HasPrefix(secret, "whsec_"))
	// Output: https://shop.example.com/webhooks true
}

// A page or an order's server sees every change of an invoice as it happens.
func ExampleEngine_Watch() {
	ctx := context.Background()
	engine, owner := exampleEngine()
	inv := exampleInvoice(ctx, engine, owner)

	for seen, err := range engine.Watch(ctx, inv.ID) {
		if err != nil {
			panic(err)
		}

		fmt.Println("the invoice is", seen.Status)

		if seen.Status == invoice.Paid {
			break
		}

		_, _, err = engine.Invoices.Simulate(ctx, invoice.SimulateParams{
			Owner:     owner,
			InvoiceID: inv.ID,
			Outcome:   invoice.SimulatePaid,
		})
		if err != nil {
			panic(err)
		}
	}
	// Output:
	// the invoice is open
	// the invoice is paid
}

// Once a night, all records are compared with what every address holds.
func ExampleEngine_Audit() {
	engine, _ := exampleEngine()

	report, err := engine.Audit(context.Background())
	if err != nil {
		panic(err)
	}

	fmt.Println(len(report.Networks), "network,", len(report.Differences()), "differences")
	// Output: 1 network, 0 differences
}

// exampleInvoice returns an invoice over 25 dollars.
func exampleInvoice(ctx context.Context, engine *payments.Engine, owner event.Owner) invoice.Invoice {
	inv, err := engine.Invoices.Create(ctx, invoice.CreateParams{
		Owner: owner,
		Price: &invoice.Price{Currency: "USD", Amount: "25.00"},
	})
	if err != nil {
		panic(err)
	}

	return inv
}

// exampleEngine returns a service on a simulated network, and the owner of what its one merchant makes in test mode.
func exampleEngine() (*payments.Engine, event.Owner) {
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

	shop, err := engine.Accounts.CreateAccount(context.Background(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		panic(err)
	}

	return engine, event.Owner{AccountID: shop.ID}
}
