package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// shop is one merchant of a service over a store in memory and two simulated networks, a test and a live one.
type shop struct {
	engine  *payments.Engine
	network *sim.Chain // simnet, the test network
	handler http.Handler
	account account.Account
	// key is a secret test key with every scope.
	key  string
	logs *logs
}

// logs collects what is logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.b.String()
}

func open(t testing.TB, o *httpapi.Options) *shop { return openAt(t, o, time.Now) }

func openAt(t testing.TB, o *httpapi.Options, now func() time.Time) *shop {
	t.Helper()
	return openOn(t, memory.New(), o, now)
}

func openOn(t testing.TB, db payments.Store, o *httpapi.Options, now func() time.Time) *shop {
	t.Helper()
	s := boot(t, db, o, now)
	s.enter(t)

	return s
}

// enter makes the shop's account and key.
func (s *shop) enter(t testing.TB) {
	t.Helper()

	var err error
	if s.account, err = s.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Corner Shop"},
	); err != nil {
		t.Fatal(err)
	}

	s.key = s.newKey(t, account.KeyParams{Scopes: account.AllScopes()})
}

// boot starts the service as a process does, without an account. The first of secrets seals, and
// all open; none is a fixed one.
func boot(
	t testing.TB,
	db payments.Store,
	o *httpapi.Options,
	now func() time.Time,
	secrets ...[]byte,
) *shop {
	t.Helper()

	if len(secrets) == 0 {
		secrets = [][]byte{bytes.Repeat([]byte{7}, 32)}
	}

	return bootWith(t, db, o, now, func(c *payments.Config) {
		c.SecretKey, c.OldSecretKeys = secrets[0], secrets[1:]
	})
}

// bootWith is boot with a configuration that a test changes.
func bootWith(
	t testing.TB,
	db payments.Store,
	o *httpapi.Options,
	now func() time.Time,
	change func(c *payments.Config),
) *shop {
	t.Helper()

	live := sim.DefaultNetwork()
	live.Slug, live.CAIP2, live.Livemode = "livenet", "sim:2", true

	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2500", "ETH/EUR": "2300", "USDC/USD": "1", "USDC/EUR": "0.92"},
		time.Minute, now,
	)
	if err != nil {
		t.Fatal(err)
	}

	s := &shop{logs: &logs{}, network: sim.New(sim.Config{})}

	config := payments.Config{
		Store:        db,
		Drivers:      []payments.ChainDriver{s.network, sim.New(sim.Config{Network: live})},
		Signer:       sim.NewSigner(1, nil),
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:          now,
	}
	change(&config)

	if s.engine, err = payments.New(config); err != nil {
		t.Fatal(err)
	}

	s.handler = httpapi.Handler(s.engine, o)

	return s
}

func (s *shop) newKey(t testing.TB, p account.KeyParams) string {
	t.Helper()

	p.AccountID = s.account.ID

	_, secret, err := s.engine.Accounts.CreateKey(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}

	return secret
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// request is what a test sends; key is "" for the shop's, "-" for none.
type request struct {
	method, path, body, key string
	header                  http.Header
	remote                  string
}

func (s *shop) do(t testing.TB, q request) reply {
	t.Helper()

	r := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	if q.body == "" {
		r = httptest.NewRequest(q.method, q.path, http.NoBody)
	} else {
		r.Header.Set("Content-Type", "application/json")
	}

	switch q.key {
	case "":
		r.Header.Set("Authorization", "Bearer "+s.key)
	case "-":
	default:
		r.Header.Set("Authorization", "Bearer "+q.key)
	}

	for name, values := range q.header {
		r.Header[name] = values
	}

	if q.remote != "" {
		r.RemoteAddr = q.remote
	}

	answer := s.serve(r)
	s.checkDeclared(t, q, answer)

	return answer
}

func (s *shop) serve(r *http.Request) reply {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)

	return reply{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// get, post and the like answer with the decoded body, and fail the test on any other status than 200.
func (s *shop) get(t testing.TB, path string) map[string]any {
	t.Helper()
	return s.ok(t, s.do(t, request{method: "GET", path: path}))
}

func (s *shop) post(t testing.TB, path, body string) map[string]any {
	t.Helper()
	return s.ok(t, s.do(t, request{method: "POST", path: path, body: body}))
}

func (s *shop) ok(t testing.TB, r reply) map[string]any {
	t.Helper()

	if r.status != http.StatusOK {
		t.Fatalf("status %d: %s", r.status, r.body)
	}

	return r.json(t)
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()

	var v map[string]any
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%v in %q", err, r.body)
	}

	return v
}

// fault is the error of an error body.
type fault struct {
	Type, Code, Message, Param string
	RequestID                  string `json:"request_id"`
	DocURL                     string `json:"doc_url"`
}

// refused returns the error, and fails the test when the answer is not a proper error body of that status.
func (r reply) refused(t testing.TB, status int) fault {
	t.Helper()

	var v struct{ Error fault }
	if err := json.Unmarshal(
		r.body, &v,
	); err != nil || v.Error.Type == "" || v.Error.Code == "" ||
		v.Error.Message == "" {
		t.Fatalf("status %d with the body %q", r.status, r.body)
	}

	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}

	if id := r.header.Get("Request-Id"); id == "" || id != v.Error.RequestID {
		t.Fatalf("Request-Id %q, request_id %q", id, v.Error.RequestID)
	}

	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Fatalf("Content-Type %q", got)
	}

	return v.Error
}

const (
	nobody      = "0123456789abcdef01234567" // an id of nothing
	invoiceBody = `{"price":{"currency":"EUR","amount":"49.90"},"options":[{"asset":"SIM",` +
		`"network":"simnet"}],"order_id":"A-1"}`
)

// header returns one header field.
func header(name string, values ...string) http.Header {
	return http.Header{http.CanonicalHeaderKey(name): values}
}
