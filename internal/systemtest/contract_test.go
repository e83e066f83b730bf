// Package systemtest tests the whole service from outside with tools that are too heavy for the module that
// embedders import.
package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// client calls the API and holds every answer, errors too, against the published document.
type client struct {
	t      *testing.T
	base   string
	doc    *openapi3.T
	router routers.Router
	// keys that the tests use: with every scope, held to a destination, publishable, live.
	key, sending, public, live string
	// answered are the statuses that each operation was seen to answer.
	answered map[string]map[int]bool
}

// service is what the client talks to.
type service struct {
	engine  *payments.Engine
	network *sim.Chain
	account account.Account
	payee   string // where the sending key may pay to
}

func start(t *testing.T) (*client, *service) {
	t.Helper()
	live := sim.DefaultNetwork()
	live.Slug, live.CAIP2, live.Livemode = "livenet", "sim:2", true
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1"}, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{network: sim.New(sim.Config{})}
	s.payee = string(s.network.NewAddress())
	s.engine, err = payments.New(payments.Config{
		Store: memory.New(), Drivers: []payments.ChainDriver{s.network, sim.New(sim.Config{Network: live})}, Signer: sim.NewSigner(1, nil), Rates: prices,
		BaseURL: "https://pay.example.com", SecretKey: bytes.Repeat([]byte{7}, 32), WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.account, err = s.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.Handler(s.engine, nil))
	t.Cleanup(server.Close)
	c := &client{t: t, base: server.URL, answered: map[string]map[int]bool{}}
	c.key = s.newKey(t, account.KeyParams{Scopes: account.AllScopes()})
	c.sending = s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: []string{s.payee}})
	c.public = s.newKey(t, account.KeyParams{Publishable: true})
	c.live = s.newKey(t, account.KeyParams{Livemode: true, Scopes: account.AllScopes()})
	c.read()
	return c, s
}

