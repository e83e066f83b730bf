package bench_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/testing/bench"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// mnemonic is the well-known one of BIP-39's test vectors.
const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// body is the order of one invoice.
const body = `{
	"price": {"amount": "25.00", "currency": "USD"},
	"options": [{"asset": "USDX", "network": "%s"}],
	"order_id": "order-%d",
	"customer_email": "customer%d@example.com",
	"metadata": {"cart": "1234"}
}`

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// BenchmarkCreateOverHTTP compares POST /v1/invoices with one-row inserts of pgbench on the same server: client,
// server and PostgreSQL share the machine.
func BenchmarkCreateOverHTTP(b *testing.B) {
	dsn, db := benchDatabase(b)
	s := newShop(b, db)
	goals := map[int]float64{1: .20, 8: .25, 32: .30}

	for _, at := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("c=%d", at), func(b *testing.B) {
			compare(b, at, []side{
				{name: "pgbench, inserts", perSecond: pgbench(dsn)},
				{name: "handler with one INSERT", perSecond: s.perSecond(s.insert)},
				{name: "POST, key", perSecond: s.running(s.perSecond(s.create(true))), goal: goals[at]},
				{name: "POST", perSecond: s.running(s.perSecond(s.create(false)))},
				{name: "POST, key, engine not running", perSecond: s.perSecond(s.create(true))},
			})
		})
	}
}

// BenchmarkReadOverHTTP compares GET /v1/invoices/{id} with a handler that reads one row by its key.
func BenchmarkReadOverHTTP(b *testing.B) {
	db := openDB(b, testenv.PostgresWith(b, testenv.PostgresOptions{Fsync: true}))

	if _, err := db.Exec("CREATE TABLE bench (id bigint PRIMARY KEY, body text)"); err != nil {
		b.Fatal(err)
	}

	if _, err := db.Exec(
		"INSERT INTO bench SELECT n, repeat('x', 1000) FROM generate_series(0, 999) n",
	); err != nil {
		b.Fatal(err)
	}

	s := newShop(b, db)
	for range 1000 {
		if err := s.create(false)(); err != nil {
			b.Fatal(err)
		}
	}

	for _, at := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("c=%d", at), func(b *testing.B) {
			compare(b, at, []side{
				{name: "handler with one SELECT", perSecond: s.perSecond(s.selectRow)},
				{name: "GET", perSecond: s.running(s.perSecond(s.read)), goal: .75},
			})
		})
	}
}

// benchDatabase returns a database, which waits for the disk, with a table for pgbench.
func benchDatabase(b *testing.B) (dsn string, db *sql.DB) {
	b.Helper()

	dsn = testenv.PostgresWith(b, testenv.PostgresOptions{Fsync: true})
	db = openDB(b, dsn)

	if _, err := db.ExecContext(
		b.Context(),
		"CREATE TABLE bench (id bigserial PRIMARY KEY, body text)",
	); err != nil {
		b.Fatal(err)
	}

	return dsn, db
}

// pgbench measures PostgreSQL's own benchmark with inserts of one row, each a transaction.
func pgbench(dsn string) func(b *testing.B, at int) float64 {
	return func(b *testing.B, at int) float64 {
		b.Helper()

		perSecond, _ := runPgbench(b, dsn, pgbenchInsert, at, "-T", strconv.Itoa(int(turn.Seconds())))

		return perSecond
	}
}

// runPgbench runs a script with pgbench, by so many clients at once, and returns its rate and number of transactions.
func runPgbench(b *testing.B, dsn, script string, at int, args ...string) (perSecond, transactions float64) {
	b.Helper()

	file := filepath.Join(b.TempDir(), "script.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		b.Fatal(err)
	}

	args = append([]string{"-n", "-f", file, "-c", strconv.Itoa(at), "-j", strconv.Itoa(min(at, 2))}, args...)

	out, err := exec.Command(pgbenchProgram(), append(args, dsn)...).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}

	figure := func(name string) float64 {
		found := regexp.MustCompile(name + `[=:] ([0-9.]+)`).FindSubmatch(out)
		if found == nil {
			b.Fatalf("pgbench: %s", out)
		}

		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			b.Fatal(err)
		}

		return n
	}

	return figure("tps "), figure("transactions actually processed")
}

// pgbenchInsert is the script of pgbench: one row.
var pgbenchInsert = "INSERT INTO bench (body) VALUES ('" + strings.Repeat("x", 50) + "');\n"

func pgbenchProgram() string {
	if program, err := exec.LookPath("pgbench"); err == nil {
		return program
	}

	return "/usr/lib/postgresql/15/bin/pgbench"
}

func openDB(b *testing.B, dsn string) *sql.DB {
	b.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}

	db := stdlib.OpenDB(*config)

	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)

	return db
}

