package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A node that refuses two of three calls, whatever their rate, delays nothing by more than a minute: payments confirm,
// a payout is accepted at once and paid, and deposits are released, of a service of two processes on a chain that moves.
func TestTwoThirdsOfCallsRefusedStopNothing(t *testing.T) {
	t.Parallel()

	const within = time.Minute

	as := playRefused(t, 0)
	under := playRefused(t, 67)

	for _, kind := range slices.Sorted(maps.Keys(under.took)) {
		t.Logf("%-22s %8v where no call is refused, %8v where 67 %% are", kind, as.took[kind], under.took[kind])

		if late := under.took[kind] - as.took[kind]; late > within {
			t.Errorf("%s came %v later than where no call is refused", kind, late)
		}
	}

	if len(under.took) != len(as.took) {
		t.Errorf("of %d things %d were done", len(as.took), len(under.took))
	}
}

// played is what came of the scenario.
type played struct {
	took map[string]time.Duration // by what was done, from the moment on that it was asked for
}

// playRefused plays the scenario with a share of the calls refused, in percent. Time is that of a bubble, and stands
// still while the node works.
func playRefused(t *testing.T, percent int) (out played) {
	t.Helper()

	chain := newRefusedChain(t)

	synctest.Test(t, func(t *testing.T) {
		s := newRefusedService(t, chain)
		defer s.stop()

		s.fund()
		chain.refuse(percent)
		out.took = s.play()
		s.report(percent)
	})

	return out
}

// refusedChain is a chain that moves on in the time of a bubble, behind a node that refuses a share of the calls.
type refusedChain struct {
	node  *testenv.TronNode
	token abi.ABI

	mu      sync.Mutex
	percent int
	random  map[string]*rand.Rand // by what is asked
	calls   map[string]int        // answered and refused ones, by process and method
}

func newRefusedChain(t *testing.T) *refusedChain {
	t.Helper()

	outsider := testenv.WellKnownDevAccounts[0]
	c := &refusedChain{random: map[string]*rand.Rand{}, calls: map[string]int{}}

	var err error
	if c.token, err = abi.JSON(strings.NewReader(contracts.FalseOnSuccess.ABI)); err != nil {
		t.Fatal(err)
	}

	mint, err := c.token.Pack("mint", common.HexToAddress(outsider.Address), big.NewInt(1_000_000_000_000_000))
	must(t, err)

	c.node = testenv.Tron(t, testenv.TronOptions{
		SolidLag: 4,
		Balances: map[string]int64{string(tronAddress(outsider.Address)): 1_000_000_000_000_000},
		Contracts: []testenv.TronContract{
			{Bytecode: contracts.FalseOnSuccess.Bytecode, Calls: []string{hex.EncodeToString(mint)}},
		},
	})

	return c
}

// refuse has the node refuse a share of the calls from now on.
func (c *refusedChain) refuse(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.percent = percent
	clear(c.calls)
}

// latency is how long a call takes.
const latency = 20 * time.Millisecond

// callsOf returns the connection of a process. Each call has a connection of its own: one that is kept open would have
// the bubble's time stand still.
func (c *refusedChain) callsOf(process string) http.RoundTripper {
	base := &http.Transport{DisableKeepAlives: true}

	return roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}

		time.Sleep(latency)

		if c.isRefused(process, r.URL.Path, body) {
			return &http.Response{
				StatusCode: http.StatusTooManyRequests,
				Header:     http.Header{},
				Body:       io.NopCloser(strings.NewReader(`{"Error":"too many requests"}`)),
				Request:    r,
			}, nil
		}

		next := r.Clone(r.Context())
		next.Body = io.NopCloser(bytes.NewReader(body))

		answer, err := base.RoundTrip(next)
		if err != nil {
			return nil, err
		}

		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(text))

		return answer, err
	})
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// isRefused decides by what is asked and how often it was: it does not depend on the order of calls of one moment.
func (c *refusedChain) isRefused(process, path string, body []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, process, path, string(body))

	key := hex.EncodeToString(sum.Sum(nil))
	if c.random[key] == nil {
		c.random[key] = rand.New(rand.NewPCG(sum.Sum64(), 5))
	}

	refused := c.random[key].IntN(100) < c.percent

	if refused {
		c.calls[process+" refused"]++
	} else {
		c.calls[process+" answered"]++
		c.calls[path]++
	}

	return refused
}

// mine makes a block, at the bubble's time.
func (c *refusedChain) mine(t *testing.T) {
	t.Helper()

	state, err := c.node.Control(t.Context(), "state", nil)
	must(t, err)

	if state.Requests < 0 {
		t.Fatal("no state")
	}

	_, err = c.node.Control(t.Context(), "mine", map[string]any{"blocks": 1})
	must(t, err)
}

