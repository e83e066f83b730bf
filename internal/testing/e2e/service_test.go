// Package e2e plays whole scenarios through the HTTP API on real nodes: what is tested is what a merchant's
// server and the node itself say, nothing in between.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

func TestMain(m *testing.M) {
	if life := os.Getenv(lifeEnv); life != "" {
		serve(life) // this is the service process of TestKill
	}

	// Tests run side by side, so what they leave behind is looked for once. The connections that drivers keep open end
	// by themselves.
	goleak.VerifyTestMain(
		nodeTests{m},
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

// nodeTests runs the tests, and closes what they share.
type nodeTests struct{ m *testing.M }

func (n nodeTests) Run() int {
	defer http.DefaultClient.CloseIdleConnections()

	return testenv.Main(n.m)
}

// patience is how long a condition on a real node may take.
const patience = time.Minute

// mnemonic is the well-known public one of the BIP-39 test vectors: everybody has its keys.
const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"

// service is a whole payment service over a SQLite file, with one merchant.
type service struct {
	t       *testing.T
	engine  *payments.Engine
	store   store.Store
	base    string
	key     string
	account account.Account
	dbPath  string
	logs    *syncBuffer
	runs    *runs
}

// runs is the engine's Run, which can be stopped and started again.
type runs struct {
	cancel context.CancelFunc
	done   chan error
}

func (r *runs) start(engine *payments.Engine) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r.cancel, r.done = cancel, done

	go func() {
		done <- engine.Run(ctx)

		close(done) // stopped twice, it answers twice
	}()
}

func (r *runs) stop() error {
	r.cancel()

	return <-r.done
}

// pause stops the workers, so that what is asked for until resume is called is due at once then. Requests are
// answered all the time.
func (s *service) pause() (resume func()) {
	s.t.Helper()
	must(s.t, s.runs.stop())

	return func() { s.runs.start(s.engine) }
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.String()
}

// start runs a service until the test ends.
func start(t *testing.T, driver payments.ChainDriver, feeAddress string) *service {
	t.Helper()
	s := &service{t: t, dbPath: filepath.Join(t.TempDir(), "payments.db"), logs: &syncBuffer{}}

	st, err := sqlite.Open(s.dbPath)
	if err != nil {
		t.Fatal(err)
	}

	s.store = st

	keys, err := hdkey.New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	prices, err := rate.NewFixed(map[string]string{
		"BTC/USD":  "60000",
		"BTC/EUR":  "55000",
		"ETH/USD":  "2500",
		"ETH/EUR":  "2300",
		"USDC/USD": "1",
		"USDC/EUR": "0.92",
		"USDT/USD": "1",
		"USDT/EUR": "0.92",
		"TRX/USD":  "0.25",
		"TRX/EUR":  "0.23",
		"SOL/USD":  "150",
		"SOL/EUR":  "138",
	}, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	slug := driver.Network().Slug

	s.engine, err = payments.New(payments.Config{
		Store:        st,
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      server.URL,
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{slug: feeAddress},
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}

	mux.Handle("/v1/", httpapi.Handler(s.engine, nil))
	mux.Handle("/checkout/", checkout.Handler(s.engine, nil))

	s.base = server.URL
	if s.account, err = s.engine.Accounts.CreateAccount(
		t.Context(), account.Settings{Name: "Corner Shop"},
	); err != nil {
		t.Fatal(err)
	}

	if _, s.key, err = s.engine.Accounts.CreateKey(
		t.Context(), account.KeyParams{AccountID: s.account.ID},
	); err != nil {
		t.Fatal(err)
	}

	s.runs = &runs{}
	s.runs.start(s.engine)

	t.Cleanup(func() {
		if t.Failed() {
			report, err := s.engine.Health(context.WithoutCancel(t.Context()))
			t.Logf("health of the service: %+v, %v", report, err)
		}

		server.Close()

		if err := s.runs.stop(); err != nil {
			t.Error("Run:", err)
		}

		if err := st.Close(); err != nil {
			t.Error("closing the store:", err)
		}

		if t.Failed() {
			t.Log("logs of the service:\n" + s.logs.String())
		}
	})

	return s
}

// in returns the service for a subtest.
func (s *service) in(t *testing.T) *service {
	c := *s
	c.t = t

	return &c
}

// do sends a request with a body as it is and returns status and body.
func (s *service) do(method, path, key, body string) (int, []byte) {
	s.t.Helper()
	return s.keyed(method, path, key, body, "")
}

// keyed is do with an Idempotency-Key.
func (s *service) keyed(method, path, key, body, idempotency string) (int, []byte) {
	s.t.Helper()

	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}

	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}

	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}

	if idempotency != "" {
		req.Header.Set("Idempotency-Key", idempotency)
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}

	return resp.StatusCode, b
}

