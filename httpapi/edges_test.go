package httpapi_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
)

// What an account no longer offers on invoices, its wallet may still pay out.
func TestNarrowedAssetsArePaidOut(t *testing.T) {
	s := open(t, nil)
	s.fund(t, "SIM", chain.Pow10(20))

	assets := s.get(t, "/v1/assets")["data"].([]any)

	var token string

	for _, a := range assets {
		if a := a.(map[string]any); a["asset"] == "USDX" {
			token = a["id"].(string)
		}
	}

	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID, account.Settings{Assets: []string{token}},
	); err != nil {
		t.Fatal(err)
	}

	f := s.do(t, request{method: "POST", path: "/v1/invoices", body: invoiceBody}).refused(t, 422)
	if f.Code != "asset_not_enabled" {
		t.Errorf("%+v", f)
	}

	there := string(s.network.NewAddress())
	key := s.newKey(t, account.KeyParams{
		Scopes:       []account.Scope{account.PayoutsWrite},
		Destinations: destinations(there),
	})

	s.ok(t, s.do(t, request{
		method: "POST",
		path:   "/v1/payouts",
		key:    key,
		body:   payoutBody("SIM", "1000000", there),
		header: header("Idempotency-Key", "once"),
	}))
}

// The document says what generated clients rely on.
func TestTheDocumentSaysWhatClientsNeed(t *testing.T) {
	s := open(t, nil)
	document := s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"})
	all := document.json(t)

	if webhooks, _ := all["webhooks"].(map[string]any); len(webhooks) < 20 {
		t.Errorf("%d webhooks", len(webhooks))
	}

	tags, _ := all["tags"].([]any)
	for _, tag := range tags {
		if tag := tag.(map[string]any); tag["description"] == nil {
			t.Errorf("the tag %v has no description", tag["name"])
		}
	}

	if license, _ := all["info"].(map[string]any)["license"].(map[string]any); len(tags) == 0 ||
		license == nil {
		t.Errorf("%d tags, licence %v", len(tags), license)
	}

	schemas := all["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"Invoice", "Payment", "Payout", "Settlement", "Refund"} {
		status := schemas[name].(map[string]any)["properties"].(map[string]any)["status"].(map[string]any)
		if status["enum"] != nil || status["x-extensible-enum"] == nil {
			t.Errorf("the status of %s is a closed list: %v", name, status)
		}
	}

	// ogen makes a type of each list of values of a header, and of the same one twice a client that does not compile.
	for path, methods := range all["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			for status, answer := range op.(map[string]any)["responses"].(map[string]any) {
				headers, _ := answer.(map[string]any)["headers"].(map[string]any)
				for name, header := range headers {
					inline, _ := header.(map[string]any)["schema"].(map[string]any)
					if inline["enum"] != nil {
						t.Errorf("%s %s, %s: the values of %s are no component", method, path, status, name)
					}
				}
			}
		}
	}

	for _, word := range []string{`"Idempotent-Replayed"`, `"propertyNames"`} {
		if !strings.Contains(string(document.body), word) {
			t.Errorf("the document lacks %s", word)
		}
	}
}

// A page's size is 1 to 100 in every list, and nothing else.
func TestEveryListRefusesALimitOutside(t *testing.T) {
	s := open(t, nil)

	for _, list := range []string{
		"invoices", "payments", "settlements", "payouts", "refunds", "deposit_addresses", "events",
		"webhook_endpoints", "networks", "assets", "balances",
	} {
		for _, limit := range []string{"0", "-1", "101"} {
			f := s.do(t, request{method: "GET", path: "/v1/" + list + "?limit=" + limit}).refused(t, 400)
			if f.Param != "limit" {
				t.Errorf("%s, limit %s: %+v", list, limit, f)
			}
		}
	}
}
