package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

// What the API costs over a bare handler that does the same work with ServeMux and encoding/json,
// in the same run: strict decoding, the key, the rate limit, the rules of the fields and the
// request id. The two take turns, so that what else the machine does disturbs both alike; the ratio
// reported is the median of the turns'.
func BenchmarkOverhead(b *testing.B) {
	for _, name := range []string{"create", "read"} {
		for i, side := range []string{"bare", "api"} {
			b.Run(name+"/"+side, func(b *testing.B) {
				one := sides(b, name)[i]
				b.ReportAllocs()

				for b.Loop() {
					one()
				}
			})
		}

		b.Run(name+"/ratio", func(b *testing.B) {
			const turn = 50 // requests

			both := sides(b, name)

			var ratios []float64

			for b.Loop() {
				var took [2]time.Duration

				for i, one := range both {
					began := time.Now()

					for range turn {
						one()
					}

					took[i] = time.Since(began)
				}

				ratios = append(ratios, float64(took[1])/float64(took[0]))
			}

			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "×bare")
		})
	}
}

// The API may cost twice the allocations of a bare handler; unlike the time, they can be counted anywhere.
func TestOverheadInAllocations(t *testing.T) {
	for _, name := range []string{"create", "read"} {
		both := sides(t, name)
		bare, api := testing.AllocsPerRun(200, both[0]), testing.AllocsPerRun(200, both[1])
		t.Logf("%s: %.0f allocations, bare %.0f: %.2f ×", name, api, bare, api/bare)

		if bare < 1 || api > 2*bare {
			t.Errorf("%s makes %.0f allocations, and %.0f without the API", name, api, bare)
		}
	}
}

// sides are two functions that each send one request, to the bare handler and to the API, each with
// a store of its own.
func sides(t testing.TB, name string) [2]func() {
	t.Helper()

	var out [2]func()
	for i := range out {
		s := open(t, nil)
		if _, err := s.engine.Accounts.UpdateSettings(
			t.Context(), s.account.ID,
			account.Settings{RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000},
		); err != nil {
			t.Fatal(err)
		}

		method, path, body := http.MethodPost, "/v1/invoices", invoiceBody
		if name == "read" {
			method, path, body = http.MethodGet, path+"/"+s.post(t, path, body)["id"].(string), ""
		}

		handler := s.handler
		if i == 0 {
			handler = s.bare()
		}

		text := strings.NewReader(body)
		r := httptest.NewRequest(method, path, text)
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header.Set("Content-Type", "application/json")

		w := &discardWriter{header: http.Header{}}
		out[i] = func() {
			text.Reset(body)
			w.reset()
			handler.ServeHTTP(w, r)

			if w.status != http.StatusOK || w.written == 0 {
				t.Fatalf("%s: status %d with %d bytes", path, w.status, w.written)
			}
		}
	}

	return out
}

// discardWriter is a ResponseWriter that allocates nothing, so that only the handlers are measured.
type discardWriter struct {
	header          http.Header
	status, written int
}

func (s *discardWriter) reset() {
	clear(s.header)
	s.status, s.written = http.StatusOK, 0
}

func (s *discardWriter) Header() http.Header         { return s.header }
func (s *discardWriter) WriteHeader(status int)      { s.status = status }
func (s *discardWriter) Write(b []byte) (int, error) { s.written += len(b); return len(b), nil }

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
		_ = json.NewEncoder(w).Encode(inv.Resource(internal.Of(s.engine).CheckoutBase()))
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

		inv, err := s.engine.Invoices.Create(
			r.Context(),
			invoice.CreateParams{Owner: owner, Price: b.Price, Options: b.Options, OrderID: b.OrderID},
		)
		answer(w, inv, err)
	})
	mux.HandleFunc("GET /v1/invoices/{id}", func(w http.ResponseWriter, r *http.Request) {
		inv, err := s.engine.Invoices.Get(r.Context(), owner, r.PathValue("id"))
		answer(w, inv, err)
	})

	return mux
}
