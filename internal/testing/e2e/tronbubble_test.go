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
	"sync/atomic"
	"testing"
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

// This file holds a service on a fake Tron node in a bubble of testing/synctest: its time stands still while the node
// works, so that no wait depends on the machine.

const (
	// bubbleBlockTime is the time between two blocks, and bubbleLatency what a call takes.
	bubbleBlockTime = 3 * time.Second
	bubbleLatency   = 20 * time.Millisecond
)

// bubbleChain is a chain, behind a node that refuses a share of the calls.
type bubbleChain struct {
	node  *testenv.TronNode
	token abi.ABI
	seed  uint64

	mu      sync.Mutex
	percent int                   // of the calls that are refused
	random  map[string]*rand.Rand // by what is asked
	calls   map[string]int        // that were answered, by method; and refused ones
}

// newBubbleChain begins a chain, outside of the bubble.
func newBubbleChain(t *testing.T, seed uint64) *bubbleChain {
	t.Helper()

	outsider := testenv.WellKnownDevAccounts[0]
	c := &bubbleChain{seed: seed, random: map[string]*rand.Rand{}, calls: map[string]int{}}

	var err error

	c.token, err = abi.JSON(strings.NewReader(contracts.FalseOnSuccess.ABI))
	must(t, err)

	mint, err := c.token.Pack(
		"mint",
		common.HexToAddress(outsider.Address),
		big.NewInt(1_000_000_000_000_000),
	)
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
func (c *bubbleChain) refuse(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.percent = percent
	clear(c.calls)
}

// counts returns how many calls were answered since refuse, by method, and how many were refused.
func (c *bubbleChain) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return maps.Clone(c.calls)
}

// bubbleConnection is the connection of a process to the node. Each call has one of its own: one that is kept open
// would have the bubble's time stand still.
type bubbleConnection struct {
	*bubbleChain
	process string
	base    http.Transport
}

// RoundTrip makes a call.
func (c *bubbleConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	time.Sleep(bubbleLatency)

	if c.isRefused(c.process, r.URL.Path, body) {
		return &http.Response{
			StatusCode: http.StatusTooManyRequests,
			Header:     http.Header{},
			Body:       io.NopCloser(strings.NewReader(`{"Error":"too many requests"}`)),
			Request:    r,
		}, nil
	}

	next := r.Clone(r.Context())
	next.Body = io.NopCloser(bytes.NewReader(body))

	answer, err := c.base.RoundTrip(next)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()

	text, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(text))

	return answer, err
}

// isRefused decides by what is asked and how often it was, so that the order of the calls of one moment is no matter.
func (c *bubbleChain) isRefused(process, path string, body []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	what := process + path + string(body)
	if c.random[what] == nil {
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, what)
		c.random[what] = rand.New(rand.NewPCG(sum.Sum64(), c.seed))
	}

	if c.random[what].IntN(100) < c.percent {
		c.calls["refused"]++
		return true
	}

	c.calls[strings.TrimPrefix(path, "/wallet")]++

	return false
}

// bubbleService is a service of two processes over one store, in a bubble, with one merchant.
type bubbleService struct {
	t       *testing.T
	chain   *bubbleChain
	slug    string
	engines []*payments.Engine
	api     http.Handler
	key     string
	made    atomic.Int64 // objects
	logs    *syncBuffer
	stop    func()
}

// newBubbleService runs a service until stop is called, and makes blocks.
func newBubbleService(t *testing.T, c *bubbleChain) *bubbleService {
	t.Helper()

	s := &bubbleService{t: t, chain: c, logs: &syncBuffer{}}

	// A bubble's clock begins in the year 2000.
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

	config := payments.Config{
		Store:        memory.New(),
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "http://127.0.0.1",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{s.slug: string(tronAddress(feeAddress))},
		Log:          slog.New(slog.NewTextHandler(s.logs, nil)),
	}

	ctx, cancel := context.WithCancel(t.Context())

	var running sync.WaitGroup

	s.stop = func() {
		cancel()
		running.Wait()

		if t.Failed() {
			t.Log("logs of the service:\n" + s.logs.String())
		}
	}

	running.Go(func() { s.makeBlocks(ctx) })

	for _, process := range []string{"a", "b"} {
		connection := &bubbleConnection{bubbleChain: c, process: process}
		connection.base.DisableKeepAlives = true

		driver, err := tron.New(tron.Config{
			Network:    network,
			Nodes:      []tron.Node{{URL: c.node.URL}},
			HTTPClient: &http.Client{Transport: connection},
			Logger:     config.Log,
		})
		must(t, err)

		config.Process, config.Drivers = process, []payments.ChainDriver{driver}
		engine, err := payments.New(config)
		must(t, err)

		s.engines = append(s.engines, engine)

		running.Go(func() {
			if err := engine.Run(ctx); err != nil {
				t.Error("Run:", err)
			}
		})
	}

	s.addMerchant()

	return s
}

