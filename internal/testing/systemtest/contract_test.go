// Package systemtest tests the whole service from outside with tools that are too heavy for the module that
// embedders import.
package systemtest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

const invoiceBody = `{"price":{"currency":"EUR","amount":"49.90"},
	"options":[{"asset":"SIM","network":"simnet"}],"order_id":"A-1",
	"customer_email":"payer@example.com","description":"Two chairs","metadata":{"cart":"7"},
	"tolerance_bps":100,"expires_in":3600,"pre_selection_expires_in":600,
	"success_url":"https://shop.example/ok","cancel_url":"https://shop.example/no"}`

const nobody = "0123456789abcdef01234567" // an id of nothing

// Every operation of the document is called over a real listener until each status that it
// documents, and each error code, was answered; every request and every answer, errors too, is as
// documented. In the first service an engine runs; in the second nothing moves but by requests, and
// its clock, prices and store do what a refusal needs.
func TestContract(t *testing.T) {
	seen := coverage{}

	t.Run("running", func(t *testing.T) {
		c, s := start(t, seen)
		s.run(t)

		merchant := httptest.NewServer(
			http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "thanks") },
			),
		)
		t.Cleanup(merchant.Close)
		c.do(200, request{method: "GET", path: "/v1/openapi.json", key: "-"})
		c.reference()
		endpoint := c.webhookEndpoints(merchant.URL)
		c.invoices()
		c.deposits()
		c.sendMoney(s)
		c.refundWithoutSending(s)
		c.events(endpoint)
	})
	t.Run("still", func(t *testing.T) {
		c, s := start(t, seen)
		c.refusedInvoices(s)
		c.refusedMoney(s)
		c.refusedByOthers(s)
		c.refusedWebhooks()
		c.refusedByAll(s)
		c.report()
	})
}

func (c *client) reference() {
	c.t.Helper()

	for _, path := range []string{"/v1/networks", "/v1/assets?network=simnet&limit=1", "/v1/rates?base=SIM&quote=USD"} {
		c.do(200, request{method: "GET", path: path, key: c.public})
	}

	c.do(400, request{method: "GET", path: "/v1/rates?base=MOON"})
	c.do(400, request{method: "GET", path: "/v1/networks?colour=red"})
}

func (c *client) webhookEndpoints(merchant string) string {
	c.t.Helper()
	id := text(
		c.post("/v1/webhook_endpoints", `{"url":"`+merchant+`/hook","events":["*"],"description":"all"}`),
		"id",
	)
	other := text(
		c.post("/v1/webhook_endpoints", `{"url":"`+merchant+`","events":["invoice.paid","payout.failed"]}`),
		"id",
	)
	path := "/v1/webhook_endpoints/" + id

	c.get("/v1/webhook_endpoints?limit=1")
	c.get(path)
	c.do(
		200,
		request{
			method: "PATCH",
			path:   path,
			body:   `{"description":"everything","events":["*"],"status":"enabled"}`,
		},
	)
	c.do(400, request{method: "PATCH", path: path, body: `{"status":"failing"}`})

	if got := c.post(
		path+"/rotate_secret", `{"overlap_hours":1}`,
	); text(got, "secret") == "" ||
		text(got, "previous_secret_expires_at") == "" {
		c.t.Errorf("rotated to %v", got)
	}

	c.post(path+"/rotate_secret", "")
	c.do(400, request{method: "POST", path: path + "/rotate_secret", body: `{"overlap_hours":169}`})
	delivery := text(c.post(path+"/test", ""), "id")
	got := c.await(
		"/v1/webhook_deliveries/"+delivery,
		func(d map[string]any) bool { return d["status"] == "succeeded" },
	)

	log, _ := got["attempt_log"].([]any)
	if len(log) != 1 || log[0].(map[string]any)["response"] == nil {
		c.t.Errorf("the delivery read by its id is %v", got)
	}

	c.post("/v1/webhook_deliveries/"+delivery+"/resend", "")
	c.get(path + "/deliveries?status=succeeded&status=pending")
	c.do(200, request{method: "DELETE", path: "/v1/webhook_endpoints/" + other})
	c.do(404, request{method: "GET", path: "/v1/webhook_endpoints/" + other})

	return id
}

