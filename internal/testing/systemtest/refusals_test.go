package systemtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

const (
	cryptoBody   = `{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000"}]}`
	twoOptions   = `"options":[{"asset":"SIM","network":"simnet"},{"asset":"USDX","network":"simnet"}]`
	farTooLittle = `{"price":{"currency":"EUR","amount":"0.00000001"},` + twoOptions + `}`
)

// made creates an invoice and returns its path and those to select its options.
func (c *client) made(body string) (path string, selects []string) {
	c.t.Helper()
	inv := c.post("/v1/invoices", body)
	path = "/v1/invoices/" + text(inv, "id")

	options, _ := inv["options"].([]any)
	for _, o := range options {
		selects = append(selects, path+"/options/"+text(o.(map[string]any), "id")+"/select")
	}

	return path, selects
}

func (c *client) simulate(path, outcome string) {
	c.t.Helper()
	c.post("/v1/test"+strings.TrimPrefix(path, "/v1")+"/simulate_payment", `{"outcome":"`+outcome+`"}`)
}

// refusedInvoices provokes what invoices may refuse.
func (c *client) refusedInvoices(s *service) {
	c.t.Helper()

	create := func(status int, code, body string) {
		c.t.Helper()
		c.refuse(status, code, request{method: "POST", path: "/v1/invoices", body: body})
	}
	create(422, "asset_not_enabled", strings.ReplaceAll(cryptoBody, "SIM", "GOLD"))
	create(422, "amount_too_small", strings.ReplaceAll(cryptoBody, "1000000000000000", "1"))

	post := func(status int, code, path string) {
		c.t.Helper()
		c.refuse(status, code, request{method: "POST", path: path})
	}
	simulate := func(status int, code, path, outcome string) {
		c.t.Helper()
		c.refuse(
			status,
			code,
			request{
				method: "POST",
				path:   "/v1/test" + strings.TrimPrefix(path, "/v1") + "/simulate_payment",
				body:   `{"outcome":"` + outcome + `"}`,
			},
		)
	}

	open, selects := c.made(invoiceBody)
	post(409, "invoice_has_no_payment", open+"/accept")
	post(409, "invoice_not_late", open+"/accept_late_payment")
	c.simulate(open, "detected")

	for _, action := range []string{open + "/cancel", open + "/accept", selects[0]} {
		post(409, "invoice_payment_pending", action)
	}

	simulate(409, "invoice_payment_pending", open, "late")

	canceled, selects := c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)
	c.post(canceled+"/cancel", "")
	post(409, "invoice_has_no_payment", canceled+"/accept_late_payment")
	post(409, "invoice_not_open", selects[0])
	simulate(409, "invoice_not_open", canceled, "paid")

	refunded, _ := c.made(invoiceBody)
	c.simulate(refunded, "paid")
	post(409, "invoice_not_open", refunded+"/cancel")
	c.do(200, c.refunding(s, "invoice_id", refunded[len("/v1/invoices/"):], "", "whole"))
	post(409, "invoice_refunded", refunded+"/accept")
	post(409, "invoice_refunded", refunded+"/accept_late_payment")

	path, selects := c.made(farTooLittle)
	post(422, "amount_too_small", selects[0])
	simulate(422, "amount_too_small", path, "paid")

	path, selects = c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)

	s.pass(2 * time.Hour) // nobody marks it as expired, for no engine runs
	post(409, "invoice_expired", selects[0])
	simulate(409, "invoice_expired", path, "paid")

	path, selects = c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)
	s.noPrices(c.t, "ETH/USD", "ETH/EUR", "USDC/USD", "USDC/EUR")
	create(503, "price_unavailable", invoiceBody)
	post(503, "price_unavailable", selects[0])
	simulate(503, "price_unavailable", path, "paid")
	c.refuse(503, "price_unavailable", request{method: "GET", path: "/v1/rates?base=SIM"})
	s.setPrices(c.t)

	// An asset that nobody prices.
	network := sim.DefaultNetwork()
	network.Assets[0].Price = "NOBODY"
	other := c.at(s, sim.New(sim.Config{Network: network}), nil)
	other.refuse(422, "currency_unsupported", request{method: "GET", path: "/v1/rates?base=SIM"})
}