func (s *service) newKey(t *testing.T, p account.KeyParams) string {
	t.Helper()
	p.AccountID = s.account.ID
	_, secret, err := s.engine.Accounts.CreateKey(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// read fetches and validates the document. Answers may have no field that it does not name.
func (c *client) read() {
	c.t.Helper()
	response, err := http.Get(c.base + "/v1/openapi.json")
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.doc, err = openapi3.NewLoader().LoadFromData(raw); err != nil {
		c.t.Fatal(err)
	}
	if err := c.doc.Validate(c.t.Context()); err != nil {
		c.t.Fatalf("the document is not valid OpenAPI: %v", err)
	}
	for _, schema := range c.doc.Components.Schemas {
		if len(schema.Value.Properties) > 0 {
			no := false
			schema.Value.AdditionalProperties.Has = &no
		}
	}
	c.doc.Servers = openapi3.Servers{{URL: c.base}}
	if c.router, err = gorillamux.NewRouter(c.doc); err != nil {
		c.t.Fatal(err)
	}
}

// request is one call; key defaults to the client's key, "-" is none.
type request struct {
	method, path, body, key, idempotency string
}

// do sends a request, checks the exchange against the document, and returns the decoded body.
func (c *client) do(status int, q request) map[string]any {
	c.t.Helper()
	if q.key == "" {
		q.key = c.key
	}
	prepare := func() *http.Request {
		r, err := http.NewRequestWithContext(c.t.Context(), q.method, c.base+q.path, strings.NewReader(q.body))
		if err != nil {
			c.t.Fatal(err)
		}
		if q.body == "" {
			r.Body, r.ContentLength = http.NoBody, 0
		} else {
			r.Header.Set("Content-Type", "application/json")
		}
		if q.key != "-" {
			r.Header.Set("Authorization", "Bearer "+q.key)
		}
		if q.idempotency != "" {
			r.Header.Set("Idempotency-Key", q.idempotency)
		}
		return r
	}
	response, err := http.DefaultClient.Do(prepare())
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if response.StatusCode != status {
		c.t.Fatalf("%s %s: status %d, want %d: %s", q.method, q.path, response.StatusCode, status, body)
	}
	c.check(prepare(), q, response, body)
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

var wordy = regexp.MustCompile(`[^ ,]+`)

func (c *client) check(r *http.Request, q request, response *http.Response, body []byte) {
	c.t.Helper()
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		c.t.Fatalf("%s %s is not in the document: %v", q.method, q.path, err)
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, RejectWhenRequestBodyNotSpecified: true,
	}
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if response.StatusCode == http.StatusOK {
		if err := openapi3filter.ValidateRequest(c.t.Context(), asked); err != nil {
			c.t.Errorf("%s %s was taken although the document forbids it: %v", q.method, q.path, err)
		}
	}
	answered := &openapi3filter.ResponseValidationInput{RequestValidationInput: asked, Status: response.StatusCode, Header: response.Header, Options: options}
	if err := openapi3filter.ValidateResponse(c.t.Context(), answered.SetBodyBytes(body)); err != nil {
		c.t.Errorf("%s %s: the answer is not as documented: %v\n%s", q.method, q.path, err, body)
	}
	id := route.Operation.OperationID
	if c.answered[id] == nil {
		c.answered[id] = map[int]bool{}
	}
	c.answered[id][response.StatusCode] = true
	if response.StatusCode == http.StatusOK {
		return
	}
	var failed struct{ Error struct{ Code string } }
	if err := json.Unmarshal(body, &failed); err != nil {
		c.t.Fatal(err)
	}
	documented := route.Operation.Responses.Status(response.StatusCode)
	if documented == nil || !slices.Contains(wordy.FindAllString(*documented.Value.Description, -1), failed.Error.Code) {
		c.t.Errorf("%s answers %d %s, which its documentation does not name", id, response.StatusCode, failed.Error.Code)
	}
}

func (c *client) get(path string) map[string]any {
	c.t.Helper()
	return c.do(200, request{method: "GET", path: path})
}

func (c *client) post(path, body string) map[string]any {
	c.t.Helper()
	return c.do(200, request{method: "POST", path: path, body: body})
}

func text(v map[string]any, name string) string {
	s, _ := v[name].(string)
	return s
}

func rows(v map[string]any) []map[string]any {
	var out []map[string]any
	data, _ := v["data"].([]any)
	for _, row := range data {
		out = append(out, row.(map[string]any))
	}
	return out
}

// await reads until a condition holds.
func (c *client) await(path string, done func(map[string]any) bool) map[string]any {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		v := c.get(path)
		if done(v) {
			return v
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s stays %v", path, v)
		}
		<-time.After(50 * time.Millisecond)
	}
}

const invoiceBody = `{"price":{"currency":"EUR","amount":"49.90"},"options":[{"asset":"SIM","network":"simnet"}],"order_id":"A-1",
	"customer_email":"payer@example.com","description":"Two chairs","metadata":{"cart":"7"},"tolerance_bps":100,"expires_in":3600,
	"pre_selection_expires_in":600,"success_url":"https://shop.example/ok","cancel_url":"https://shop.example/no"}`

const nobody = "0123456789abcdef01234567" // an id of nothing

// Every operation of the document is called over a real listener; each answer, 200 or error, is as documented.
func TestContract(t *testing.T) {
	c, s := start(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.engine.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	merchant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "thanks") }))
	t.Cleanup(merchant.Close)

	c.do(200, request{method: "GET", path: "/v1/openapi.json", key: "-"})
	c.reference()
	endpoint := c.webhookEndpoints(merchant.URL)
	c.invoices()
	c.deposits()
	c.sendMoney(s)
	c.events(endpoint)
	c.errors()

	var missing []string
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !c.answered[op.OperationID][http.StatusOK] {
				missing = append(missing, method+" "+path+" (200)")
			}
			if op.Responses.Status(http.StatusUnauthorized) != nil && !c.answered[op.OperationID][http.StatusUnauthorized] {
				missing = append(missing, method+" "+path+" (401)")
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("these were not tested:\n%s", strings.Join(missing, "\n"))
	}
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
	id := text(c.post("/v1/webhook_endpoints", `{"url":"`+merchant+`/hook","events":["*"],"description":"all"}`), "id")
	other := text(c.post("/v1/webhook_endpoints", `{"url":"`+merchant+`","events":["invoice.paid","payout.failed"]}`), "id")
	path := "/v1/webhook_endpoints/" + id
	c.get("/v1/webhook_endpoints?limit=1")
	c.get(path)
	c.do(200, request{method: "PATCH", path: path, body: `{"description":"everything","events":["*"],"status":"enabled"}`})
	c.do(400, request{method: "PATCH", path: path, body: `{"status":"failing"}`})
	if got := c.post(path+"/rotate_secret", `{"overlap_hours":1}`); text(got, "secret") == "" || text(got, "previous_secret_expires_at") == "" {
		c.t.Errorf("rotated to %v", got)
	}
	c.post(path+"/rotate_secret", "")
	c.do(400, request{method: "POST", path: path + "/rotate_secret", body: `{"overlap_hours":169}`})
	delivery := text(c.post(path+"/test", ""), "id")
	got := c.await("/v1/webhook_deliveries/"+delivery, func(d map[string]any) bool { return d["status"] == "succeeded" })
	log, _ := got["attempt_log"].([]any)
	if len(log) != 1 || log[0].(map[string]any)["response"] == nil {
		c.t.Errorf("the delivery read by its id is %v", got)
	}
	c.post("/v1/webhook_deliveries/"+delivery+"/resend", "")
	c.get(path + "/deliveries?status=succeeded,pending")
	c.do(200, request{method: "DELETE", path: "/v1/webhook_endpoints/" + other})
	c.do(404, request{method: "GET", path: "/v1/webhook_endpoints/" + other})
	return id
}