// shop is a service and its client.
type shop struct {
	engine  *payments.Engine
	chain   *sim.Chain
	db      *sql.DB
	account string
	network string
	url     string
	key     string
	client  *http.Client
	orders  atomic.Int64

	mu  sync.Mutex
	ids []string
}

func newShop(b testing.TB, db *sql.DB) *shop {
	b.Helper()

	must := func(err error) {
		b.Helper()

		if err != nil {
			b.Fatal(err)
		}
	}

	must(postgres.Migrate(b.Context(), db, postgres.Options{}))

	st, err := postgres.New(db, postgres.Options{})
	must(err)

	keys, err := hdkey.New(mnemonic, "")
	must(err)

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, time.Now)
	must(err)

	network := sim.New(sim.Config{})
	driver := network.Driver()
	s := &shop{
		chain:   network,
		db:      db,
		network: driver.Network().Slug,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	s.engine, err = payments.New(payments.Config{
		Store:     st,
		Drivers:   []payments.ChainDriver{driver},
		Signer:    keys,
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{1}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	must(err)

	merchant, err := s.engine.Accounts.CreateAccount(
		b.Context(),
		account.Settings{Name: "Corner Shop", RequestsPerSecond: 1_000_000, RequestBurst: 1_000_000},
	)
	must(err)

	s.account = merchant.ID
	_, s.key, err = s.engine.Accounts.CreateKey(
		b.Context(),
		account.KeyParams{AccountID: merchant.ID, Scopes: account.AllScopes()},
	)
	must(err)

	mux := http.NewServeMux()
	mux.Handle("/", httpapi.Handler(s.engine, nil))
	mux.HandleFunc("POST /insert", insertHandler(db))
	mux.HandleFunc("GET /select/{id}", selectHandler(db))

	server := httptest.NewServer(mux)

	b.Cleanup(server.Close)
	b.Cleanup(s.client.CloseIdleConnections)

	s.url = server.URL

	return s
}

// insertHandler decodes a body, and inserts one row: what a service does at the least.
func insertHandler(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var order struct {
			OrderID string `json:"order_id"`
		}

		err := json.NewDecoder(r.Body).Decode(&order)
		if err == nil {
			_, err = db.ExecContext(r.Context(), "INSERT INTO bench (body) VALUES ($1)", order.OrderID)
		}

		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}

		_ = json.NewEncoder(w).Encode(order)
	}
}

// selectHandler reads one row by its key.
func selectHandler(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var row struct {
			Body string `json:"body"`
		}

		err := db.QueryRowContext(r.Context(), "SELECT body FROM bench WHERE id = $1", r.PathValue("id")).
			Scan(&row.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}

		_ = json.NewEncoder(w).Encode(row)
	}
}

// running measures while the engine runs.
func (s *shop) running(perSecond func(*testing.B, int) float64) func(*testing.B, int) float64 {
	return func(b *testing.B, at int) float64 {
		b.Helper()

		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)

		go func() { ended <- s.engine.Run(ctx) }()

		defer func() {
			stop()

			if err := <-ended; err != nil {
				b.Error(err)
			}
		}()

		return perSecond(b, at)
	}
}

func (s *shop) perSecond(f func() error) func(*testing.B, int) float64 {
	return func(b *testing.B, at int) float64 {
		b.Helper()

		return bench.PerSecond(b, at, turn, f)
	}
}

func (s *shop) insert() error {
	n := s.orders.Add(1)
	_, err := s.ask(http.MethodPost, "/insert", fmt.Sprintf(body, s.network, n, n), "")

	return err
}

func (s *shop) selectRow() error {
	_, err := s.ask(http.MethodGet, fmt.Sprintf("/select/%d", s.orders.Add(1)%1000), "", "")

	return err
}

// create orders an invoice, with an Idempotency-Key or without.
func (s *shop) create(keyed bool) func() error {
	return func() error {
		n := s.orders.Add(1)

		key := ""
		if keyed {
			key = fmt.Sprintf("order-%d", n)
		}

		answer, err := s.ask(http.MethodPost, "/v1/invoices", fmt.Sprintf(body, s.network, n, n), key)
		if err != nil {
			return err
		}

		var made struct {
			ID string `json:"id"`
		}

		if err := json.Unmarshal(answer, &made); err != nil {
			return err
		}

		s.mu.Lock()
		s.ids = append(s.ids, made.ID)
		s.mu.Unlock()

		return nil
	}
}

func (s *shop) read() error {
	s.mu.Lock()
	ids := s.ids
	s.mu.Unlock()

	if len(ids) == 0 {
		return errors.New("there is no invoice to read")
	}

	_, err := s.ask(http.MethodGet, "/v1/invoices/"+ids[int(s.orders.Add(1))%len(ids)], "", "")

	return err
}

func (s *shop) ask(method, path, text, key string) ([]byte, error) {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(text))
	if err != nil {
		return nil, err
	}

	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")

	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}

	response, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}

	return answer, err
}
