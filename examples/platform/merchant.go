package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// merchant is a customer of the platform, with a server that receives webhooks.
type merchant struct {
	name     string
	owner    event.Owner
	key      string
	server   *http.Server
	releases chan release

	mu      sync.Mutex
	invoice string
}

// release is what a merchant reads of a released settlement. Amounts are base units.
type release struct {
	InvoiceID   string `json:"invoice_id"`
	Gross       string `json:"gross"`
	FeePaid     string `json:"fee_paid"`
	NetReleased string `json:"net_released"`
}

// onboard creates a merchant's account with its fee in basis points, a key, and a webhook endpoint.
func onboard(ctx context.Context, engine *payments.Engine, name string, feeBPS int) (*merchant, error) {
	created, err := engine.Accounts.CreateAccount(ctx, account.Settings{Name: name, FeeBPS: &feeBPS})
	if err != nil {
		return nil, err
	}

	_, key, err := engine.Accounts.CreateKey(ctx, account.KeyParams{AccountID: created.ID, Name: "server"})
	if err != nil {
		return nil, err
	}

	shop := &merchant{
		name:     name,
		owner:    event.Owner{AccountID: created.ID},
		key:      key,
		releases: make(chan release, 10),
	}

	return shop, shop.listen(ctx, engine)
}

// listen serves the merchant's webhook endpoint and registers it. Each endpoint has a signing secret of its own.
func (m *merchant) listen(ctx context.Context, engine *payments.Engine) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	_, secret, err := engine.Webhooks.CreateEndpoint(ctx, webhook.EndpointParams{
		Owner:  m.owner,
		URL:    "http://" + listener.Addr().String() + "/webhooks",
		Events: []event.Type{event.SettlementReleased},
	})
	if err != nil {
		return err
	}

	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{Secrets: []string{secret}, Handle: m.handle})
	if err != nil {
		return err
	}

	m.server = &http.Server{Handler: receiver, ReadHeaderTimeout: 5 * time.Second}

	go func() { _ = m.server.Serve(listener) }()

	return nil
}

func (m *merchant) handle(_ context.Context, n webhook.Notification) error {
	if n.Type != event.SettlementReleased {
		return nil
	}

	var released release
	if err := json.Unmarshal(n.Data.Object, &released); err != nil {
		return err
	}

	m.mu.Lock()
	m.invoice = released.InvoiceID
	m.mu.Unlock()

	m.releases <- released

	return nil
}

// awaitRelease waits for the next webhook of a settlement.
func (m *merchant) awaitRelease(ctx context.Context) (release, error) {
	select {
	case released := <-m.releases:
		return released, nil
	case <-ctx.Done():
		return release{}, fmt.Errorf("%s was not told of its settlement: %w", m.name, ctx.Err())
	}
}

// invoiceID returns the id of the invoice whose money was released last.
func (m *merchant) invoiceID() string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.invoice
}

// get sends a request with the merchant's key and returns the status of the answer.
func (m *merchant) get(api http.Handler, path string) int {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+m.key)

	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)

	return answer.Code
}

func (m *merchant) close() { m.server.Close() }
