//go:build unix

package canonical_test

// This file is the service: one process or several, each the test binary itself, started again over a SQLite file or
// a PostgreSQL database and two endpoints. They work on demand, in the time they are given, and die by kill -9.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/postgres"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

const (
	// ordersVariable holds the orders of a child; a test binary without it is the parent.
	ordersVariable = "PAYMENTS_CANONICAL_CHILD"
	// nowHeader is the time at which a request is served, in milliseconds since 1970.
	nowHeader = "Test-Now"
	// mnemonic is the well-known public one of the BIP-39 test vectors.
	mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow"
	// feeTo receives platform fees; nobody has its key.
	feeTo = "0x0000000000000000000000000000000000000fee"
	// confirmations is how deep a payment has to be.
	confirmations = 3
	// maxSteps bounds what a process does before time goes on.
	maxSteps = 60
)

func TestMain(m *testing.M) {
	if text := os.Getenv(ordersVariable); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "the service process:", err)
			os.Exit(1)
		}

		os.Exit(0)
	}

	os.Exit(testenv.Main(m))
}

// orders say over what a process works.
type orders struct {
	// DB is the path of a SQLite file, or the URL of a PostgreSQL database.
	DB     string
	RPCs   []string
	Tokens []chain.Asset

	// Processes is how many processes there are; 0 is one.
	Processes int

	// BitcoinFeeTo receives platform fees where the endpoints are of Bitcoin's regtest; empty for anvil's.
	BitcoinFeeTo string

	Pool       evm.PoolSource // "" is the driver's default
	Tiers      []chain.Tier
	Passphrase string // of the mnemonic: who shares a node has keys of its own
}

// driver makes the driver of a process, with the address of its platform fees.
func (o orders) driver() (payments.ChainDriver, string, error) {
	if o.BitcoinFeeTo != "" {
		driver, err := bitcoin.New(bitcoin.Config{Network: bitcoin.Regtest, RPCs: o.RPCs, Attempts: 1})

		return driver, o.BitcoinFeeTo, err
	}

	network := evm.Local(testenv.DefaultChainID, o.Tokens...)
	network.Confirmations, network.Tiers = confirmations, o.Tiers

	driver, err := evm.New(evm.Config{Network: network, RPCs: o.RPCs, Pool: o.Pool})

	return driver, feeTo, err
}

// store opens the store of a process; it makes the tables where they are missing.
func (o orders) store() (payments.Store, error) {
	if !strings.HasPrefix(o.DB, "postgres") {
		return sqlite.Open(o.DB)
	}

	config, err := pgx.ParseConfig(o.DB)
	if err != nil {
		return nil, err
	}

	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(8)

	if err := postgres.Migrate(context.Background(), db, postgres.Options{}); err != nil {
		return nil, errors.Join(err, db.Close())
	}

	return postgres.New(db, postgres.Options{})
}

// engine makes the engine of a process, and the store that it runs on.
func (o orders) engine(now func() time.Time, log io.Writer) (*payments.Engine, payments.Store, error) {
	driver, fees, err := o.driver()
	if err != nil {
		return nil, nil, err
	}

	keys, err := hdkey.New(mnemonic, o.Passphrase)
	if err != nil {
		return nil, nil, err
	}

	quotes := map[string]string{"ETH/USD": "2500", "BTC/USD": "60000"}
	for _, token := range o.Tokens {
		quotes[token.Symbol+"/USD"] = "1"
	}

	prices, err := rate.NewFixed(quotes, time.Minute, now)
	if err != nil {
		return nil, nil, err
	}

	db, err := o.store()
	if err != nil {
		return nil, nil, err
	}

	engine, err := payments.New(payments.Config{
		Store:        db,
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{driver.Network().Slug: fees},
		Now:          now,
		Log:          slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}

	return engine, db, nil
}

// serve is the process. Beside the API it answers /work, /hint, /audit and /health.
func serve(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}

	go func() { // a process whose test is gone ends
		_, _ = io.Copy(io.Discard, os.Stdin)

		os.Exit(1)
	}()

	var clock atomic.Int64

	engine, db, err := o.engine(func() time.Time { return time.UnixMilli(clock.Load()).UTC() }, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()

	mux := http.NewServeMux()
	mux.Handle("/v1/", httpapi.Handler(engine, nil))
	mux.HandleFunc("POST /work", func(w http.ResponseWriter, req *http.Request) {
		for range maxSteps {
			did, err := engine.Step(req.Context())
			if err != nil {
				fmt.Fprintln(os.Stderr, "Step:", err)
			}

			if !did {
				break
			}
		}

		answer(w, struct{}{}, nil)
	})
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, req *http.Request) {
		report, err := engine.Audit(req.Context())
		answer(w, report.Differences(), err)
	})
	mux.HandleFunc("POST /hint", func(w http.ResponseWriter, req *http.Request) {
		result, err := engine.Invoices.Hint(
			req.Context(), req.URL.Query().Get("invoice"), req.URL.Query().Get("tx"),
		)
		answer(w, result, err)
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, req *http.Request) {
		report, err := engine.Health(req.Context())
		answer(w, report, err)
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Printf("listening on %s\n", listener.Addr())

	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if at, err := strconv.ParseInt(req.Header.Get(nowHeader), 10, 64); err == nil {
			clock.Store(at)
		}

		mux.ServeHTTP(w, req)
	}))
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	_ = json.NewEncoder(w).Encode(v)
}