// noPrices takes the prices of pairs away, and lets those that are remembered grow old.
func (s *service) noPrices(t *testing.T, pairs ...string) {
	t.Helper()

	for _, pair := range pairs {
		if err := s.prices.Set(pair, ""); err != nil {
			t.Fatal(err)
		}
	}

	s.pass(time.Hour)
}

// setPrices gives the prices back.
func (s *service) setPrices(t *testing.T) {
	t.Helper()

	for pair, price := range map[string]string{
		"ETH/USD":  "2500",
		"ETH/EUR":  "2300",
		"USDC/USD": "1",
		"USDC/EUR": "0.92",
	} {
		if err := s.prices.Set(pair, price); err != nil {
			t.Fatal(err)
		}
	}

	s.pass(time.Hour)
}

func (s *service) paying(c *client, key string) request {
	return request{
		method:      "POST",
		path:        "/v1/payouts",
		key:         c.sending,
		idempotency: key,
		body:        `{"asset":"SIM","network":"simnet","amount":"1000000000000000","destination":"` + s.payee + `"}`,
	}
}

// refunding is a request for a refund of an invoice or a payment; amount may be "".
func (c *client) refunding(s *service, what, id, amount, key string) request {
	body := map[string]string{what: id, "destination": s.payee}
	if amount != "" {
		body["amount"] = amount
	}

	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}

	return request{method: "POST", path: "/v1/refunds", key: c.sending, idempotency: key, body: string(raw)}
}

// refusedMoney provokes what payouts and refunds may refuse.
func (c *client) refusedMoney(s *service) {
	c.t.Helper()

	master, err := internal.Of(s.engine).Transactions.MasterWallet(c.t.Context(), "simnet", s.account.Index)
	if err != nil {
		c.t.Fatal(err)
	}

	s.network.Fund(master.Address, "SIM", chain.Pow10(19))
	s.network.Mine(5)

	c.refusedDestination(s)
	c.refusedApproval(s)

	invoice, _ := c.made(invoiceBody)
	c.simulate(invoice, "paid")
	invoiceID := invoice[len("/v1/invoices/"):]

	pay, refund := s.paying(c, "pay"), c.refunding(s, "invoice_id", invoiceID, "1000", "refund")
	for _, q := range []request{pay, refund} {
		change := func(status int, code, name, value string) {
			c.t.Helper()

			changed := q

			var body map[string]string
			if err := json.Unmarshal([]byte(q.body), &body); err != nil {
				c.t.Fatal(err)
			}

			body[name] = value

			raw, err := json.Marshal(body)
			if err != nil {
				c.t.Fatal(err)
			}

			changed.body, changed.idempotency = string(raw), q.idempotency+code
			c.refuse(status, code, changed)
		}
		change(422, "amount_too_small", "amount", "0")
		change(422, "destination_invalid", "destination", "nowhere")

		change(403, "destination_not_allowed", "destination", string(s.network.NewAddress()))

		without := q
		without.key = c.key
		c.refuse(403, "payout_allowlist_required", without)

		if q.path == "/v1/payouts" {
			change(422, "asset_not_enabled", "asset", "GOLD")
			change(422, "insufficient_balance", "amount", "1"+strings.Repeat("0", 30))
		} else {
			change(422, "refund_exceeds_payment", "amount", "1"+strings.Repeat("0", 40))
		}
	}

	id := text(c.do(200, pay), "id")
	for i := range 6 {
		c.do(200, s.paying(c, "pay"+string(rune('a'+i))))
	}

	c.refuse(429, "payout_limit_exceeded", s.paying(c, "one-too-many"))
	c.post("/v1/payouts/"+id+"/cancel", "")

	unpaid, _ := c.made(invoiceBody)
	c.refuse(404, "resource_missing", c.refunding(s, "invoice_id", nobody, "", "nobody"))
	c.refuse(
		409, "refund_no_payment",
		c.refunding(s, "invoice_id", unpaid[len("/v1/invoices/"):], "", "unpaid"),
	)

	twice, _ := c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)
	for _, option := range c.get(twice)["options"].([]any) {
		c.post(
			"/v1/test"+strings.TrimPrefix(twice, "/v1")+"/simulate_payment",
			`{"outcome":"paid","amount":"1000000000000000","option_id":"`+text(
				option.(map[string]any), "id",
			)+`"}`,
		)
	}

	c.refuse(
		422, "refund_payment_required",
		c.refunding(s, "invoice_id", twice[len("/v1/invoices/"):], "", "twice"),
	)

	// Where the asset that was received is not enabled any more.
	network := sim.DefaultNetwork()
	network.Assets = network.Assets[:1]
	dollars, _ := c.made(`{"options":[{"asset":"USDX","network":"simnet","amount":"1000000"}]}`)
	c.simulate(dollars, "paid")
	other := c.at(s, sim.New(sim.Config{Network: network}), nil)
	other.refuse(
		422, "asset_not_enabled",
		other.refunding(s, "invoice_id", dollars[len("/v1/invoices/"):], "1000", "gone"),
	)
}