func (c *client) invoices() {
	c.t.Helper()
	first := c.do(200, request{method: "POST", path: "/v1/invoices", body: invoiceBody, idempotency: "order-A-1"})
	if again := c.do(200, request{method: "POST", path: "/v1/invoices", body: invoiceBody, idempotency: "order-A-1"}); again["id"] != first["id"] {
		c.t.Errorf("the same key made %v and %v", first["id"], again["id"])
	}
	c.do(422, request{method: "POST", path: "/v1/invoices", body: `{"price":{"currency":"EUR","amount":"1"}}`, idempotency: "order-A-1"})
	id := text(first, "id")
	c.get("/v1/invoices?status=open,paid&network=simnet&order_id=A-1&q=a&created_after=2026-01-01T00:00:00Z&created_before=2100-01-01T00:00:00Z&limit=1")
	c.get("/v1/invoices/" + id)
	paid := c.post("/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"paid"}`)
	if paid["status"] != "paid" {
		c.t.Errorf("simulated as paid: %v", paid)
	}
	list := rows(c.get("/v1/invoices/" + id + "/payments?status=confirmed,detected"))
	if len(list) != 1 {
		c.t.Fatalf("payments %v", list)
	}
	c.get("/v1/payments/" + text(list[0], "id"))
	c.get("/v1/payments?invoice_id=" + id + "&status=confirmed&network=simnet&detected_after=2026-01-01T00:00:00.000Z&detected_before=2100-01-01T00:00:00%2B02:00&q=sim_")
	settlements := rows(c.get("/v1/settlements?invoice_id=" + id + "&status=released,pending&network=simnet"))
	if len(settlements) != 1 {
		c.t.Fatalf("settlements %v", settlements)
	}
	c.get("/v1/settlements/" + text(settlements[0], "id"))
	c.do(409, request{method: "POST", path: "/v1/invoices/" + id + "/accept_late_payment"})

	// A crypto invoice with two options: chosen, then canceled, then paid late and accepted.
	crypto := c.post("/v1/invoices", `{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000"},{"asset":"USDX","network":"simnet","amount":"2000000"}]}`)
	cryptoID := text(crypto, "id")
	option, _ := crypto["options"].([]any)[1].(map[string]any)
	c.post("/v1/invoices/"+cryptoID+"/options/"+text(option, "id")+"/select", "")
	c.do(404, request{method: "POST", path: "/v1/invoices/" + cryptoID + "/options/" + nobody + "/select"})
	c.do(409, request{method: "POST", path: "/v1/invoices/" + cryptoID + "/accept"})
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
	id := text(c.post("/v1/deposit_addresses", `{"network":"simnet","name":"customer 7","metadata":{"tier":"gold"}}`), "id")
	path := "/v1/deposit_addresses/" + id
	c.get("/v1/deposit_addresses?status=active&network=simnet&q=cust")
	c.get(path)
	c.do(200, request{method: "PATCH", path: path, body: `{"name":"customer 8","metadata":{},"status":"disabled"}`})
	c.do(400, request{method: "PATCH", path: path, body: `{"network":"simnet"}`})
	p := c.post("/v1/test/deposit_addresses/"+id+"/simulate_payment", `{"asset":"USDX","amount":"5000000","outcome":"confirmed"}`)
	if p["settlement"] == nil {
		c.t.Errorf("a confirmed payment without its settlement: %v", p)
	}
	c.do(422, request{method: "POST", path: "/v1/test/deposit_addresses/" + id + "/simulate_payment", body: `{"asset":"GOLD","amount":"1","outcome":"confirmed"}`})
	c.get(path + "/payments?status=confirmed")
}

func (c *client) sendMoney(s *service) {
	c.t.Helper()
	master, err := s.engine.Outbox.Master(c.t.Context(), "simnet", s.account.Index)
	if err != nil {
		c.t.Fatal(err)
	}
	s.network.Fund(master.Address, "SIM", chain.Pow10(19))
	s.network.Mine(5)
	pay := request{
		method: "POST", path: "/v1/payouts", key: c.sending, idempotency: "rent",
		body: `{"asset":"SIM","network":"simnet","amount":"1000000000000000","destination":"` + s.payee + `","memo":"rent"}`,
	}
	id := text(c.do(200, pay), "id")
	c.get("/v1/payouts?status=pending,processing,included,confirmed,failed&network=simnet&q=" + id)
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
	pay.key, pay.body = c.sending, strings.Replace(pay.body, "1000000000000000", "1"+strings.Repeat("0", 30), 1)
	c.do(422, pay)

	// What a simulated payment brought is refunded, simulated too.
	inv := text(c.post("/v1/invoices", invoiceBody), "id")
	c.post("/v1/test/invoices/"+inv+"/simulate_payment", `{"outcome":"paid"}`)
	refund := c.do(200, request{
		method: "POST", path: "/v1/refunds", key: c.sending, idempotency: "refund",
		body: `{"invoice_id":"` + inv + `","amount":"1000","destination":"` + s.payee + `","reason":"broken","metadata":{"case":"1"}}`,
	})
	c.get("/v1/refunds/" + text(refund, "id"))
	c.get("/v1/refunds?status=succeeded,pending&invoice_id=" + inv)
	c.do(409, request{method: "POST", path: "/v1/refunds/" + text(refund, "id") + "/cancel"})
	c.do(422, request{
		method: "POST", path: "/v1/refunds", key: c.sending, idempotency: "too-much",
		body: `{"invoice_id":"` + inv + `","amount":"1` + strings.Repeat("0", 40) + `","destination":"` + s.payee + `"}`,
	})
}

// cancelUnsigned cancels a payout, and a refund of money that really came, while the network keeps the outbox waiting.
func (c *client) cancelUnsigned(s *service) {
	c.t.Helper()
	inv := c.post("/v1/invoices", `{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000"}]}`)
	option, _ := inv["options"].([]any)[0].(map[string]any)
	s.network.Pay(chain.Address(text(option, "address")), "SIM", chain.Pow10(15))
	c.await("/v1/invoices/"+text(inv, "id"), func(inv map[string]any) bool {
		s.network.Mine(1)
		return inv["status"] == "paid"
	})
	s.network.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBuild {
			return sim.Unavailable()
		}
		return nil
	})
	defer s.network.SetIntercept(nil)
	p := c.do(200, request{
		method: "POST", path: "/v1/payouts", key: c.sending, idempotency: "stop",
		body: `{"asset":"SIM","network":"simnet","amount":"1000000000000000","destination":"` + s.payee + `"}`,
	})
	if got := c.post("/v1/payouts/"+text(p, "id")+"/cancel", ""); got["status"] != "failed" || got["failure_code"] != "canceled" {
		c.t.Errorf("canceled: %v", got)
	}
	r := c.do(200, request{
		method: "POST", path: "/v1/refunds", key: c.sending, idempotency: "stop-refund",
		body: `{"invoice_id":"` + text(inv, "id") + `","destination":"` + s.payee + `"}`,
	})
	c.get("/v1/payouts/" + text(r, "payout_id"))
	if got := c.post("/v1/refunds/"+text(r, "id")+"/cancel", ""); got["status"] != "canceled" {
		c.t.Errorf("canceled: %v", got)
	}
}

