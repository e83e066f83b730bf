package checkout

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
)

// fakeBackend is a service in memory: the gallery's invoices, which tests may change.
type fakeBackend struct {
	registry *chain.Registry

	mu       sync.Mutex
	now      time.Time
	exhibits map[string]exhibit
	account  account.Account
	changed  chan struct{} // closed and replaced at every change

	selectErr   error
	selected    []string // option ids
	hints       []string // hashes
	hintResult  invoice.HintResult
	hintErr     error
	simulated   []invoice.Outcome
	reads       int
	status      *networkStatus // of all networks; nil: the exhibit's
	unavailable error          // answered by every read
}

func newFake(exhibits ...exhibit) *fakeBackend {
	b := &fakeBackend{
		registry: registry(),
		now:      noon,
		exhibits: map[string]exhibit{},
		changed:  make(chan struct{}),
		account: account.Account{
			Settings: account.Settings{Name: "Morning Roast", WebsiteURL: "https://shop.example.com"},
			LogoType: "image/png",
			Logo:     logoPNG,
		},
	}
	for _, e := range exhibits {
		b.exhibits[e.invoice.ID] = e
	}

	return b
}

// set replaces an exhibit and wakes the streams.
func (b *fakeBackend) set(e exhibit) {
	b.mu.Lock()
	defer b.mu.Unlock()

	e.invoice.Version = b.exhibits[e.invoice.ID].invoice.Version + 1
	b.exhibits[e.invoice.ID] = e
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *fakeBackend) exhibit(id string) (exhibit, chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.reads++
	if b.unavailable != nil {
		return exhibit{}, nil, b.unavailable
	}

	e, ok := b.exhibits[id]
	if !ok {
		return exhibit{}, nil, fault.Missing("invoice", id)
	}

	return e, b.changed, nil
}

func (b *fakeBackend) Invoice(_ context.Context, id string) (invoice.Invoice, error) {
	e, _, err := b.exhibit(id)
	return e.invoice, err
}

func (b *fakeBackend) Watch(ctx context.Context, id string) iter.Seq2[invoice.Invoice, error] {
	return func(yield func(invoice.Invoice, error) bool) {
		for {
			e, changed, err := b.exhibit(id)
			if !yield(e.invoice, err) || err != nil {
				return
			}

			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

func (b *fakeBackend) Payments(_ context.Context, id string) ([]invoice.Payment, error) {
	e, _, err := b.exhibit(id)
	return e.payments, err
}

func (b *fakeBackend) Account(context.Context, string) (account.Account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.account, nil
}

func (b *fakeBackend) NetworkStatus(_ context.Context, slug string) (networkStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.reads++
	if b.status != nil {
		return *b.status, nil
	}

	return networkStatusOf(exhibit{}), nil
}

func (b *fakeBackend) Price(_ context.Context, a chain.Asset, currency string) (decimal.Decimal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, e := range b.exhibits {
		if p, ok := pricesOf(e)[a.ID]; ok && !e.unpriced {
			return p, nil
		}
	}

	return decimal.Decimal{}, fault.New(
		fault.Unavailable, "price_unavailable", "no fresh price for %s in %s", a.Symbol, currency,
	)
}

func (b *fakeBackend) Registry() *chain.Registry { return b.registry }

func (b *fakeBackend) Select(_ context.Context, id, optionID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.selectErr != nil {
		return b.selectErr
	}

	b.selected = append(b.selected, optionID)

	e, ok := b.exhibits[id]
	if !ok {
		return fault.Missing("invoice", id)
	}

	o := e.invoice.Option(optionID)
	if o == nil {
		return fault.Missing("option", optionID)
	}

	e.invoice.Options = append([]invoice.Option(nil), e.invoice.Options...)
	*e.invoice.Option(optionID) = ethPaid(optionID)
	e.invoice.SelectedOptionID = optionID
	b.exhibits[id] = e

	return nil
}

func (b *fakeBackend) Hint(_ context.Context, _, hash string) (invoice.HintResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.hints = append(b.hints, hash)

	return b.hintResult, b.hintErr
}

func (b *fakeBackend) Simulate(_ context.Context, _ invoice.Invoice, o invoice.Outcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.simulated = append(b.simulated, o)

	return nil
}

func (b *fakeBackend) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.now
}

// advance moves the clock.
func (b *fakeBackend) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.now = b.now.Add(d)
}

// galleryServer answers each exhibit under conditions of its own: network states and prices differ
// between them.
func galleryServer(t testing.TB, o *Options) http.Handler {
	t.Helper()

	byID := map[string]http.Handler{}

	var any http.Handler

	for _, e := range gallery() {
		b := newFake(e)
		if e.merchant != "" {
			b.account = account.Account{
				Settings: account.Settings{Name: e.merchant, WebsiteURL: b.account.Settings.WebsiteURL},
			}
		}

		c := networkStatusOf(e)
		b.status = &c
		any = newTestPages(t, b, o)
		byID[e.invoice.ID] = any
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for id, h := range byID {
			if strings.Contains(r.URL.Path, id) {
				h.ServeHTTP(w, r)
				return
			}
		}

		any.ServeHTTP(w, r)
	})
}

func newTestPages(t testing.TB, b backend, o *Options) *pages {
	t.Helper()

	p, err := newPages(b, o, limit.Defaults(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return p
}

// get asks a handler, with headers in pairs.
func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	return send(h, http.MethodGet, path, "", headers...)
}

// post sends a form.
func post(h http.Handler, path, form string, headers ...string) *httptest.ResponseRecorder {
	return send(
		h,
		http.MethodPost,
		path,
		form,
		append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
}

func send(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)

	return w
}

// named returns the exhibit of a name.
func named(t testing.TB, name string) exhibit {
	t.Helper()

	var names []string

	for _, e := range gallery() {
		if e.name == name {
			return e
		}

		names = append(names, e.name)
	}

	t.Fatalf("the gallery has no %q, only %v", name, names)

	return exhibit{}
}

// pageOf is the address of an exhibit.
func pageOf(e exhibit) string {
	path := "/checkout/" + e.invoice.ID
	if e.query != "" {
		path += "?" + e.query
	}

	return path
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range maps.Keys(m) {
		out[k] = true
	}

	return out
}
