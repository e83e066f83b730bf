package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/webhook"
)

// story is one payment as a merchant's server sees it: through the HTTP API and the webhook, nothing else.
type story struct {
	base, key string
	network   *network
}

// The parts of API objects that this merchant looks at.
type (
	invoiceView struct {
		ID          string `json:"id"`
		Status      string `json:"status"`
		CheckoutURL string `json:"checkout_url"`
		Options     []struct {
			AmountDue string        `json:"amount_due"`
			Address   chain.Address `json:"address"`
			Asset     string        `json:"asset"`
			Decimals  uint8         `json:"decimals"`
		} `json:"options"`
	}
	paymentView struct {
		ID         string `json:"id"`
		Status     string `json:"status"`
		TxHash     string `json:"tx_hash"`
		Settlement *struct {
			ID          string `json:"id"`
			Status      string `json:"status"`
			Reason      string `json:"reason"`
			Gross       string `json:"gross"`
			FeePaid     string `json:"fee_paid"`
			NetworkFees string `json:"network_fees"`
			NetReleased string `json:"net_released"`
		} `json:"settlement"`
	}
)

// patience is how long the story waits for any one step.
const patience = 90 * time.Second

// play goes from a new invoice to its released settlement and fails at the first step that is not seen.
func play(ctx context.Context, s story) error {
	hooks := &receiver{seen: map[string]bool{}, news: make(chan struct{}, 1)}

	stop, url, err := hooks.listen()
	if err != nil {
		return err
	}
	defer stop()

	var endpoint struct {
		Secret string `json:"secret"`
	}
	if err := s.call(
		ctx, "POST", "/v1/webhook_endpoints", map[string]any{"url": url, "events": []string{"*"}},
		&endpoint,
	); err != nil {
		return err
	}

	hooks.trust(endpoint.Secret)

	var inv invoiceView
	if err := s.call(ctx, "POST", "/v1/invoices", s.order(), &inv); err != nil {
		return err
	}

	if inv.Status != "open" || len(inv.Options) != 1 {
		return fmt.Errorf("the new invoice is %+v, not open with one option", inv)
	}

	option := inv.Options[0]
	fmt.Printf(
		"invoice %s open: %s base units of %s to %s\n",
		inv.ID, option.AmountDue, option.Asset, option.Address,
	)

	due, err := chain.ParseAmount(option.AmountDue)
	if err != nil {
		return err
	}

	hash, err := s.network.pay(ctx, option.Address, due)
	if err != nil {
		return fmt.Errorf("the payer could not pay: %w", err)
	}

	if err := hooks.await(ctx, "invoice.payment_detected"); err != nil {
		return err
	}

	p, err := s.awaitPayment(ctx, inv.ID, "seen", func(p paymentView) bool { return p.TxHash == hash })
	if err != nil {
		return err
	}

	fmt.Printf("payment %s detected: transaction %s\n", p.ID, p.TxHash)

	if p, err = s.awaitPayment(
		ctx, inv.ID, "confirmed", func(p paymentView) bool { return p.Status == "confirmed" },
	); err != nil {
		return err
	}

	if err := hooks.await(ctx, "invoice.payment_confirmed"); err != nil {
		return err
	}

	fmt.Printf("payment %s confirmed\n", p.ID)

	if err := s.call(ctx, "GET", "/v1/invoices/"+inv.ID, nil, &inv); err != nil {
		return err
	}

	if inv.Status != "paid" {
		return fmt.Errorf("invoice %s is %s after its payment confirmed", inv.ID, inv.Status)
	}

	fmt.Printf("invoice %s paid\n", inv.ID)

	if p, err = s.awaitPayment(ctx, inv.ID, "released", func(p paymentView) bool {
		return p.Settlement != nil && p.Settlement.Status == "released"
	}); err != nil {
		return err
	}

	fmt.Printf(
		"settlement %s released: %s gross = %s to the master wallet + %s platform fee + %s network fees\n",
		p.Settlement.ID, p.Settlement.Gross, p.Settlement.NetReleased, p.Settlement.FeePaid,
		p.Settlement.NetworkFees,
	)

	for _, typ := range []string{"invoice.created", "invoice.paid", "settlement.released"} {
		if err := hooks.await(ctx, typ); err != nil {
			return err
		}

		fmt.Printf("webhook %s delivered, signature verified\n", typ)
	}

	return nil
}

func (s story) order() map[string]any {
	return map[string]any{
		"price":       map[string]string{"currency": "EUR", "amount": "49.90"},
		"options":     []map[string]string{{"asset": s.network.asset, "network": s.network.slug}},
		"order_id":    "order-1",
		"description": "A pair of shoes",
	}
}

// firstInvoice makes an invoice to look at and returns its checkout URL.
func firstInvoice(ctx context.Context, s story) (string, error) {
	order := s.order()
	delete(order, "options")

	var inv invoiceView

	err := s.call(ctx, "POST", "/v1/invoices", order, &inv)

	return inv.CheckoutURL, err
}

// awaitPayment asks the API until the invoice's payment is as wanted.
func (s story) awaitPayment(
	ctx context.Context,
	invoiceID, what string,
	ok func(paymentView) bool,
) (paymentView, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()

	var last paymentView

	for {
		var page struct {
			Data []paymentView `json:"data"`
		}
		if err := s.call(ctx, "GET", "/v1/invoices/"+invoiceID+"/payments", nil, &page); err != nil {
			return last, fmt.Errorf("waiting for the payment to be %s: %w", what, err)
		}

		for _, p := range page.Data {
			if last = p; ok(p) {
				return p, nil
			}
		}

		select {
		case <-ctx.Done():
			return last, fmt.Errorf(
				"the payment of invoice %s was not %s within %s; it is %+v",
				invoiceID, what, patience, last,
			)
		case <-tick.C:
		}
	}
}

// call does one API request and decodes the answer.
func (s story) call(ctx context.Context, method, path string, body, answer any) error {
	var r io.Reader

	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}

		r = bytes.NewReader(b)
	}

	req, err := http.NewRequestWithContext(ctx, method, s.base+path, r)
	if err != nil {
		return err
	}

	req.Header.Set("Authorization", "Bearer "+s.key)

	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}

	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s answered %s: %s", method, path, resp.Status, b)
	}

	return json.Unmarshal(b, answer)
}

// receiver is the merchant's webhook endpoint: it believes only what is signed.
type receiver struct {
	mu     sync.Mutex
	secret string
	seen   map[string]bool
	bad    error
	news   chan struct{}
}

func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.secret = secret
}

func (r *receiver) listen() (stop func(), url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}

	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}

	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })

	return func() { server.Close(); wg.Wait() }, "http://" + l.Addr().String() + "/hooks", nil
}

// ServeHTTP verifies a delivery and remembers its type.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))

	r.mu.Lock()
	defer r.mu.Unlock()

	if err == nil {
		err = webhook.Verify(body, req.Header.Get("Service-Signature"), r.secret)
	}

	if err != nil {
		r.bad = err

		http.Error(w, "bad signature", http.StatusBadRequest)

		return
	}

	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}

	r.seen[event.Type] = true
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// await waits for an event of a type.
func (r *receiver) await(ctx context.Context, typ string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	for {
		r.mu.Lock()
		seen, bad := r.seen[typ], r.bad
		r.mu.Unlock()

		if bad != nil {
			return fmt.Errorf("a webhook did not verify: %w", bad)
		}

		if seen {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("no webhook %s arrived within %s", typ, patience)
		case <-r.news:
		}
	}
}