func (c *client) invoices() {
	c.t.Helper()

	first := c.do(
		200,
		request{method: "POST", path: "/v1/invoices", body: invoiceBody, idempotency: "order-A-1"},
	)
	if again := c.do(
		200,
		request{method: "POST", path: "/v1/invoices", body: invoiceBody, idempotency: "order-A-1"},
	); again["id"] != first["id"] {
		c.t.Errorf("the same key made %v and %v", first["id"], again["id"])
	}

	c.do(
		422,
		request{
			method:      "POST",
			path:        "/v1/invoices",
			body:        `{"price":{"currency":"EUR","amount":"1"}}`,
			idempotency: "order-A-1",
		},
	)

	id := text(first, "id")

	c.get(
		"/v1/invoices?status=open&status=paid&network=simnet&order_id=A-1&q=a" +
			"&created_after=2026-01-01T00:00:00Z&created_before=2100-01-01T00:00:00Z&limit=1",
	)
	c.get("/v1/invoices/" + id)

	paid := c.post("/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"paid"}`)
	if paid["status"] != "paid" {
		c.t.Errorf("simulated as paid: %v", paid)
	}

	list := rows(c.get("/v1/invoices/" + id + "/payments?status=confirmed&status=detected"))
	if len(list) != 1 {
		c.t.Fatalf("payments %v", list)
	}

	c.get("/v1/payments/" + text(list[0], "id"))
	c.get(
		"/v1/payments?invoice_id=" + id + "&status=confirmed&network=simnet" +
			"&detected_after=2026-01-01T00:00:00.000Z&detected_before=2100-01-01T00:00:00%2B02:00&q=sim_",
	)

	settlements := rows(
		c.get("/v1/settlements?invoice_id=" + id + "&status=released&status=pending&network=simnet"),
	)
	if len(settlements) != 1 {
		c.t.Fatalf("settlements %v", settlements)
	}

	c.get("/v1/settlements/" + text(settlements[0], "id"))
	c.do(409, request{method: "POST", path: "/v1/invoices/" + id + "/accept_late_payment"})

	// A crypto invoice with two options: chosen, then canceled, then paid late and accepted.
	crypto := c.post(
		"/v1/invoices",
		`{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000"},{"asset":"USDX",`+
			`"network":"simnet","amount":"2000000"}]}`,
	)
	cryptoID := text(crypto, "id")
	option, _ := crypto["options"].([]any)[1].(map[string]any)
	c.post("/v1/invoices/"+cryptoID+"/options/"+text(option, "id")+"/select", "")
	c.do(404, request{method: "POST", path: "/v1/invoices/" + cryptoID + "/options/" + nobody + "/select"})
	c.do(409, request{method: "POST", path: "/v1/invoices/" + cryptoID + "/accept"})
	c.post("/v1/invoices/"+cryptoID+"/renew_checkout_url", "")
	c.post("/v1/invoices/"+cryptoID+"/cancel", "")
	c.post("/v1/test/invoices/"+cryptoID+"/simulate_payment", `{"outcome":"late"}`)

	if late := c.post("/v1/invoices/"+cryptoID+"/accept_late_payment", ""); late["status"] != "paid" {
		c.t.Errorf("accepted late: %v", late)
	}
	// Too little, and taken all the same.
	short := text(c.post("/v1/invoices", invoiceBody), "id")
	c.post("/v1/test/invoices/"+short+"/simulate_payment", `{"outcome":"underpaid"}`)

	if got := c.post("/v1/invoices/"+short+"/accept", ""); got["status"] != "paid" {
		c.t.Errorf("accepted: %v", got)
	}

	for _, outcome := range []string{"detected", "overpaid", "orphaned", "dropped"} {
		id := text(c.post("/v1/invoices", invoiceBody), "id")
		c.post("/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"`+outcome+`"}`)
		c.get("/v1/invoices/" + id + "/payments")
	}

	waiting := text(c.post("/v1/invoices", invoiceBody), "id")
	c.post("/v1/test/invoices/"+waiting+"/simulate_payment", `{"outcome":"detected"}`)
	c.do(409, request{method: "POST", path: "/v1/invoices/" + waiting + "/cancel"})
}

func (c *client) deposits() {
	c.t.Helper()
	id := text(
		c.post(
			"/v1/deposit_addresses",
			`{"network":"simnet","name":"customer 7","metadata":{"tier":"gold"}}`,
		),
		"id",
	)
	path := "/v1/deposit_addresses/" + id

	c.get("/v1/deposit_addresses?status=active&network=simnet&q=cust")
	c.get(path)
	c.do(
		200,
		request{method: "PATCH", path: path, body: `{"name":"customer 8","metadata":{},"status":"disabled"}`},
	)
	c.do(400, request{method: "PATCH", path: path, body: `{"network":"simnet"}`})

	p := c.post(
		"/v1/test/deposit_addresses/"+id+"/simulate_payment",
		`{"asset":"USDX","amount":"5000000","outcome":"confirmed"}`,
	)
	if p["settlement"] == nil {
		c.t.Errorf("a confirmed payment without its settlement: %v", p)
	}

	c.do(
		422,
		request{
			method: "POST",
			path:   "/v1/test/deposit_addresses/" + id + "/simulate_payment",
			body:   `{"asset":"GOLD","amount":"1","outcome":"confirmed"}`,
		},
	)
	c.get(path + "/payments?status=confirmed")
}

func (c *client) sendMoney(s *service) {
	c.t.Helper()

	master, err := internal.Of(s.engine).Transactions.MasterWallet(c.t.Context(), "simnet", s.account.Index)
	if err != nil {
		c.t.Fatal(err)
	}

	c.refundFromNothing(s)
	s.network.Fund(master.Address, "SIM", chain.Pow10(19))
	s.network.Mine(5)
	pay := request{
		method:      "POST",
		path:        "/v1/payouts",
		key:         c.sending,
		idempotency: "rent",
		body: `{"asset":"SIM","network":"simnet","amount":"1000000000000000","destination":"` + s.payee +
			`","memo":"rent"}`,
	}
	id := text(c.do(200, pay), "id")
	c.get(
		"/v1/payouts?status=pending&status=processing&status=included&status=confirmed&status=failed" +
			"&network=simnet&q=" + id,
	)
	c.await("/v1/payouts/"+id, func(p map[string]any) bool {
		s.network.Mine(1)
		return p["status"] == "confirmed"
	})
	c.do(409, request{method: "POST", path: "/v1/payouts/" + id + "/cancel"})
	c.get("/v1/balances?network=simnet")
	c.cancelUnsigned(s)

	pay.idempotency = ""
	c.do(400, pay)
	pay.idempotency, pay.key = "poor", c.key
	c.do(403, pay)
	pay.key, pay.body = c.sending, strings.Replace(
		pay.body, "1000000000000000", "1"+strings.Repeat("0", 30), 1,
	)
	c.do(422, pay)

	// What a simulated payment brought is refunded, simulated too.
	inv := text(c.post("/v1/invoices", invoiceBody), "id")
	c.post("/v1/test/invoices/"+inv+"/simulate_payment", `{"outcome":"paid"}`)
	refund := c.do(200, request{
		method:      "POST",
		path:        "/v1/refunds",
		key:         c.sending,
		idempotency: "refund",
		body: `{"invoice_id":"` + inv + `","amount":"1000","destination":"` + s.payee +
			`","reason":"broken","metadata":{"case":"1"}}`,
	})
	c.get("/v1/refunds/" + text(refund, "id"))
	c.get("/v1/refunds?status=succeeded&status=pending&invoice_id=" + inv)
	c.do(409, request{method: "POST", path: "/v1/refunds/" + text(refund, "id") + "/cancel"})
	c.do(422, request{
		method:      "POST",
		path:        "/v1/refunds",
		key:         c.sending,
		idempotency: "too-much",
		body: `{"invoice_id":"` + inv + `","amount":"1` + strings.Repeat(
			"0", 40,
		) + `","destination":"` + s.payee + `"}`,
	})
}

// paid is an invoice that somebody paid on the network.
func (c *client) paid(s *service) (id string) {
	c.t.Helper()
	inv := c.post(
		"/v1/invoices",
		`{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000"}]}`,
	)
	option, _ := inv["options"].([]any)[0].(map[string]any)
	s.network.Pay(chain.Address(text(option, "address")), "SIM", chain.Pow10(15))
	c.await("/v1/invoices/"+text(inv, "id"), func(inv map[string]any) bool {
		s.network.Mine(1)
		return inv["status"] == "paid"
	})

	return text(inv, "id")
}

// refundFromNothing asks for a refund while what was paid stays at its address and the master
// wallet holds nothing.
func (c *client) refundFromNothing(s *service) {
	c.t.Helper()

	settings := s.account.Settings

	settings.ManualRelease = true
	if _, err := s.engine.Accounts.UpdateSettings(c.t.Context(), s.account.ID, settings); err != nil {
		c.t.Fatal(err)
	}

	c.refuse(422, "insufficient_balance", c.refunding(s, "invoice_id", c.paid(s), "", "poor-refund"))

	if _, err := s.engine.Accounts.UpdateSettings(
		c.t.Context(), s.account.ID, s.account.Settings,
	); err != nil {
		c.t.Fatal(err)
	}
}

// cancelUnsigned cancels a payout, and a refund of money that really came, while the network keeps
// the outbox waiting.
func (c *client) cancelUnsigned(s *service) {
	c.t.Helper()
	inv := c.paid(s)

	s.network.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBuild {
			return sim.Unavailable()
		}

		return nil
	})
	defer s.network.SetIntercept(nil)

	p := c.do(200, request{
		method:      "POST",
		path:        "/v1/payouts",
		key:         c.sending,
		idempotency: "stop",
		body:        `{"asset":"SIM","network":"simnet","amount":"1000000000000000","destination":"` + s.payee + `"}`,
	})

	s.freeze(c.t, true)
	c.refuse(
		409,
		"payout_awaiting_review",
		request{method: "POST", path: "/v1/payouts/" + text(p, "id") + "/cancel"},
	)
	s.freeze(c.t, false)

	if got := c.post(
		"/v1/payouts/"+text(p, "id")+"/cancel",
		"",
	); got["status"] != "failed" ||
		got["failure_code"] != "canceled" {
		c.t.Errorf("canceled: %v", got)
	}

	r := c.do(200, request{
		method:      "POST",
		path:        "/v1/refunds",
		key:         c.sending,
		idempotency: "stop-refund",
		body:        `{"invoice_id":"` + inv + `","destination":"` + s.payee + `"}`,
	})
	c.get("/v1/payouts/" + text(r, "payout_id"))

	s.freeze(c.t, true)
	c.refuse(
		409,
		"payout_awaiting_review",
		request{method: "POST", path: "/v1/refunds/" + text(r, "id") + "/cancel"},
	)
	s.freeze(c.t, false)

	if got := c.post("/v1/refunds/"+text(r, "id")+"/cancel", ""); got["status"] != "canceled" {
		c.t.Errorf("canceled: %v", got)
	}
}

