package httpapi_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
)

// fund puts coins into the shop's master wallet.
func (s *shop) fund(t testing.TB, symbol string, amount chain.Amount) {
	t.Helper()

	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), "simnet", s.account.Index)
	if err != nil {
		t.Fatal(err)
	}

	s.network.Fund(master.Address, symbol, amount)
	s.network.Mine(5)
}

func payoutBody(asset, amount, destination string) string {
	return `{"asset":"` + asset + `","network":"simnet","amount":"` + amount + `","destination":"` +
		destination + `","memo":"rent"}`
}

func TestPayoutNeedsAKeyAndAnAllowlist(t *testing.T) {
	s := open(t, nil)
	s.fund(t, "SIM", chain.Pow10(20))
	there, elsewhere := string(s.network.NewAddress()), string(s.network.NewAddress())
	held := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})
	atHome := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), AllowedIPs: []string{"192.0.2.1"}})
	unscoped := s.newKey(t, account.KeyParams{Destinations: destinations(there)})
	pay := func(key, body, idempotency string) reply {
		q := request{method: "POST", path: "/v1/payouts", key: key, body: body}
		if idempotency != "" {
			q.header = header("Idempotency-Key", idempotency)
		}

		return s.do(t, q)
	}

	amount := "1000000000000000000"
	for _, test := range []struct {
		name   string
		r      reply
		status int
		code   string
	}{
		{"no idempotency key", pay(held, payoutBody("SIM", amount, there), ""), 400, "idempotency_key_required"},
		{"no allowlist", pay(s.key, payoutBody("SIM", amount, there), "a"), 403, "payout_allowlist_required"},
		{"no scope", pay(unscoped, payoutBody("SIM", amount, there), "a"), 403, "scope_missing"},
		{"another destination", pay(held, payoutBody("SIM", amount, elsewhere), "b"), 403, "destination_not_allowed"},
		{"no address", pay(held, payoutBody("SIM", amount, "nowhere"), "c"), 422, "destination_invalid"},
		{"unknown asset", pay(held, payoutBody("GOLD", amount, there), "d"), 422, "asset_not_enabled"},
		{"nothing", pay(held, payoutBody("SIM", "0", there), "e"), 422, "amount_too_small"},
		{
			"too much",
			pay(held, payoutBody("SIM", "1"+strings.Repeat("0", 30), there), "f"),
			422,
			"insufficient_balance",
		},
		{
			"a token that is not there",
			pay(held, payoutBody("USDX", "1000000", there), "g"),
			422,
			"insufficient_balance",
		},
	} {
		if f := test.r.refused(t, test.status); f.Code != test.code {
			t.Errorf("%s: %+v", test.name, f)
		}
	}

	first := s.ok(t, pay(held, payoutBody("SIM", amount, there), "pay"))
	if first["status"] != "pending" || first["amount"] != amount || first["destination"] != there ||
		first["memo"] != "rent" ||
		first["requested_by"].(map[string]any)["type"] != "apiKey" {
		t.Errorf("%v", first)
	}

	if again := s.ok(t, pay(held, payoutBody("SIM", amount, there), "pay")); again["id"] != first["id"] {
		t.Errorf("a second payout %v", again)
	}

	s.ok(t, pay(atHome, payoutBody("SIM", amount, elsewhere), "home")) // httptest's peer is 192.0.2.1
	s.do(t, request{
		method: "POST",
		path:   "/v1/payouts",
		key:    atHome,
		remote: "198.51.100.9:1",
		header: header("Idempotency-Key", "away"),
		body:   payoutBody("SIM", amount, elsewhere),
	}).refused(t, 403)

	// Money that comes makes a refused request possible: the refusal was not remembered.
	s.fund(t, "USDX", chain.Units(5_000_000))
	s.ok(t, pay(held, payoutBody("USDX", "1000000", there), "g"))

	if list := s.get(t, "/v1/payouts?status=pending&network=simnet")["data"].([]any); len(list) != 3 {
		t.Errorf("%d payouts listed, want 3", len(list))
	}

	id := first["id"].(string)

	canceled := s.ok(t, s.do(t, request{method: "POST", path: "/v1/payouts/" + id + "/cancel", key: held}))
	if canceled["status"] != "failed" || canceled["failure_code"] != "canceled" ||
		s.get(t, "/v1/payouts/"+id)["status"] != "failed" {
		t.Errorf("%v", canceled)
	}
}