// refusedService is a service of two processes over one store, in a bubble.
type refusedService struct {
	t       *testing.T
	chain   *refusedChain
	api     http.Handler
	key     string
	slug    string
	master  chain.Address
	engines []*payments.Engine
	stop    func()
	requests int // that make something
	logs    *syncBuffer
	statuses []int // of payout requests
}

func newRefusedService(t *testing.T, c *refusedChain) *refusedService {
	t.Helper()

	s := &refusedService{t: t, chain: c, logs: &syncBuffer{}}

	state, err := c.node.Control(t.Context(), "state", nil)
	must(t, err)
	time.Sleep(time.Until(time.UnixMilli(state.Time).Add(time.Minute)))

	network := tron.Private(c.node.Genesis, chain.Asset{
		Symbol:    "USDT",
		Kind:      chain.Token,
		Contract:  chain.Address(c.node.Contracts[0]),
		Decimals:  6,
		MinAmount: chain.Units(100_000),
	})
	s.slug = network.Slug

	keys, err := hdkey.New(mnemonic, "")
	must(t, err)
	prices, err := rate.NewFixed(map[string]string{"TRX/USD": "0.25", "USDT/USD": "1"}, time.Minute, nil)
	must(t, err)

	store := memory.New()
	log := slog.New(slog.NewTextHandler(s.logs, nil))
	ctx, cancel := context.WithCancel(t.Context())

	var running sync.WaitGroup

	for _, process := range []string{"a", "b"} {
		driver, err := tron.New(tron.Config{
			Network:        network,
			Nodes:          []tron.Node{{URL: c.node.URL}},
			MaxEnergyPrice: 10_000,
			HTTPClient:     &http.Client{Transport: c.callsOf(process)},
			Logger:         log,
		})
		must(t, err)

		engine, err := payments.New(payments.Config{
			Store:        store,
			Drivers:      []payments.ChainDriver{driver},
			Signer:       keys,
			Rates:        prices,
			BaseURL:      "http://127.0.0.1",
			SecretKey:    bytes.Repeat([]byte{7}, 32),
			FeeAddresses: map[string]string{s.slug: string(tronAddress(feeAddress))},
			Process:      process,
			Log:          log,
		})
		must(t, err)

		s.engines = append(s.engines, engine)

		running.Go(func() {
			if err := engine.Run(ctx); err != nil {
				t.Error("Run:", err)
			}
		})
	}

	running.Go(func() { s.makeBlocks(ctx) })

	s.stop = func() { cancel(); running.Wait() }
	s.api = httpapi.Handler(s.engines[0], nil)

	shop, err := s.engines[0].Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	must(t, err)

	_, s.key, err = s.engines[0].Accounts.CreateKey(ctx, account.KeyParams{
		AccountID:  shop.ID,
		AllowedIPs: []string{"127.0.0.1"},
		Scopes:     account.AllScopes(),
	})
	must(t, err)

	return s
}

// makeBlocks makes a block every 3 seconds, with the bubble's time.
func (s *refusedService) makeBlocks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(3 * time.Second):
		}

		state, err := s.chain.node.Control(s.t.Context(), "state", nil)
		if err != nil {
			return
		}

		_ = state

		state, err = s.chain.node.Control(s.t.Context(), "mine", map[string]any{"blocks": 1})
		if err != nil {
			return
		}

		// The node's clock goes on while the bubble's stands still, and the other way round.
		apart := time.Now().Add(3*time.Second).UnixMilli() - state.Time

		if _, err = s.chain.node.Control(s.t.Context(), "skip", map[string]any{"millis": apart}); err != nil {
			return
		}
	}
}

// call makes a request and decodes an answer of status 200 into it.
func (s *refusedService) call(method, path string, body, answer any) (status int, text string) {
	s.t.Helper()

	var content []byte

	if body != nil {
		var err error

		content, err = json.Marshal(body)
		must(s.t, err)
	}

	r := httptest.NewRequest(method, path, bytes.NewReader(content))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Idempotency-Key", fmt.Sprint(path, s.requests))

	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}

	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)

	if w.Code == http.StatusOK {
		must(s.t, json.Unmarshal(w.Body.Bytes(), answer))
	}

	return w.Code, w.Body.String()
}

// must calls and fails the test on another status than 200.
func (s *refusedService) must(method, path string, body, answer any) {
	s.t.Helper()

	if status, text := s.call(method, path, body, answer); status != http.StatusOK {
		s.t.Fatalf("%s %s answered %d: %s", method, path, status, text)
	}
}

