package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// merchant is a merchant's server: it uses the HTTP API and a webhook, nothing else.
type merchant struct {
	base, key string
	network   *network
}

// The fields of API objects that this merchant reads.
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

// stepTimeout is how long each step of a payment may take.
const stepTimeout = 90 * time.Second

// payOnce goes from a new invoice to its released settlement. It fails at the first step that is not seen.
func (m merchant) payOnce(ctx context.Context) error {
	hooks := &receiver{seen: map[string]bool{}, wake: make(chan struct{}, 1)}

	stop, err := m.registerEndpoint(ctx, hooks)
	if err != nil {
		return err
	}
	defer stop()

	inv, err := m.createInvoice(ctx)
	if err != nil {
		return err
	}

	if err := m.awaitDetected(ctx, hooks, inv); err != nil {
		return err
	}

	if err := m.awaitPaid(ctx, hooks, inv.ID); err != nil {
		return err
	}

	if err := m.awaitReleased(ctx, inv.ID); err != nil {
		return err
	}

	for _, typ := range []string{"invoice.created", "invoice.paid", "settlement.released"} {
		if err := hooks.await(ctx, typ); err != nil {
			return err
		}

		fmt.Printf("webhook %s delivered, signature verified\n", typ)
	}

	return nil
}

// registerEndpoint starts the webhook receiver and registers it for all events.
func (m merchant) registerEndpoint(ctx context.Context, hooks *receiver) (stop func(), err error) {
	stop, url, err := hooks.listen()
	if err != nil {
		return nil, err
	}

	var endpoint struct {
		Secret string `json:"secret"`
	}

	body := map[string]any{"url": url, "events": []string{"*"}}
	if err := m.call(ctx, "POST", "/v1/webhook_endpoints", body, &endpoint); err != nil {
		stop()
		return nil, err
	}

	hooks.setSecret(endpoint.Secret)

	return stop, nil
}

// createInvoice creates an invoice with one option.
func (m merchant) createInvoice(ctx context.Context) (invoiceView, error) {
	var inv invoiceView
	if err := m.call(ctx, "POST", "/v1/invoices", m.order(), &inv); err != nil {
		return inv, err
	}

	if inv.Status != "open" || len(inv.Options) != 1 {
		return inv, fmt.Errorf("the new invoice is %+v, not open with one option", inv)
	}

	option := inv.Options[0]
	fmt.Printf(
		"invoice %s open: %s base units of %s to %s\n",
		inv.ID, option.AmountDue, option.Asset, option.Address,
	)

	return inv, nil
}

// awaitDetected pays the invoice from the payer and waits until the payment is detected.
func (m merchant) awaitDetected(ctx context.Context, hooks *receiver, inv invoiceView) error {
	option := inv.Options[0]

	due, err := chain.ParseAmount(option.AmountDue)
	if err != nil {
		return err
	}

	hash, err := m.network.pay(ctx, option.Address, due)
	if err != nil {
		return fmt.Errorf("the payer could not pay: %w", err)
	}

	if err := hooks.await(ctx, "invoice.payment_detected"); err != nil {
		return err
	}

	payment, err := m.awaitPayment(ctx, inv.ID, "seen", func(p paymentView) bool { return p.TxHash == hash })
	if err != nil {
		return err
	}

	fmt.Printf("payment %s detected: transaction %s\n", payment.ID, payment.TxHash)

	return nil
}

// awaitPaid waits until the payment is confirmed and checks that the invoice is paid.
func (m merchant) awaitPaid(ctx context.Context, hooks *receiver, invoiceID string) error {
	confirmed := func(p paymentView) bool { return p.Status == "confirmed" }

	payment, err := m.awaitPayment(ctx, invoiceID, "confirmed", confirmed)
	if err != nil {
		return err
	}

	if err := hooks.await(ctx, "invoice.payment_confirmed"); err != nil {
		return err
	}

	fmt.Printf("payment %s confirmed\n", payment.ID)

	var inv invoiceView
	if err := m.call(ctx, "GET", "/v1/invoices/"+invoiceID, nil, &inv); err != nil {
		return err
	}

	if inv.Status != "paid" {
		return fmt.Errorf("invoice %s is %s after its payment confirmed", inv.ID, inv.Status)
	}

	fmt.Printf("invoice %s paid\n", inv.ID)

	return nil
}

// awaitReleased waits until the settlement is released to the master wallet.
func (m merchant) awaitReleased(ctx context.Context, invoiceID string) error {
	released := func(p paymentView) bool { return p.Settlement != nil && p.Settlement.Status == "released" }

	payment, err := m.awaitPayment(ctx, invoiceID, "released", released)
	if err != nil {
		return err
	}

	settlement := payment.Settlement
	fmt.Printf(
		"settlement %s released: %s gross = %s to the master wallet + %s platform fee + %s network fees\n",
		settlement.ID, settlement.Gross, settlement.NetReleased, settlement.FeePaid, settlement.NetworkFees,
	)

	return nil
}

// order returns the body of a new invoice.
func (m merchant) order() map[string]any {
	return map[string]any{
		"price":       map[string]string{"currency": "EUR", "amount": "49.90"},
		"options":     []map[string]string{{"asset": m.network.asset, "network": m.network.slug}},
		"order_id":    "order-1",
		"description": "A pair of shoes",
	}
}

// firstInvoice creates an invoice with every option and returns its checkout URL.
func (m merchant) firstInvoice(ctx context.Context) (string, error) {
	order := m.order()
	delete(order, "options")

	var inv invoiceView

	err := m.call(ctx, "POST", "/v1/invoices", order, &inv)

	return inv.CheckoutURL, err
}

// awaitPayment polls the API until ok returns true for a payment of the invoice.
func (m merchant) awaitPayment(
	ctx context.Context,
	invoiceID, what string,
	ok func(paymentView) bool,
) (paymentView, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()

	var last paymentView

	for {
		var page struct {
			Data []paymentView `json:"data"`
		}
		if err := m.call(ctx, "GET", "/v1/invoices/"+invoiceID+"/payments", nil, &page); err != nil {
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
				invoiceID, what, stepTimeout, last,
			)
		case <-tick.C:
		}
	}
}

// call sends one API request and decodes the answer.
func (m merchant) call(ctx context.Context, method, path string, body, answer any) error {
	var reader io.Reader

	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}

		reader = bytes.NewReader(encoded)
	}

	req, err := http.NewRequestWithContext(ctx, method, m.base+path, reader)
	if err != nil {
		return err
	}

	req.Header.Set("Authorization", "Bearer "+m.key)

	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}

	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s answered %s: %s", method, path, resp.Status, data)
	}

	return json.Unmarshal(data, answer)
}
