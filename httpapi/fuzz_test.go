package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi"
)

// FuzzRequest sends anything to any path: nothing makes the service fail, every refusal is a proper
// error body, and one about a parameter names it.
func FuzzRequest(f *testing.F) {
	s := open(f, &httpapi.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}})
	if _, err := s.engine.Accounts.UpdateSettings(
		f.Context(), s.account.ID,
		account.Settings{RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000},
	); err != nil {
		f.Fatal(err)
	}

	id := s.post(f, "/v1/invoices", invoiceBody)["id"].(string)

	deposit := s.post(f, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string)
	for i, seed := range []struct{ method, path, body, idempotency string }{
		{"POST", "/v1/invoices", invoiceBody, "a"},
		{
			"POST",
			"/v1/invoices",
			`{"options":[{"asset":"SIM","network":"simnet",` +
				`"amount":"115792089237316195423570985008687907853269984665640564039457584007913129639935"}]}`,
			"",
		},
		{
			"POST",
			"/v1/invoices",
			`{"price":{"currency":"USD","amount":"99999999999999999999999999999999.99999999"},"metadata":{` +
				`"\u0000":"\u0000"}}`,
			"b",
		},
		{"GET", "/v1/invoices?status=open&network=simnet&limit=3&created_after=2026-01-01T00:00:00Z&q=a%00", "", ""},
		{"GET", "/v1/invoices?starting_after=AAAAAAAAAAAAMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "", ""},
		{"GET", "/v1/invoices/" + id, "", ""},
		{"POST", "/v1/invoices", `{"":1}`, ""},
		{"GET", "/v1/invoices?=x", "", ""},
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
		extra := []struct{ name, value string }{
			{"X-Forwarded-For", "192.0.2.7, x"},
			{"Content-Type", "application/json; charset=utf-8"},
			{"Content-Encoding", "gzip"},
			{"Authorization", "Bearer pay_test_sk_x"},
			{"Content-Type", "\xff;;="},
			{"Authorization", ""},
			{"Origin", "null"},
		}[i%7]
		f.Add(seed.method, seed.path, seed.body, seed.idempotency, extra.name, extra.value)
	}

	f.Fuzz(func(t *testing.T, method, path, body, idempotency, name, value string) {
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

		r.Header[http.CanonicalHeaderKey(name)] = []string{value}

		reply := s.serve(r)
		if !json.Valid(reply.body) && method != http.MethodHead {
			t.Fatalf("status %d with %q", reply.status, reply.body)
		}

		if reply.status == http.StatusOK {
			return
		}

		if reply.status >= http.StatusInternalServerError {
			t.Fatalf("status %d: %s\n%s", reply.status, reply.body, s.logs)
		}

		if method == http.MethodHead {
			return
		}

		if got := reply.refused(
			t, reply.status,
		); strings.HasPrefix(got.Code, "parameter_") && got.Param == "" &&
			!strings.HasPrefix(got.Message, "the query string cannot be read") {
			t.Fatalf("no parameter is named: %s", reply.body)
		}
	})
}
