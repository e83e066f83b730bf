package httpapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
)

// TestEventsAreAsTheirTypesAreDocumented compares the object of each event that happened with the schema that the
// document has for its type.
func TestEventsAreAsTheirTypesAreDocumented(t *testing.T) {
	s := open(t, nil)

	endpoint := s.post(t, "/v1/webhook_endpoints", `{"url":"http://127.0.0.1:1/","events":["*"]}`)["id"].(string)
	s.post(t, "/v1/webhook_endpoints/"+endpoint+"/test", "")
	s.ok(t, s.do(t, request{
		method: "PATCH",
		path:   "/v1/webhook_endpoints/" + endpoint,
		body:   `{"status":"disabled"}`,
	}))

	for _, outcomes := range [][]string{{"paid"}, {"detected", "dropped"}, {"detected", "paid", "orphaned"}} {
		id := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
		for _, outcome := range outcomes {
			s.post(t, "/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"`+outcome+`"}`)
		}
	}

	id := s.post(t, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string)
	s.post(
		t,
		"/v1/test/deposit_addresses/"+id+"/simulate_payment",
		`{"asset":"SIM","amount":"1000000000000000000","outcome":"confirmed"}`,
	)

	s.fund(t, "SIM", chain.Pow10(20))

	payee := string(s.network.NewAddress())
	s.key = s.newKey(t, account.KeyParams{
		Scopes:       account.AllScopes(),
		Destinations: []chain.Destination{{Address: chain.Address(payee)}},
	})
	s.ok(t, s.do(t, request{
		method: "POST",
		path:   "/v1/payouts",
		body:   payoutBody("SIM", "1000000000000000000", payee),
		header: header("Idempotency-Key", "payout"),
	}))

	var d struct {
		Webhooks map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema *schema }
				}
			}
		}
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(
		s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}).body, &d,
	); err != nil {
		t.Fatal(err)
	}

	schemas, kinds := apiDocument{Components: d.Components}, map[string]bool{}

	for _, entry := range s.get(t, "/v1/events?limit=100")["data"].([]any) {
		e := entry.(map[string]any)
		typ := e["type"].(string)

		envelope := schemas.resolve(d.Webhooks[typ].Post.RequestBody.Content["application/json"].Schema)
		documented := schemas.resolve(schemas.resolve(envelope.Properties["data"]).Properties["object"])
		kinds[envelope.Properties["data"].Ref] = true

		object := e["data"].(map[string]any)["object"].(map[string]any)
		for field := range object {
			if documented.Properties[field] == nil {
				t.Errorf("%s has the field %s, which its schema does not have", typ, field)
			}
		}

		for _, field := range documented.Required {
			if _, ok := object[field]; !ok {
				t.Errorf("%s lacks %s, which its schema requires", typ, field)
			}
		}
	}

	if len(kinds) < 6 {
		t.Errorf("only events of the kinds %v happened", slices.Collect(maps.Keys(kinds)))
	}

	for typ, webhook := range d.Webhooks {
		if ref := webhook.Post.RequestBody.Content["application/json"].Schema.Ref; ref == "#/components/schemas/Event" {
			t.Errorf("%s has an object without a schema", typ)
		}
	}
}