// refusedWebhooks provokes what endpoints may refuse.
func (c *client) refusedWebhooks() {
	c.t.Helper()
	event := text(rows(c.get("/v1/events?type=invoice.created&limit=1"))[0], "id")
	c.refuse(409, "webhook_endpoint_none", request{method: "POST", path: "/v1/events/" + event + "/resend"})

	const body = `{"url":"http://127.0.0.1:1/","events":["*"]}`

	path := "/v1/webhook_endpoints/" + text(c.post("/v1/webhook_endpoints", body), "id")
	delivery := text(c.post(path+"/test", ""), "id")
	c.refuse(
		422,
		"url_not_allowed",
		request{
			method: "POST",
			path:   "/v1/webhook_endpoints",
			body:   strings.ReplaceAll(body, "127.0.0.1", "10.0.0.1"),
		},
	)
	c.refuse(
		422, "url_not_allowed",
		request{method: "PATCH", path: path, body: `{"url":"http://169.254.169.254/"}`},
	)
	c.do(200, request{method: "PATCH", path: path, body: `{"status":"disabled"}`})
	c.refuse(409, "webhook_endpoint_disabled", request{method: "POST", path: path + "/test"})
	c.refuse(
		409, "webhook_endpoint_disabled",
		request{method: "POST", path: "/v1/webhook_deliveries/" + delivery + "/resend"},
	)

	for range 15 {
		c.post("/v1/webhook_endpoints", body)
	}

	c.refuse(
		409, "webhook_endpoint_limit_exceeded",
		request{method: "POST", path: "/v1/webhook_endpoints", body: body},
	)

	for _, e := range rows(c.get("/v1/webhook_endpoints?limit=100")) {
		c.do(200, request{method: "DELETE", path: "/v1/webhook_endpoints/" + text(e, "id")})
	}

	deposit := text(c.post("/v1/deposit_addresses", `{"network":"simnet"}`), "id")
	c.refuse(422, "asset_not_enabled", request{
		method: "POST",
		path:   "/v1/test/deposit_addresses/" + deposit + "/simulate_payment",
		body:   `{"asset":"GOLD","amount":"1","outcome":"confirmed"}`,
	})
	c.refuse(422, "amount_too_small", request{
		method: "POST",
		path:   "/v1/test/deposit_addresses/" + deposit + "/simulate_payment",
		body:   `{"asset":"SIM","amount":"0","outcome":"confirmed"}`,
	})
}