func (c *client) events(endpoint string) {
	c.t.Helper()
	list := rows(c.get("/v1/events?limit=100"))
	types := map[string]bool{}
	for _, e := range list {
		types[text(e, "type")] = true
	}
	for _, want := range []string{"invoice.created", "invoice.paid", "deposit.payment_confirmed", "settlement.released", "payout.created", "refund.succeeded"} {
		if !types[want] {
			c.t.Errorf("no event %s among %v", want, slices.Sorted(maps.Keys(types)))
		}
	}
	id := text(list[0], "id")
	c.get("/v1/events/" + id)
	c.get("/v1/events?type=invoice.paid,invoice.created&created_after=2026-01-01T00:00:00Z&object_id=" + nobody)
	if made := rows(c.post("/v1/events/"+id+"/resend", "")); len(made) != 1 || made[0]["webhook_endpoint_id"] != endpoint {
		c.t.Errorf("resent to %v", made)
	}
	c.get("/v1/events/" + id + "/deliveries?limit=1")
}

// errors provokes what every operation may refuse: no key, a key that may not, nothing there, an unknown parameter.
func (c *client) errors() {
	c.t.Helper()
	for path, item := range c.doc.Paths.Map() {
		path = strings.ReplaceAll(strings.ReplaceAll(path, "{id}", nobody), "{option_id}", nobody)
		for method, op := range item.Operations() {
			if op.Responses.Status(http.StatusUnauthorized) == nil {
				continue
			}
			q := request{method: method, path: path, idempotency: "errors/" + op.OperationID}
			q.key = "-"
			c.do(401, q)
			q.key = "pay_test_sk_unknown"
			c.do(401, q)
			if op.Extensions["x-publishable-key"] == nil {
				q.key = c.public
				c.do(403, q)
			}
			q.key = c.key
			if strings.HasPrefix(path, "/v1/test/") {
				q.key = c.live
				c.do(403, q)
				q.key = c.key
			}
			unknown := q
			unknown.path += "?colour=red"
			c.do(400, unknown)
			if method == http.MethodPost {
				bad := q
				bad.idempotency = "with space"
				c.do(400, bad)
			}
			if method != http.MethodGet {
				bad := q
				bad.body = `{"colour":"red"}`
				c.do(400, bad)
				bad.body = `{"colour":`
				c.do(400, bad)
			}
			if method == http.MethodGet && strings.Contains(path, nobody) {
				c.do(404, q)
			}
		}
	}
}
