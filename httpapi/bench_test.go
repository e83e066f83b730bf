package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// What the API costs over a bare handler that does the same work with ServeMux and encoding/json, in the same run:
// strict decoding, the key, the rate limit, the rules of the fields and the request id. Each benchmark reports the
// ratio.
func BenchmarkOverhead(b *testing.B) {
	for _, test := range []struct{ name, method, path string }{{"create", "POST", "/v1/invoices"}, {"read", "GET", "/v1/invoices/"}} {
		var baseline time.Duration
		for _, side := range []string{"bare", "api"} {
			b.Run(test.name+"/"+side, func(b *testing.B) {
				s := open(b, nil) // a fresh store: it gets slower as it fills
				if _, err := s.engine.Accounts.UpdateSettings(b.Context(), s.account.ID, account.Settings{RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000}); err != nil {
					b.Fatal(err)
				}
				path, body, handler := test.path, invoiceBody, s.handler
				if test.method == "GET" {
					path, body = path+s.post(b, "/v1/invoices", invoiceBody)["id"].(string), ""
				}
				if side == "bare" {
					handler = s.bare()
				}
				took := measure(b, handler, s.key, test.method, path, body)
				if side == "bare" {
					baseline = took
				} else if baseline > 0 {
					b.ReportMetric(float64(took)/float64(baseline), "×bare")
				}
			})
		}
	}
}

func measure(b *testing.B, h http.Handler, key, method, path, body string) time.Duration {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	return b.Elapsed() / time.Duration(b.N)
}

// bare is the least that answers the two requests.
func (s *shop) bare() http.Handler {
	owner := event.Owner{AccountID: s.account.ID}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, inv invoice.Invoice, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(inv.Resource(s.engine.CheckoutBase()))
	}
	mux.HandleFunc("POST /v1/invoices", func(w http.ResponseWriter, r *http.Request) {
		var b struct {
			Price   *invoice.Price         `json:"price"`
			Options []invoice.OptionParams `json:"options"`
			OrderID string                 `json:"order_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			answer(w, invoice.Invoice{}, err)
			return
		}
		inv, err := s.engine.Invoices.Create(r.Context(), invoice.CreateParams{Owner: owner, Price: b.Price, Options: b.Options, OrderID: b.OrderID})
		answer(w, inv, err)
	})
	mux.HandleFunc("GET /v1/invoices/{id}", func(w http.ResponseWriter, r *http.Request) {
		inv, err := s.engine.Invoices.Get(r.Context(), owner, r.PathValue("id"))
		answer(w, inv, err)
	})
	return mux
}