// refusers are keys that are refused, by error code.
type refusers struct{ expired, revoked, elsewhere, slow, scopeless string }

func (s *service) refusers(t *testing.T) refusers {
	t.Helper()
	k := refusers{
		elsewhere: s.newKey(
			t, account.KeyParams{Scopes: account.AllScopes(), AllowedIPs: []string{"192.0.2.1"}},
		),
		scopeless: s.newKey(t, account.KeyParams{Scopes: []account.Scope{}}),
	}
	end := func(end func(id string) error) (secret string) {
		t.Helper()

		key, secret, err := s.engine.Accounts.CreateKey(
			t.Context(), account.KeyParams{AccountID: s.account.ID},
		)
		if err != nil {
			t.Fatal(err)
		}

		if err := end(key.ID); err != nil {
			t.Fatal(err)
		}

		return secret
	}
	k.revoked = end(func(id string) error {
		_, err := s.engine.Accounts.RevokeKey(t.Context(), s.account.ID, id)
		return err
	})
	k.expired = end(func(id string) error {
		_, _, err := s.engine.Accounts.RollKey(t.Context(), s.account.ID, id, 0)
		return err
	})

	slow, err := s.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{RequestsPerSecond: 1, RequestBurst: 1},
	)
	if err != nil {
		t.Fatal(err)
	}

	k.slow = s.newKey(t, account.KeyParams{AccountID: slow.ID, Scopes: account.AllScopes()})

	return k
}

// refusedByAll provokes what every operation may refuse, and what the document says that many may.
func (c *client) refusedByAll(s *service) {
	c.t.Helper()
	keys, known := s.refusers(c.t), c.known(s)
	c.do(200, request{method: "POST", path: "/v1/invoices", body: cryptoBody, idempotency: "taken"})

	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			q := request{
				method:      method,
				path:        strings.NewReplacer("{id}", nobody, "{option_id}", nobody).Replace(path),
				idempotency: "refused/" + op.OperationID,
			}
			there, ok := known[op.OperationID]

			q.body = there.body
			switch {
			case ok && method == http.MethodGet:
				q.path = there.path
			case there.path == "":
				there.path = q.path
			}

			there.method, there.key, there.idempotency = method, c.sending, q.idempotency+"/there"
			c.refusedByOne(s, keys, op, q, there)
		}
	}
}

// refusedByOne provokes what one operation may refuse: with a request about nothing, and with one
// about something there is, for what is found out only on the way.
func (c *client) refusedByOne(s *service, keys refusers, op *openapi3.Operation, q, there request) {
	c.t.Helper()

	with := func(q request, change func(q *request)) request {
		change(&q)
		return q
	}
	key := func(key string) request { return with(q, func(q *request) { q.key = key }) }

	c.refuse(
		400, "parameter_unknown",
		with(q, func(q *request) { q.path, q.key = addQuery(q.path, "colour=red"), c.key }),
	)
	c.refuse(400, "parameter_invalid", with(q, func(q *request) { q.path = addQuery(q.path, "colour=%zz") }))

	if op.Responses.Status(http.StatusUnauthorized) == nil {
		return
	}

	c.refuse(401, "api_key_required", key("-"))
	c.refuse(401, "api_key_invalid", key("pay_test_sk_unknown"))
	c.refuse(401, "api_key_expired", key(keys.expired))
	c.refuse(401, "api_key_revoked", key(keys.revoked))
	c.refuse(403, "ip_not_allowed", key(keys.elsewhere))
	c.exhaust(key(keys.slow))

	if op.Extensions["x-publishable-key"] == nil {
		c.refuse(403, "publishable_key_not_allowed", key(c.public))
	}

	if op.Extensions["x-scope"] != nil {
		c.refuse(403, "scope_missing", key(keys.scopeless))
	}

	if strings.HasPrefix(q.path, "/v1/test/") {
		c.refuse(403, "test_mode_only", key(c.live))
	}
	// a key that nobody remembers
	fresh := with(q, func(q *request) { q.key = s.newKey(c.t, account.KeyParams{}) })
	c.refuse(500, "internal_error", with(fresh, func(q *request) { q.trouble = "broken" }))
	c.refuse(503, "service_unavailable", with(fresh, func(q *request) { q.trouble = "down" }))

	if strings.Contains(q.path, nobody) {
		c.refuse(404, "resource_missing", key(c.sending))
	}

	if slices.Contains(documented(op), "400 parameter_missing") {
		c.refuse(400, "parameter_missing", with(q, func(q *request) {
			q.path, _, _ = strings.Cut(q.path, "?")
			if q.body != "" {
				q.body = "{}"
			}
		}))
	}

	if q.method == http.MethodGet {
		return
	}

	c.refuse(400, "body_invalid", with(q, func(q *request) { q.body = "{" }))
	c.refuse(400, "parameter_unknown", with(q, func(q *request) { q.body = `{"colour":"red"}` }))
	c.refuse(
		413, "body_too_large",
		with(q, func(q *request) { q.body = `{"colour":"` + strings.Repeat("d", 600<<10) + `"}` }),
	)
	c.refuse(
		415, "content_type_unsupported",
		with(q, func(q *request) { q.body, q.kind = `{}`, "text/plain" }),
	)
	c.refuse(409, "changed_meanwhile", with(there, func(q *request) { q.trouble = "conflict" }))

	if q.method == http.MethodPost {
		c.refusedKeys(s, op, q, there)
	}
}