// pay sends coin or tokens from outside.
func (s *refusedService) pay(to chain.Address, asset string, v uint64) {
	s.t.Helper()

	p := testenv.TronPayment{
		PrivateKey: testenv.WellKnownDevAccounts[0].Key,
		To:         string(to),
		Amount:     int64(v),
	}

	if asset == "USDT" {
		to := common.HexToAddress(testenv.TronHex(string(to))[2:])
		data, err := s.chain.token.Pack("transfer", to, new(big.Int).SetUint64(v))
		must(s.t, err)

		p.To, p.Amount, p.Data, p.FeeLimit = s.chain.node.Contracts[0], 0, data, 1_000_000_000
	}

	_, err := s.chain.node.Send(s.t.Context(), p)
	must(s.t, err)
}

type refusedBalance struct {
	Asset   string        `json:"asset"`
	Address chain.Address `json:"address"`
	Balance string        `json:"balance"`
}

// fund brings the master wallet coin and tokens, and waits until it has them on record.
func (s *refusedService) fund() {
	s.t.Helper()

	balances := func() (held []refusedBalance) {
		var page struct{ Data []refusedBalance }

		s.must("GET", "/v1/balances", nil, &page)

		return page.Data
	}

	for s.master == "" {
		time.Sleep(time.Second)

		if held := balances(); len(held) > 0 {
			s.master = held[0].Address
		}
	}

	s.pay(s.master, "TRX", 5_000_000_000)
	s.pay(s.master, "USDT", 10_000_000_000)

	for range 120 {
		time.Sleep(time.Second)

		if !slices.ContainsFunc(balances(), func(b refusedBalance) bool { return b.Balance == "0" }) {
			return
		}
	}

	s.t.Fatalf("the master wallet holds %+v\n%s", balances(), s.logs)
}

type refusedPayout struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// play makes three payments to addresses of their own and a payout, and returns how long after their beginning each
// step was done.
func (s *refusedService) play() (took map[string]time.Duration) {
	s.t.Helper()

	began := time.Now()
	took = map[string]time.Duration{}
	done := func(what string) {
		if _, known := took[what]; !known {
			took[what] = time.Since(began).Round(time.Millisecond)
		}
	}

	for _, asset := range []string{"USDT", "TRX", "USDT"} {
		var made struct {
			Address chain.Address `json:"address"`
		}

		s.requests++
		s.must("POST", "/v1/deposit_addresses", map[string]any{"network": s.slug}, &made)
		s.pay(made.Address, asset, 30_000_000)
	}

	var out refusedPayout

	accepted := make(chan struct{})

	go func() {
		defer close(accepted)

		for out.ID == "" && len(s.statuses) < 20 {
			status, text := s.call("POST", "/v1/payouts", map[string]any{
				"asset":       "USDT",
				"network":     s.slug,
				"amount":      "5000000",
				"destination": tronAddress(testenv.WellKnownDevAccounts[3].Address),
			}, &out)
			s.statuses = append(s.statuses, status)

			if status != http.StatusOK {
				s.t.Logf("a payout request after %v: %d %s", time.Since(began), status, text)
				time.Sleep(time.Second)
			}
		}

		done("payout accepted")
	}()

	defer func() { <-accepted }()

	for range 4 * 60 * 6 {
		time.Sleep(250 * time.Millisecond)

		var page struct{ Data []paymentView }

		s.must("GET", "/v1/payments", nil, &page)

		confirmed, released := 0, 0

		for _, p := range page.Data {
			if p.Status != "confirmed" {
				continue
			}

			confirmed++

			done(fmt.Sprint("payment ", confirmed, " confirmed"))

			if p.Settlement != nil && p.Settlement.Status == "released" {
				released++

				done(fmt.Sprint("payment ", released, " released"))
			}
		}

		paid := false

		select {
		case <-accepted:
			var now refusedPayout

			s.must("GET", "/v1/payouts/"+out.ID, nil, &now)

			if paid = now.Status == "confirmed"; paid {
				done("payout confirmed")
			}
		default:
		}

		if paid && released == 3 {
			return took
		}
	}

	return took
}

// report prints what was called.
func (s *refusedService) report(percent int) {
	s.chain.mu.Lock()
	defer s.chain.mu.Unlock()

	s.t.Logf("%d %%: payout requests answered %v", percent, s.statuses)

	for _, name := range slices.Sorted(maps.Keys(s.chain.calls)) {
		s.t.Logf("%6d %s", s.chain.calls[name], name)
	}

	seen := map[string]int{}
	for line := range strings.Lines(s.logs.String()) {
		if _, rest, ok := strings.Cut(line, "level="); ok {
			if len(rest) > 230 {
				rest = rest[:230]
			}

			seen[strings.TrimSpace(rest)]++
		}
	}

	for _, line := range slices.Sorted(maps.Keys(seen)) {
		s.t.Logf("%4d %s", seen[line], line)
	}
}
