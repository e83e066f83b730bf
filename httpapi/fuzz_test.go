package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
)

// FuzzRequest sends anything to any path: nothing makes the service fail, and every refusal is a proper error body.
func FuzzRequest(f *testing.F) {
	s := open(f, nil)
	if _, err := s.engine.Accounts.UpdateSettings(f.Context(), s.account.ID, account.Settings{RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000}); err != nil {
		f.Fatal(err)
	}
	id := s.post(f, "/v1/invoices", invoiceBody)["id"].(string)
	deposit := s.post(f, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string)
	for _, seed := range []struct{ method, path, body, idempotency string }{
		{"POST", "/v1/invoices", invoiceBody, "a"},
		{"POST", "/v1/invoices", `{"options":[{"asset":"SIM","network":"simnet","amount":"115792089237316195423570985008687907853269984665640564039457584007913129639935"}]}`, ""},
		{"POST", "/v1/invoices", `{"price":{"currency":"USD","amount":"99999999999999999999999999999999.99999999"},"metadata":{"\u0000":"\u0000"}}`, "b"},
		{"GET", "/v1/invoices?status=open&network=simnet&limit=3&created_after=2026-01-01T00:00:00Z&q=a%00", "", ""},
		{"GET", "/v1/invoices?starting_after=AAAAAAAAAAAAMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "", ""},
		{"GET", "/v1/invoices/" + id, "", ""},
		{"POST", "/v1/invoices/" + id + "/cancel", "{}", "c"},
		{"POST", "/v1/invoices/" + id + "/options/" + id + "/select", "", ""},
		{"PATCH", "/v1/deposit_addresses/" + deposit, `{"name":null,"metadata":{"a":"b"},"status":"disabled"}`, ""},
		{"POST", "/v1/webhook_endpoints", `{"url":"http://127.0.0.1:1/\u2028","events":["*","invoice.paid"]}`, "d"},
		{"POST", "/v1/payouts", payoutBody("SIM", "1", "sim1"), "e"},
		{"POST", "/v1/refunds", `{"invoice_id":"` + id + `","destination":"x"}`, "f"},
		{"GET", "/v1/rates?base=SIM&quote=USD", "", ""},
		{"DELETE", "/v1/webhook_endpoints/" + id, "", ""},
		{"OPTIONS", "/v1/openapi.json", "[[[[", "\xff"},
	} {
		f.Add(seed.method, seed.path, seed.body, seed.idempotency)
	}
	f.Fuzz(func(t *testing.T, method, path, body, idempotency string) {
		r, err := http.NewRequest(method, "http://api.example", strings.NewReader(body))
		if err != nil {
			return // not a method
		}
		path, query, _ := strings.Cut(path, "?")
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.RemoteAddr = "192.0.2.1:1"
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header.Set("Content-Type", "application/json")
		if idempotency != "" {
			r.Header.Set("Idempotency-Key", idempotency)
		}
		reply := s.serve(r)
		if !json.Valid(reply.body) && method != http.MethodHead {
			t.Fatalf("status %d with %q", reply.status, reply.body)
		}
		if reply.status != http.StatusOK {
			if reply.status >= http.StatusInternalServerError && reply.status != http.StatusServiceUnavailable {
				t.Fatalf("status %d: %s\n%s", reply.status, reply.body, s.logs)
			}
			if method != http.MethodHead {
				reply.refused(t, reply.status)
			}
		}
	})
}
