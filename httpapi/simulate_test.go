package httpapi_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

func TestSimulatedInvoicePayment(t *testing.T) {
	s := open(t, nil)
	for outcome, status := range map[string]string{
		"detected":  "pending",
		"paid":      "paid",
		"underpaid": "underpaid",
		"overpaid":  "paid",
		"late":      "expired",
	} {
		id := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)

		inv := s.post(t, "/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"`+outcome+`"}`)
		if inv["status"] != status {
			t.Errorf("outcome %s: the invoice is %v", outcome, inv["status"])
		}

		list := s.get(t, "/v1/invoices/"+id+"/payments")["data"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["simulated"] != true {
			t.Fatalf("outcome %s: payments %v", outcome, list)
		}

		p := list[0].(map[string]any)

		got := s.get(t, "/v1/payments/"+p["id"].(string))
		if _, settled := got["settlement"]; settled != (outcome != "detected") || got["invoice_id"] != id {
			t.Errorf("outcome %s: payment %v", outcome, got)
		}
	}

	live := s.newKey(t, account.KeyParams{Livemode: true, Scopes: account.AllScopes()})
	if f := s.do(t, request{
		method: "POST",
		path:   "/v1/test/invoices/" + nobody + "/simulate_payment",
		key:    live,
		body:   `{"outcome":"paid"}`,
	}).
		refused(t, 403); f.Code != "test_mode_only" {
		t.Errorf("%+v", f)
	}

	s.do(t, request{
		method: "POST",
		path:   "/v1/test/invoices/" + nobody + "/simulate_payment",
		body:   `{"outcome":"eaten"}`,
	}).
		refused(t, 400)
	s.do(t, request{
		method: "POST",
		path:   "/v1/test/invoices/" + nobody + "/simulate_payment",
		body:   `{"outcome":"paid"}`,
	}).
		refused(t, 404)
}

func TestSimulatedDepositPayment(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/deposit_addresses", `{"network":"simnet","name":"customer 7"}`)["id"].(string)
	path := "/v1/test/deposit_addresses/" + id + "/simulate_payment"
	p := s.post(t, path, `{"asset":"USDX","amount":"5000000","outcome":"confirmed"}`)

	settlement, ok := p["settlement"].(map[string]any)
	if !ok || p["status"] != "confirmed" || settlement["payment_id"] != p["id"] ||
		p["deposit_address_name"] != "customer 7" {
		t.Fatalf("%v", p)
	}

	if got := s.get(
		t, "/v1/settlements/"+settlement["id"].(string),
	); got["status"] != settlement["status"] ||
		got["gross"] != "5000000" {
		t.Errorf("answered with settlement %v, read %v", settlement, got)
	}

	if list := s.get(t, "/v1/deposit_addresses/"+id+"/payments?status=confirmed")["data"].([]any); len(
		list,
	) != 1 {
		t.Errorf("%v", list)
	}

	if f := s.do(t, request{method: "POST", path: path, body: `{"asset":"GOLD","amount":"1","outcome":"confirmed"}`}).
		refused(t, 422); f.Code != "asset_not_enabled" {
		t.Errorf("%+v", f)
	}
}

func TestSimulatedPaymentPaysAfterItsQuoteRanOut(t *testing.T) {
	var passed atomic.Int64

	clock := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300"}, time.Minute, clock)
	if err != nil {
		t.Fatal(err)
	}

	s := bootWith(t, memory.New(), nil, clock, func(c *payments.Config) { c.Rates = prices })
	s.enter(t)
	id := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)

	passed.Store(int64(21 * time.Minute))

	if err := prices.Set("ETH/EUR", "2200"); err != nil {
		t.Fatal(err)
	}

	wantInvoice(t, s.simulate(t, id, "paid", ""), "paid []")
}

func TestSimulatedPaymentPaysBesideADetectedOne(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", cryptoBody)["id"].(string)

	s.simulate(t, id, "detected", `,"amount":"400000000000000000"`)
	wantInvoice(t, s.simulate(t, id, "paid", ""), "paid []")
}