// process is one process as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	base  string
}

// service is the processes as their parent sees them, and what outlives them.
type service struct {
	orders
	t    *testing.T
	key  string
	log  string
	now  time.Time
	http http.Client

	processes []*process
	kills     int
	// order is the idempotency key of what is asked for. Requests go to the processes in turns.
	order int
}

// boot starts a process over the store.
func (s *service) boot() *process {
	s.t.Helper()

	text, err := json.Marshal(s.orders)
	s.must(err)

	program, err := os.Executable()
	s.must(err)

	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.must(err)

	defer log.Close()

	p := &process{cmd: exec.Command(program)}

	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), ordersVariable+"="+string(text)), log
	p.stdin, err = p.cmd.StdinPipe()
	s.must(err)
	stdout, err := p.cmd.StdoutPipe()
	s.must(err)
	s.must(p.cmd.Start())

	line, err := bufio.NewReader(stdout).ReadString('\n')

	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		s.t.Fatalf("the service process does not listen: %q, %v\n%s", line, err, s.tail())
	}

	p.base = "http://" + address

	return p
}

// kill ends a process at once, wherever it is, and starts another one when its leases have run out.
func (s *service) kill(i int) {
	s.t.Helper()
	s.processes[i].end()
	s.http.CloseIdleConnections()

	s.kills++
	s.now = s.now.Add(2 * time.Minute)
	s.processes[i] = s.boot()
}

// end kills the process.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// end kills all processes.
func (s *service) end() {
	for _, p := range s.processes {
		p.end()
	}

	s.http.CloseIdleConnections()
}

// request sends a request to the next process.
func (s *service) request(method, path, body string) (status int, answer []byte, err error) {
	s.order++

	return s.requestOf(s.processes[s.order%len(s.processes)], method, path, body)
}

// requestOf sends a request to a process.
func (s *service) requestOf(p *process, method, path, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, p.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}

	req.Header.Set(nowHeader, strconv.FormatInt(s.now.UnixMilli(), 10))
	req.Header.Set("Authorization", "Bearer "+s.key)

	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", fmt.Sprintf("order-%d", s.order))
	}

	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()

	answer, err = io.ReadAll(resp.Body)

	return resp.StatusCode, answer, err
}

// ask is request that has to succeed.
func (s *service) ask(method, path, body string, into any) {
	s.t.Helper()

	status, text, err := s.request(method, path, body)
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s, %v\n%s", method, path, status, text, err, s.tail())
	}

	if err := json.Unmarshal(text, into); err != nil {
		s.t.Fatalf("%s %s answers %s: %v", method, path, text, err)
	}
}

// work has everything done that can be done now, by all processes at once. kill, unless 0, is when one of them is
// killed meanwhile; where the work ended before, it lives.
func (s *service) work(kill time.Duration) {
	s.t.Helper()

	if kill > 0 {
		s.workAndKill(kill)
	}

	s.workTogether(func(_ int, status int, text []byte, err error) {
		if err != nil || status != http.StatusOK {
			s.t.Errorf("POST /work: %d %s, %v", status, text, err)
		}
	})

	if s.t.Failed() {
		s.t.Fatal(s.tail())
	}
}

// workAndKill has all processes work, and kills one after a time if it works for so long.
func (s *service) workAndKill(kill time.Duration) {
	s.t.Helper()

	chosen := s.order % len(s.processes)
	doomed := s.processes[chosen].cmd.Process
	timer := time.AfterFunc(kill, func() { _ = doomed.Kill() })
	lived := false

	s.workTogether(func(i, _ int, _ []byte, err error) {
		if i == chosen {
			lived = timer.Stop() && err == nil
		}
	})

	if !lived {
		s.kill(chosen)
	}
}

// workTogether has all processes work at once, and hands what each answered to answered, one after the other.
func (s *service) workTogether(answered func(i, status int, text []byte, err error)) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
	)

	for i, p := range s.processes {
		group.Go(func() {
			status, text, err := s.requestOf(p, "POST", "/work", "")

			mu.Lock()
			defer mu.Unlock()

			answered(i, status, text, err)
		})
	}

	group.Wait()
}

func (s *service) must(err error) {
	s.t.Helper()

	if err != nil {
		s.t.Fatal(err)
	}
}

// tail returns the last of what the processes logged.
func (s *service) tail() string {
	const most = 6000

	text, _ := os.ReadFile(s.log)

	return string(text[max(0, len(text)-most):])
}

func newService(t *testing.T, o orders, key string) *service {
	t.Helper()

	s := &service{
		orders: o,
		t:      t,
		key:    key,
		log:    filepath.Join(t.TempDir(), "service.log"),
		now:    time.Now(),
	}
	s.http.Timeout = time.Minute
	t.Cleanup(s.end)

	for range max(o.Processes, 1) {
		s.processes = append(s.processes, s.boot())
	}

	return s
}
