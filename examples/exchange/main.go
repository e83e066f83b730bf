// Command exchange gives each user a deposit address and credits every deposit exactly once, by webhook.
//
// One user brings an address of an earlier system along: it is imported with its key, and keeps working. A
// delivery that is repeated, as every webhook may be, credits nothing.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
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
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run takes deposits of two users.
func run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	dir, err := os.MkdirTemp("", "exchange-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	accounts, err := openLedger(ctx, filepath.Join(dir, "ledger.db"))
	if err != nil {
		return err
	}
	defer accounts.db.Close()

	network := sim.New(sim.Config{BlockTime: 50 * time.Millisecond})

	service, err := newService(ctx, network)
	if err != nil {
		return err
	}

	server, err := service.receive(ctx, accounts)
	if err != nil {
		return err
	}
	defer server.Close()

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)

	go network.Run(running)
	go func() { ended <- service.engine.Run(running) }()

	defer func() {
		stop()

		err = errors.Join(err, <-ended)
	}()

	return service.deposits(ctx, network, accounts)
}

// service is the payment engine with one account, the exchange's.
type service struct {
	engine *payments.Engine
	owner  event.Owner
}

func newService(ctx context.Context, network *sim.Chain) (*service, error) {
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, nil)
	if err != nil {
		return nil, err
	}

	engine, err := payments.New(payments.Config{
		Store:     memory.New(),
		Drivers:   []payments.ChainDriver{network.Driver()},
		Signer:    sim.NewSigner(1, nil),
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: []byte("32 random bytes, from your vault"),
		// The receiver of this example listens on this machine, where webhooks are otherwise never sent.
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		return nil, err
	}

	exchange, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Exchange"})

	return &service{engine: engine, owner: event.Owner{AccountID: exchange.ID}}, err
}

// receive serves the exchange's webhook endpoint and registers it for confirmed deposits.
func (s *service) receive(ctx context.Context, accounts *ledger) (*http.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	_, secret, err := s.engine.Webhooks.CreateEndpoint(ctx, webhook.EndpointParams{
		Owner:  s.owner,
		URL:    "http://" + listener.Addr().String() + "/webhooks",
		Events: []event.Type{event.DepositPaymentConfirmed},
	})
	if err != nil {
		return nil, err
	}

	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{secret},
		Handle:  accounts.handle,
		Seen:    nothingSeen{},
	})
	if err != nil {
		return nil, err
	}

	server := &http.Server{Handler: receiver, ReadHeaderTimeout: 5 * time.Second}

	go func() { _ = server.Serve(listener) }()

	return server, nil
}

// nothingSeen lets every delivery through: the ledger itself knows which deposits it has credited, for good.
type nothingSeen struct{}

func (nothingSeen) Has(context.Context, string) (bool, error) { return false, nil }
func (nothingSeen) Add(context.Context, string) error         { return nil }

// deposits pays a new and an old address, and repeats a delivery.
func (s *service) deposits(ctx context.Context, network *sim.Chain, accounts *ledger) error {
	alice, err := s.engine.Invoices.CreateDeposit(ctx, invoice.DepositParams{
		Owner:   s.owner,
		Network: network.Network().Slug,
		Name:    "alice",
	})
	if err != nil {
		return err
	}

	bob, err := s.adopt(ctx, network, "bob", 1_000_000)
	if err != nil {
		return err
	}

	network.Pay(alice.Address, "USDX", chain.MustAmount("25000000"))
	network.Pay(bob.Address, "USDX", chain.MustAmount("7000000"))

	if err := accounts.waitFor(ctx, 2); err != nil {
		return err
	}

	if err := accounts.show(ctx, "after one deposit each"); err != nil {
		return err
	}

	// Every event is sent once more, as happens when an answer is lost.
	before := accounts.handled.Load()

	events, _, err := s.engine.Webhooks.ListEvents(ctx, event.Filter{Owner: s.owner, Limit: 100})
	if err != nil {
		return err
	}

	for _, ev := range events {
		if ev.Type != event.DepositPaymentConfirmed {
			continue
		}

		if _, err := s.engine.Webhooks.ResendEvent(ctx, s.owner, ev.ID); err != nil {
			return err
		}
	}

	if err := accounts.waitFor(ctx, before+2); err != nil {
		return err
	}

	return accounts.show(ctx, "after both webhooks came again")
}

// adopt imports the address that an earlier system gave a user. Key names what signs for it: an address whose key
// this service does not have is refused, because its money could not be moved. If the earlier system had a seed of
// its own, Config.Signer has to be one that signs with both.
func (s *service) adopt(
	ctx context.Context,
	network *sim.Chain,
	name string,
	index uint32,
) (invoice.DepositAddress, error) {
	old := network.Party(sim.NewSigner(1, nil), chain.RoleDeposit, index)

	return s.engine.Invoices.Import(ctx, invoice.ImportParams{
		Owner:   s.owner,
		Network: network.Network().Slug,
		Name:    name,
		Address: string(old.Address),
		Key:     old.Key,
	})
}
