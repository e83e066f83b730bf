package httpapi_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// movingRate prices everything the same, for a minute, as a test sets it.
type movingRate struct {
	price decimal.Decimal
	now   func() time.Time
}

func (r *movingRate) Quote(context.Context, string, string) (rate.Quote, error) {
	return rate.Quote{Rate: r.price, ExpiresAt: r.now().Add(time.Minute)}, nil
}

// A refusal whose reason may go is not the answer to the Idempotency-Key: the same request succeeds once it is gone.
func TestARefusalThatMayChangeIsNotStored(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	prices := &movingRate{now: clock}

	s := bootWith(t, memory.New(), nil, clock, func(c *payments.Config) {
		c.SecretKey, c.Rates = bytes.Repeat([]byte{7}, 32), prices
	})
	s.enter(t)

	there := string(s.network.NewAddress())
	paying := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})
	assets := s.network.Network().Assets

	setPrice := func(text string) func() {
		return func() {
			prices.price = decimal.RequireFromString(text)
			now = now.Add(2 * time.Minute) // prices are cached
		}
	}
	allow := func(assets ...string) func() {
		return func() { s.set(t, account.Settings{Assets: assets}) }
	}
	priced := func(price string) string {
		return `{"price":{"currency":"EUR","amount":"` + price + `"},"options":[{"asset":"SIM","network":"simnet"}]}`
	}
	simulate := func(invoiceID, body string) {
		s.post(t, "/v1/test/invoices/"+invoiceID+"/simulate_payment", body)
	}
	refund := func(invoiceID, amount string) string {
		return `{"invoice_id":"` + invoiceID + `","destination":"` + there + `"` + amount + `}`
	}

	setPrice("1")()

	partly := s.post(t, "/v1/invoices", priced("1"))["id"].(string)
	simulate(partly, `{"outcome":"underpaid","amount":"1000000000000"}`)

	several := s.post(t, "/v1/invoices", `{"price":{"currency":"EUR","amount":"9"},"options":[
		{"asset":"SIM","network":"simnet"},{"asset":"USDX","network":"simnet"}]}`)
	mixed := several["id"].(string)

	for i, amount := range []string{"1000000000000", "1000000"} {
		option := several["options"].([]any)[i].(map[string]any)["id"].(string)
		s.post(t, "/v1/invoices/"+mixed+"/options/"+option+"/select", "{}")
		simulate(mixed, `{"outcome":"underpaid","amount":"`+amount+`","option_id":"`+option+`"}`)
	}

	for _, test := range []struct {
		name, path, body string
		refuse           func() // makes the reason
		code             string
		mend             func() // takes it away
	}{
		{
			"too small at this price", "/v1/invoices", priced("0.0001"),
			setPrice("10000"), "amount_too_small", setPrice("1"),
		},
		{
			"asset not among the account's", "/v1/invoices", priced("1"),
			allow(assets[1].ID), "asset_not_enabled", allow(),
		},
		{
			"more than was paid", "/v1/refunds", refund(partly, `,"amount":"2000000000000"`),
			func() {}, "refund_exceeds_payment",
			func() { simulate(partly, `{"outcome":"underpaid","amount":"1000000000000"}`) },
		},
		{
			"all of it refunded", "/v1/refunds", refund(partly, ""),
			func() {}, "refund_exceeds_payment",
			func() { simulate(partly, `{"outcome":"underpaid","amount":"1000000000000"}`) },
		},
		{
			"paid in two assets", "/v1/refunds", refund(mixed, ""),
			func() {}, "refund_payment_required",
			func() { s.orphan(t, mixed) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := request{
				method: "POST",
				path:   test.path,
				key:    paying,
				body:   test.body,
				header: header("Idempotency-Key", "once-"+test.code+test.body[len(test.body)-12:]),
			}

			test.refuse()

			if f := s.do(t, q).refused(t, 422); f.Code != test.code {
				t.Fatalf("it is refused with %+v", f)
			}

			test.mend()

			made := s.do(t, q)
			id := s.ok(t, made)["id"]

			if made.header.Get("Idempotent-Replayed") != "" || s.ok(t, s.do(t, q))["id"] != id {
				t.Errorf("answered %v %s", made.header, made.body)
			}
		})
	}

	// What the request alone decides stays stored.
	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   `{"options":[{"asset":"SIM","network":"simnet","amount":"1"}]}`,
		header: header("Idempotency-Key", "fixed"),
	}
	s.do(t, q).refused(t, 422)

	if again := s.do(t, q); again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("an amount below the asset's minimum is looked at again: %s", again.body)
	}
}

// orphan takes the newest payment of an invoice out of the chain.
func (s *shop) orphan(t *testing.T, invoiceID string) {
	t.Helper()

	write(t, storeOf(s), func(ctx context.Context, tx store.Tx) error {
		paid, err := tx.PaymentsOfInvoices(ctx, []string{invoiceID})
		if err != nil {
			return err
		}

		last := paid[len(paid)-1]
		last.Status = invoice.Orphaned

		return tx.PutPayments(ctx, &last)
	})
}
