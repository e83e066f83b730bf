package webhook_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/webhook"
)

// The whole way, on real stores: an endpoint is created, pinged and pinged again by resending; the
// receiver verifies what arrives with the secret that the creation returned, and the log shows it.
func TestThroughTheEngine(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) payments.Store{
		"memory": func(*testing.T) payments.Store { return memory.New() },
		"sqlite": func(t *testing.T) payments.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "payments.db"))
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})

			return s
		},
	} {
		t.Run(name, func(t *testing.T) { throughTheEngine(t, open(t)) })
	}
}

func throughTheEngine(t *testing.T, st payments.Store) {
	network := sim.New(sim.Config{})
	// a public test vector
	keys, err := hdkey.New("legal winner thank year wave sausage worth useful legal winner thank yellow", "")
	if err != nil {
		t.Fatal(err)
	}

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	engine, err := payments.New(payments.Config{
		Store:        st,
		Drivers:      []payments.ChainDriver{network},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{network.Network().Slug: string(network.NewAddress())},
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	merchant, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: merchant.ID}
	arrived := make(chan webhook.Notification, 10)

	var receiver http.Handler

	server := httptest.NewUnstartedServer(nil)

	server.Start()
	defer server.Close()

	e, secret, err := engine.Webhooks.CreateEndpoint(
		ctx,
		webhook.EndpointParams{Owner: owner, URL: server.URL, Events: []event.Type{event.InvoicePaid}},
	)
	if err != nil {
		t.Fatal(err)
	}

	receiver, err = webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{secret},
		Seen:    forgetful{},
		Log:     slog.New(slog.DiscardHandler),
		Handle:  func(_ context.Context, n webhook.Notification) error { arrived <- n; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	server.Config.Handler = receiver

	stopped := make(chan error, 1)

	running, stop := context.WithCancel(ctx)
	go func() { stopped <- engine.Run(running) }()

	ping, err := engine.Webhooks.Test(ctx, owner, e.ID)
	if err != nil {
		t.Fatal(err)
	}

	expect := func() {
		t.Helper()

		select {
		case n := <-arrived:
			if n.ID != ping.EventID || n.Type != event.Ping || n.Sequence != 1 || n.APIVersion != "v1" ||
				n.Livemode {
				t.Errorf("%+v arrived", n)
			}
		case <-ctx.Done():
			t.Fatal("a ping did not arrive")
		}
	}
	expect()

	// The receiver refuses an event that it is still working on: the first delivery has to be over.
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		d, err := engine.Webhooks.GetDelivery(ctx, owner, ping.ID)
		if err != nil {
			t.Fatal(err)
		}

		if d.Status == webhook.DeliverySucceeded {
			tick.Stop()
			break
		}
	}

	again, err := engine.Webhooks.ResendDelivery(ctx, owner, ping.ID)
	if err != nil {
		t.Fatal(err)
	}

	expect()

	stop()

	if err := <-stopped; err != nil { // and with it, the results are stored
		t.Fatal(err)
	}

	for _, id := range []string{ping.ID, again.ID} {
		d, err := engine.Webhooks.GetDelivery(ctx, owner, id)
		if err != nil {
			t.Fatal(err)
		}

		if d.Status != webhook.DeliverySucceeded || d.Attempts != 1 || len(d.Log) != 1 ||
			d.Log[0].HTTPStatus != 204 ||
			d.Log[0].Response == nil ||
			d.ClaimedBy != "" {
			t.Errorf("the log shows %+v", d)
		}
	}

	if e, err = engine.Webhooks.GetEndpoint(ctx, owner, e.ID); err != nil || e.LastSuccessAt.IsZero() {
		t.Errorf("the endpoint is %+v, error %v", e, err)
	}
}

// forgetful lets every delivery through.
type forgetful struct{}

func (forgetful) Has(context.Context, string) (bool, error) { return false, nil }
func (forgetful) Add(context.Context, string) error         { return nil }