// refusedKeys provokes what a POST may refuse because of its Idempotency-Key.
func (c *client) refusedKeys(s *service, op *openapi3.Operation, q, there request) {
	c.t.Helper()

	q.key = c.sending
	for code, key := range map[string]string{"idempotency_key_invalid": "with space", "idempotency_key_required": ""} {
		bad := q

		bad.idempotency = key
		if slices.Contains(documented(op), "400 "+code) {
			c.refuse(400, code, bad)
		}
	}

	taken := there

	taken.idempotency = "taken"
	if op.OperationID == "createInvoice" {
		taken.body = invoiceBody
	}

	c.refuse(422, "idempotency_key_reused", taken)

	scope, _ := op.Extensions["x-scope"].(string)
	taken.key = s.newKey(
		c.t,
		account.KeyParams{
			Scopes:       []account.Scope{account.Scope(scope)},
			Destinations: []chain.Destination{{Address: chain.Address(s.payee)}},
		},
	)
	c.refuse(403, "idempotency_key_not_yours", taken)

	there.trouble = "busy"
	c.refuse(409, "idempotency_request_in_progress", there)
}

// exhaust sends a request until its key has made too many.
func (c *client) exhaust(q request) {
	c.t.Helper()

	for range 100 {
		if status, code, _ := c.send(q); status == http.StatusTooManyRequests && code == "rate_limited" {
			return
		}
	}

	c.t.Errorf("%s %s is never limited", q.method, q.path)
}

func addQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}

	return path + "?" + query
}

// known are requests that operations understand, by operation: the body, and where a change is
// prepared by reading what it is about, the path of something that is there.
func (c *client) known(s *service) map[string]request {
	c.t.Helper()
	invoice, _ := c.made(invoiceBody)
	c.simulate(invoice, "paid")
	open, selects := c.made(`{"price":{"currency":"EUR","amount":"5"},` + twoOptions + `}`)
	deposit := text(c.post("/v1/deposit_addresses", `{"network":"simnet"}`), "id")

	return map[string]request{
		"getRate":       {path: "/v1/rates?base=SIM"},
		"createInvoice": {body: cryptoBody},
		"selectOption":  {path: selects[0]},
		"simulateInvoicePayment": {
			path: "/v1/test" + strings.TrimPrefix(open, "/v1") + "/simulate_payment",
			body: `{"outcome":"paid"}`,
		},
		"simulateDepositPayment": {
			path: "/v1/test/deposit_addresses/" + deposit + "/simulate_payment",
			body: `{"asset":"SIM","amount":"1","outcome":"confirmed"}`,
		},
		"createDepositAddress": {body: `{"network":"simnet"}`},
		"updateDepositAddress": {body: `{"name":"n"}`},
		"createPayout":         {body: s.paying(c, "").body},
		"createRefund": {
			body: c.refunding(s, "invoice_id", invoice[len("/v1/invoices/"):], "1", "").body,
		},
		"createWebhookEndpoint": {body: `{"url":"http://127.0.0.1:1/","events":["*"]}`},
		"updateWebhookEndpoint": {body: `{"description":"d"}`},
		"rotateWebhookSecret":   {body: `{"overlap_hours":1}`},
	}
}