// TestPayoutsPerHourAreLimited: Retry-After is when one more is accepted.
func TestPayoutsPerHourAreLimited(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := openAt(t, nil, func() time.Time { return now })
	s.fund(t, "SIM", chain.Pow10(21))
	there := string(s.network.NewAddress())

	key := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})
	sent := 0
	pay := func() reply {
		sent++

		return s.do(t, request{
			method: "POST",
			path:   "/v1/payouts",
			key:    key,
			body:   payoutBody("SIM", "1000000000000000", there),
			header: header("Idempotency-Key", strconv.Itoa(sent)),
		})
	}

	for range 10 {
		s.ok(t, pay())

		now = now.Add(time.Minute)
	}

	// The refused one is accepted once the oldest of the last ten, or five, is more than an hour old.
	for _, refused := range []struct{ limit, minutes int }{{10, 50}, {5, 55}} {
		s.set(t, account.Settings{PayoutsPerHour: refused.limit})

		r := pay()
		f, after := r.refused(t, http.StatusTooManyRequests), r.header.Get("Retry-After")

		if f.Code != "payout_limit_exceeded" || f.Type != "rate_limited" ||
			after != strconv.Itoa(refused.minutes*60+1) {
			t.Errorf("with a limit of %d: %+v, Retry-After %s", refused.limit, f, after)
		}
	}

	now = now.Add(55 * time.Minute)

	pay().refused(t, http.StatusTooManyRequests)

	now = now.Add(time.Second)

	s.ok(t, pay())
}

func TestBalances(t *testing.T) {
	s := open(t, nil)

	empty := s.get(t, "/v1/balances")["data"].([]any)
	for _, row := range empty {
		if b := row.(map[string]any); b["balance"] != "0" || b["available"] != "0" || b["address"] == "" {
			t.Errorf("an account without money has %v", b)
		}
	}

	if len(empty) != 2 {
		t.Errorf("%d balances on a network with two assets", len(empty))
	}

	s.fund(t, "SIM", chain.Units(5_000_000_000_000_000_000))
	s.fund(t, "USDX", chain.Units(9_000_000))
	there := string(s.network.NewAddress())
	key := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})
	p := s.ok(
		t,
		s.do(
			t,
			request{
				method: "POST",
				path:   "/v1/payouts",
				key:    key,
				body:   payoutBody("USDX", "2000000", there),
				header: header("Idempotency-Key", "k"),
			},
		),
	)
	first := s.get(t, "/v1/balances?limit=1&network=simnet")
	second := s.get(t, "/v1/balances?limit=1&network=simnet&starting_after="+first["next_cursor"].(string))
	byAsset := map[string]map[string]any{}

	for _, list := range []any{first["data"], second["data"]} {
		for _, row := range list.([]any) {
			byAsset[row.(map[string]any)["asset"].(string)] = row.(map[string]any)
		}
	}

	if b := byAsset["USDX"]; b["balance"] != "9000000" || b["reserved"] != "2000000" ||
		b["available"] != "7000000" {
		t.Errorf("USDX: %v", b)
	}

	if b := byAsset["SIM"]; b["balance"] != "5000000000000000000" || b["reserved"] != p["max_network_fee"] {
		t.Errorf("SIM: %v, network fee at most %v", b, p["max_network_fee"])
	}
}

func TestRefundOfWhatWasNeverReceived(t *testing.T) {
	s := open(t, nil)
	there := string(s.network.NewAddress())
	key := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})
	inv := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	refund := func(key, body string) reply {
		return s.do(
			t,
			request{
				method: "POST",
				path:   "/v1/refunds",
				key:    key,
				body:   body,
				header: header("Idempotency-Key", "k"+body[:40]),
			},
		)
	}
	refund(s.key, `{"invoice_id":"`+inv+`","destination":"`+there+`"}`).refused(t, 403)

	if f := refund(
		key, `{"invoice_id":"`+inv+`","destination":"`+there+`"}`,
	).refused(t, 409); f.Code != "refund_no_payment" {
		t.Errorf("%+v", f)
	}

	refund(key, `{"invoice_id":"`+nobody+`","destination":"`+there+`"}`).refused(t, 404)

	if f := refund(
		key, `{"invoice_id":"`+inv+`","reason":"no destination"}`,
	).refused(t, 400); f.Code != "parameter_missing" ||
		f.Param != "destination" {
		t.Errorf("%+v", f)
	}

	refund(key, `{"destination":"`+there+`","reason":"of nothing"}`).refused(t, 400)
	s.do(t, request{method: "GET", path: "/v1/refunds/" + nobody}).refused(t, 404)

	if list := s.get(t, "/v1/refunds?invoice_id="+inv)["data"].([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}
}
