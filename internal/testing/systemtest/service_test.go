package systemtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// service is what the client talks to.
type service struct {
	engine  *payments.Engine
	store   payments.Store
	network *sim.Chain
	prices  *rate.Fixed
	account account.Account
	payee   string // where the sending key may pay to
	// ahead is by how much the service's clock is fast.
	ahead atomic.Int64
}

func (s *service) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// pass lets time go by for the service.
func (s *service) pass(d time.Duration) { s.ahead.Add(int64(d)) }

func start(t *testing.T, seen coverage) (*client, *service) {
	t.Helper()

	s := &service{store: unreliable{memory.New()}}

	var err error

	s.prices, err = rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"},
		time.Minute, s.now,
	)
	if err != nil {
		t.Fatal(err)
	}

	s.network = sim.New(sim.Config{})
	s.payee = string(s.network.NewAddress())

	s.engine = s.open(t, s.network, nil)
	if s.account, err = s.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Corner Shop", RequestsPerSecond: 1_000_000},
	); err != nil {
		t.Fatal(err)
	}

	c := &client{t: t, base: serve(t, s.engine), seen: seen}
	c.key = s.newKey(t, account.KeyParams{Scopes: account.AllScopes()})
	c.sending = s.newKey(
		t,
		account.KeyParams{
			Scopes:       account.AllScopes(),
			Destinations: []chain.Destination{{Address: chain.Address(s.payee)}},
		},
	)
	c.public = s.newKey(t, account.KeyParams{Publishable: true})
	c.live = s.newKey(t, account.KeyParams{Livemode: true, Scopes: account.AllScopes()})
	c.read()

	return c, s
}

// open makes an engine over the service's store and a test network; change, which may be nil, changes its Config.
func (s *service) open(
	t *testing.T,
	network payments.ChainDriver,
	change func(*payments.Config),
) *payments.Engine {
	t.Helper()

	live := sim.DefaultNetwork()
	live.Slug, live.CAIP2, live.Livemode = "livenet", "sim:2", true

	config := payments.Config{
		Store:        s.store,
		Drivers:      []payments.ChainDriver{network, sim.New(sim.Config{Network: live})},
		Signer:       sim.NewSigner(1, nil),
		Rates:        s.prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
		Now:          s.now,
	}
	if change != nil {
		change(&config)
	}

	engine, err := payments.New(config)
	if err != nil {
		t.Fatal(err)
	}

	return engine
}

// serve serves an engine's API and returns its address.
func serve(t *testing.T, engine *payments.Engine) string {
	t.Helper()

	api := httpapi.Handler(engine, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(
			w,
			r.WithContext(context.WithValue(r.Context(), troubleKey{}, r.Header.Get(troubleHeader))),
		)
	}))
	t.Cleanup(server.Close)

	return server.URL
}

// run runs the engine until the test ends.
func (s *service) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())

	done := make(chan error, 1)
	go func() { done <- s.engine.Run(ctx) }()

	t.Cleanup(func() {
		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *service) newKey(t *testing.T, p account.KeyParams) string {
	t.Helper()

	if p.AccountID == "" {
		p.AccountID = s.account.ID
	}

	_, secret, err := s.engine.Accounts.CreateKey(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}

	return secret
}

// troubleHeader names what is to befall the store while it serves a request.
const troubleHeader = "Test-Trouble"

type troubleKey struct{}

// unreliable is a store to which a request's trouble happens: "broken" and "down" when the key is looked up,
// "conflict" when something is changed, "busy" when an Idempotency-Key is claimed.
type unreliable struct{ payments.Store }

func trouble(ctx context.Context) string {
	name, _ := ctx.Value(troubleKey{}).(string)
	return name
}

// KeyByHash reads a key.
func (u unreliable) KeyByHash(ctx context.Context, hash [32]byte) (account.Key, account.Account, error) {
	switch trouble(ctx) {
	case "broken":
		return account.Key{}, account.Account{}, errors.New("a row makes no sense")
	case "down":
		return account.Key{}, account.Account{}, fault.New(fault.Unavailable, "", "the database is gone")
	}

	return u.Store.KeyByHash(ctx, hash)
}

// Update runs a transaction.
func (u unreliable) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	switch trouble(ctx) {
	case "conflict":
		return fault.New(fault.Conflict, "", "another transaction was faster")
	case "busy":
		return u.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return f(ctx, busyTx{tx}) })
	}

	return u.Store.Update(ctx, f)
}

// busyTx is a transaction that finds every claim held by another.
type busyTx struct{ store.Tx }

// ClaimIdempotencyKey refuses.
func (busyTx) ClaimIdempotencyKey(context.Context, idempotency.Record, time.Time, time.Duration) error {
	return fault.New(fault.Unavailable, "claim_busy", "another transaction holds the claim")
}