// addMerchant makes an account with a key for everything.
func (s *bubbleService) addMerchant() {
	s.t.Helper()

	s.api = httpapi.Handler(s.engines[0], nil)

	shop, err := s.engines[0].Accounts.CreateAccount(s.t.Context(), account.Settings{Name: "Corner Shop"})
	must(s.t, err)

	_, s.key, err = s.engines[0].Accounts.CreateKey(s.t.Context(), account.KeyParams{
		AccountID:  shop.ID,
		AllowedIPs: []string{"127.0.0.1"},
		Scopes:     account.AllScopes(),
	})
	must(s.t, err)
}

// makeBlocks makes a block every bubbleBlockTime, dated by the bubble's clock.
func (s *bubbleService) makeBlocks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(bubbleBlockTime):
		}

		state, err := s.chain.node.Control(ctx, "mine", map[string]any{"blocks": 1})
		if err == nil {
			apart := time.Now().Add(bubbleBlockTime).UnixMilli() - state.Time
			_, err = s.chain.node.Control(ctx, "skip", map[string]any{"millis": apart})
		}

		if err != nil && ctx.Err() == nil {
			s.t.Error("making a block:", err)
		}
	}
}

// must makes a request to the first process, which has to answer 200.
func (s *bubbleService) must(method, path string, body, answer any) {
	s.t.Helper()

	content, err := json.Marshal(body)
	must(s.t, err)

	r := httptest.NewRequest(method, path, bytes.NewReader(content))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Authorization", "Bearer "+s.key)

	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprint(s.made.Add(1)))
	}

	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)

	if w.Code != http.StatusOK {
		s.t.Errorf("%s %s answered %d: %s", method, path, w.Code, w.Body)
		return
	}

	must(s.t, json.Unmarshal(w.Body.Bytes(), answer))
}

// pay sends coin or tokens from outside; it waits in the pool.
func (s *bubbleService) pay(to chain.Address, asset string, sum uint64) {
	s.t.Helper()

	p := testenv.TronPayment{
		PrivateKey: testenv.WellKnownDevAccounts[0].Key,
		To:         string(to),
		Amount:     int64(sum),
	}

	if asset == "USDT" {
		receiver := common.HexToAddress(testenv.TronHex(string(to))[2:])
		data, err := s.chain.token.Pack("transfer", receiver, new(big.Int).SetUint64(sum))
		must(s.t, err)

		p.To, p.Amount, p.Data, p.FeeLimit = s.chain.node.Contracts[0], 0, data, 1_000_000_000
	}

	_, err := s.chain.node.Send(s.t.Context(), p)
	must(s.t, err)
}

// fund brings the master wallet coin and tokens, and waits until they are on record.
func (s *bubbleService) fund() {
	s.t.Helper()

	type holding struct {
		Address chain.Address
		Balance string
	}

	funded := false

	for range 120 {
		var page struct{ Data []holding }

		s.must(http.MethodGet, "/v1/balances", nil, &page)

		switch {
		case len(page.Data) == 0:
		case !funded:
			s.pay(page.Data[0].Address, "TRX", 5_000_000_000)
			s.pay(page.Data[0].Address, "USDT", 10_000_000_000)

			funded = true
		case !slices.ContainsFunc(page.Data, func(h holding) bool { return h.Balance == "0" }):
			return
		}

		time.Sleep(time.Second)
	}

	s.t.Fatal("the master wallet is not funded after 2 minutes")
}