// call does a request that has to succeed.
func (s *service) call(method, path string, body, answer any) {
	s.t.Helper()

	var text string

	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}

		text = string(b)
	}

	status, b := s.do(method, path, s.key, text)
	if status != http.StatusOK {
		s.t.Fatalf("%s %s answered %d: %s", method, path, status, b)
	}

	if err := json.Unmarshal(b, answer); err != nil {
		s.t.Fatalf("%s %s answered %s: %v", method, path, b, err)
	}
}

// The parts of API objects that the scenarios look at.
type (
	invoiceView struct {
		ID      string   `json:"id"`
		Status  string   `json:"status"`
		Flags   []string `json:"outcome_flags"`
		Options []struct {
			ID        string        `json:"id"`
			AmountDue string        `json:"amount_due"`
			Paid      string        `json:"amount_paid"`
			Address   chain.Address `json:"address"`
		} `json:"options"`
	}
	paymentView struct {
		ID         string          `json:"id"`
		Status     string          `json:"status"`
		Amount     string          `json:"amount"`
		TxHash     string          `json:"tx_hash"`
		Settlement *settlementView `json:"settlement"`
	}
	settlementView struct {
		ID          string `json:"id"`
		Status      string `json:"status"`
		Reason      string `json:"reason"`
		Gross       string `json:"gross"`
		FeeNative   string `json:"fee_native"`
		FeePaid     string `json:"fee_paid"`
		FeeCarried  string `json:"fee_carried"`
		NetworkFees string `json:"network_fees"`
		NetReleased string `json:"net_released"`
		TopUpTx     string `json:"topup_tx"`
		FeeTx       string `json:"fee_tx"`
		SweepTx     string `json:"sweep_tx"`
	}
)

// order makes an invoice with one option.
func (s *service) order(price, asset, network string) invoiceView {
	s.t.Helper()

	var inv invoiceView
	s.call("POST", "/v1/invoices", map[string]any{
		"price":   map[string]string{"currency": "USD", "amount": price},
		"options": []map[string]string{{"asset": asset, "network": network}},
	}, &inv)

	if inv.Status != "open" || len(inv.Options) != 1 || inv.Options[0].Address == "" {
		s.t.Fatalf("the new invoice is %+v", inv)
	}

	return inv
}

// await asks for an invoice until it is as wanted.
func (s *service) await(id, what string, ok func(invoiceView) bool) invoiceView {
	s.t.Helper()

	var inv invoiceView

	eventually(s.t, "invoice "+id+" "+what, func() (bool, string) {
		inv = invoiceView{}
		s.call("GET", "/v1/invoices/"+id, nil, &inv)

		return ok(inv), fmt.Sprintf("%+v", inv)
	})

	return inv
}

// released waits until all n payments of an invoice are released and returns them.
func (s *service) released(id string, n int) []paymentView {
	s.t.Helper()

	var page struct {
		Data []paymentView `json:"data"`
	}

	eventually(s.t, fmt.Sprintf("%d payments of invoice %s released", n, id), func() (bool, string) {
		page.Data = nil
		s.call("GET", "/v1/invoices/"+id+"/payments", nil, &page)

		b, _ := json.Marshal(page.Data)
		for _, p := range page.Data {
			if p.Settlement == nil || p.Settlement.Status != "released" {
				return false, string(b)
			}
		}

		return len(page.Data) == n, string(b)
	})

	return page.Data
}

// eventually polls a condition until a deadline.
func eventually(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()

	deadline, tick := time.After(patience), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()

	for {
		done, state := ok()
		if done {
			return
		}

		select {
		case <-deadline:
			t.Fatalf("not within %s: %s; it is %s", patience, what, state)
		case <-tick.C:
		}
	}
}

func amount(t *testing.T, s string) chain.Amount {
	t.Helper()

	a, err := chain.ParseAmount(s)
	if err != nil {
		t.Fatal(err)
	}

	return a
}

// payments returns the payments of an invoice.
func (s *service) payments(id string) []paymentView {
	s.t.Helper()

	var page struct {
		Data []paymentView `json:"data"`
	}
	s.call("GET", "/v1/invoices/"+id+"/payments", nil, &page)

	return page.Data
}

// happened reports whether an event of a type is stored.
func (s *service) happened(typ string) bool {
	s.t.Helper()

	var page struct {
		Data []struct {
			Type string `json:"type"`
		} `json:"data"`
	}
	s.call("GET", "/v1/events?limit=100", nil, &page)

	for _, e := range page.Data {
		if e.Type == typ {
			return true
		}
	}

	return false
}
