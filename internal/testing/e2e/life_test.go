package e2e

// This file is the service process of TestKill: the test binary, started again, as a whole payment
// service over a SQLite file and a node. It works on demand, in the time it is given, and
// it ends itself at the store commit or the call of the node that it was born to die at.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// lifeEnv holds the life of a service process as JSON.
const lifeEnv = "PAYMENTS_E2E_LIFE"

// life says over what a process works, and when it dies.
type life struct {
	DB, RPC string
	ChainID uint64
	// At is the number of the commit or call that ends it, from 1; 0: none. After: when that has
	// taken effect.
	At    int
	After bool
}

// moment is a store commit or a call of the node.
type moment struct {
	Name string
	// Calls is how many JSON-RPC calls it carries; 0 for a commit.
	Calls int
}

// reaper counts moments, and kills the process at one of them.
type reaper struct {
	life life
	mu   sync.Mutex
	seen []moment
}

// begin counts a moment, and is not survived before the last one. It returns the moment's number.
func (r *reaper) begin(m moment) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.seen = append(r.seen, m)
	if n := len(r.seen); n != r.life.At || r.life.After {
		return n
	}

	die(m)

	return 0
}

// end is not survived after the last moment.
func (r *reaper) end(n int, m moment) {
	if n == r.life.At && r.life.After {
		die(m)
	}
}

// die says where, and kills the process as the system does: nothing is flushed, closed or given back.
func die(m moment) {
	fmt.Printf("dying at %s\n", m.Name)

	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)

	select {}
}

// crashtest counts the commits of a store. The moment before one is when its closure has done everything.
type crashtest struct {
	store.Store
	reaper *reaper
}

func (m crashtest) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	var (
		n    int
		what moment
	)

	err := m.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		w := &writer{Tx: tx}
		if err := f(ctx, w); err != nil {
			return err
		}

		what = moment{Name: "commit" + w.of}
		n = m.reaper.begin(what)

		return nil
	})
	if err == nil {
		m.reaper.end(n, what)
	}

	return err
}

// writer names the records of the scenario that a transaction writes.
type writer struct {
	store.Tx
	of string
}

func (w *writer) PutCursor(ctx context.Context, c *scan.Cursor) error {
	w.of += " cursor"
	return w.Tx.PutCursor(ctx, c)
}

func (w *writer) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	w.of += " invoice"
	return w.Tx.PutInvoice(ctx, inv)
}

func (w *writer) PutPayments(ctx context.Context, p ...*invoice.Payment) error {
	w.of += " payments"
	return w.Tx.PutPayments(ctx, p...)
}

func (w *writer) PutSettlements(ctx context.Context, s ...*settlement.Settlement) error {
	w.of += " settlements"
	return w.Tx.PutSettlements(ctx, s...)
}

func (w *writer) PutSweep(ctx context.Context, r *settlement.Sweep) error {
	w.of += " release"
	return w.Tx.PutSweep(ctx, r)
}

func (w *writer) PutTransaction(ctx context.Context, t *wallet.Transaction) error {
	w.of += " transaction"
	return w.Tx.PutTransaction(ctx, t)
}

// transport counts the requests to the node. The moment after one is when its answer has arrived.
type transport struct{ reaper *reaper }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}

	req.Body = io.NopCloser(bytes.NewReader(body))

	// The final block is read beside others: no order of the two is a fact of the scenario.
	if bytes.Contains(body, []byte(`"finalized"`)) || bytes.Contains(body, []byte(`"safe"`)) {
		return http.DefaultTransport.RoundTrip(req)
	}

	what := momentOf(body)
	n := t.reaper.begin(what)

	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}

	t.reaper.end(n, what)

	resp.Body = io.NopCloser(bytes.NewReader(answer))

	return resp, nil
}

// momentOf names a request by the methods it calls.
func momentOf(body []byte) moment {
	type call struct{ Method string }

	var calls []call
	if json.Unmarshal(body, &calls) != nil {
		calls = make([]call, 1)
		if err := json.Unmarshal(body, &calls[0]); err != nil {
			panic("a request that is no JSON-RPC: " + err.Error())
		}
	}

	var methods []string
	for _, c := range calls {
		methods = append(methods, c.Method)
	}

	return moment{strings.Join(methods, "+"), len(calls)}
}

// nowHeader is the time at which a request is served, in milliseconds since 1970.
const nowHeader = "Test-Now"

// serve lives a life. Beside the API it answers /step (one Engine.Step), /moments and /audit to the test.
func serve(text string) {
	var l life
	check(json.Unmarshal([]byte(text), &l))

	go func() { // a process whose test is gone ends
		_, _ = io.Copy(io.Discard, os.Stdin)

		os.Exit(1)
	}()

	r := &reaper{life: l}

	var now atomic.Int64

	engine, db := assemble(l, r, func() time.Time { return time.UnixMilli(now.Load()).UTC() })
	defer func() { _ = db.Close() }()

	mux := http.NewServeMux()
	mux.Handle("/v1/", httpapi.Handler(engine, nil))
	mux.HandleFunc("POST /step", func(w http.ResponseWriter, req *http.Request) {
		did, err := engine.Step(req.Context())
		answer(w, did, err)
	})
	mux.HandleFunc("GET /moments", func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()

		answer(w, r.seen, nil)
	})
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, req *http.Request) {
		a, err := engine.Audit(req.Context())
		answer(w, a, err)
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("listening on %s\n", listener.Addr())
	check(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		at, err := strconv.ParseInt(req.Header.Get(nowHeader), 10, 64)
		check(err)
		now.Store(at)
		mux.ServeHTTP(w, req)
	})))
}

// assemble makes the engine of a service process. The first one over a file makes the merchant.
func assemble(l life, r *reaper, now func() time.Time) (*payments.Engine, store.Store) {
	db, err := sqlite.Open(l.DB)
	check(err)

	network := evm.Local(l.ChainID)
	driver, err := evm.New(
		evm.Config{Network: network, RPC: l.RPC, HTTPClient: &http.Client{Transport: transport{r}}},
	)
	check(err)
	keys, err := hdkey.New(mnemonic, "")
	check(err)
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Minute, now)
	check(err)
	engine, err := payments.New(payments.Config{
		Store:        crashtest{db, r},
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{network.Slug: common.HexToAddress(feeAddress).Hex()},
		Now:          now,
		Log:          slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	check(err)

	return engine, db
}

// check ends a service process that cannot go on.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the service process:", err)
		os.Exit(1)
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	check(json.NewEncoder(w).Encode(v))
}