// refusedDestination provokes the refusals of an asset that cannot be sent, and of a destination that cannot receive
// it: of a payout, and of a refund of a payment on the network.
func (c *client) refusedDestination(s *service) {
	c.t.Helper()

	follow := func() {
		for range 10 {
			s.network.Mine(1)

			if _, err := s.engine.Step(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	follow()

	path, _ := c.made(cryptoBody)
	option := c.get(path)["options"].([]any)[0].(map[string]any)
	s.network.Pay(chain.Address(text(option, "address")), "SIM", chain.MustAmount(text(option, "amount_due")))
	follow()

	refuseBoth := func(code string) {
		c.refuse(422, code, s.paying(c, code))
		c.refuse(422, code, c.refunding(s, "invoice_id", path[len("/v1/invoices/"):], "1000", code+"-refund"))
	}

	unsafe := fault.New(fault.Stopped, wallet.FailTokenUnsafe, "the issuer set a transfer hook")
	s.network.FailNext(sim.MethodEstimateFee, unsafe, 2)
	refuseBoth("token_unsafe")

	s.network.Freeze(chain.Address(s.payee), "SIM", true)
	defer s.network.Freeze(chain.Address(s.payee), "SIM", false)

	refuseBoth("destination_not_payable")
}

// refusedApproval provokes what the approval of a payout may refuse, and approves one.
func (c *client) refusedApproval(s *service) {
	c.t.Helper()

	set := func(above *decimal.Decimal, only ...chain.Destination) {
		settings := s.account.Settings
		settings.ApproveAboveUSD, settings.Destinations = above, only

		if _, err := s.engine.Accounts.UpdateSettings(c.t.Context(), s.account.ID, settings); err != nil {
			c.t.Fatal(err)
		}
	}
	approver := func() string {
		return s.newKey(c.t, account.KeyParams{
			Scopes:       account.AllScopes(),
			Destinations: []chain.Destination{{Network: "simnet", Address: chain.Address(s.payee)}},
		})
	}
	approve := func(id, key string) request {
		return request{method: "POST", path: "/v1/payouts/" + id + "/approve", key: key}
	}

	set(new(decimal.Decimal))

	pay, second := s.paying(c, "to-approve"), approver()
	pay.key = approver()
	waits := text(c.do(200, pay), "id")

	pay.idempotency = "canceled"
	canceled := text(c.do(200, pay), "id")

	set(nil, chain.Destination{Address: s.network.NewAddress()})
	c.refuse(403, "destination_not_allowed", approve(waits, second))
	set(nil)

	c.refuse(403, "approval_by_requester", approve(waits, pay.key))
	c.do(200, approve(waits, second))
	c.post("/v1/payouts/"+waits+"/cancel", "")
	c.post("/v1/payouts/"+canceled+"/cancel", "")
	c.refuse(409, "payout_not_pending", approve(canceled, second))

	free := text(c.do(200, s.paying(c, "free")), "id")
	c.refuse(409, "payout_approval_not_required", approve(free, second))
	c.post("/v1/payouts/"+free+"/cancel", "")
}