// freeze freezes the master wallet, as a new epoch of restored records does, or ends that.
func (s *service) freeze(t *testing.T, on bool) {
	t.Helper()

	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), "simnet", s.account.Index)
	if err != nil {
		t.Fatal(err)
	}

	if err := s.engine.Update(t.Context(), func(ctx context.Context, tx payments.Tx) error {
		w, found, err := tx.Wallet(ctx, "simnet", master.Address)
		if err != nil {
			return err
		}

		if !found {
			w = wallet.Wallet{Network: "simnet", Party: master}
		}

		if walletstate.Unfreeze(&w); on {
			walletstate.Freeze(&w, wallet.FrozenEpoch, "", s.now())
		}

		return tx.PutWallet(ctx, &w)
	}); err != nil {
		t.Fatal(err)
	}
}

func (c *client) events(endpoint string) {
	c.t.Helper()
	list := rows(c.get("/v1/events?limit=100"))

	types := map[string]bool{}
	for _, e := range list {
		types[text(e, "type")] = true
	}

	for _, want := range []string{
		"invoice.created",
		"invoice.paid",
		"deposit.payment_confirmed",
		"settlement.released",
		"payout.created",
		"refund.succeeded",
	} {
		if !types[want] {
			c.t.Errorf("no event %s among %v", want, slices.Sorted(maps.Keys(types)))
		}
	}

	id := text(list[0], "id")
	c.get("/v1/events/" + id)
	c.get(
		"/v1/events?type=invoice.paid,invoice.created&created_after=2026-01-01T00:00:00Z&object_id=" + nobody,
	)

	if made := rows(
		c.post("/v1/events/"+id+"/resend", ""),
	); len(made) != 1 ||
		made[0]["webhook_endpoint_id"] != endpoint {
		c.t.Errorf("resent to %v", made)
	}

	c.get("/v1/events/" + id + "/deliveries?limit=1")
}
