package evm_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// pacedNode is a node whose network makes a block in every pace, timed in whole seconds, and that takes delay for each
// request. Its blocks have a transaction each, as those of a rollup begin with deposits.
type pacedNode struct {
	*fakeNode
	pace, delay time.Duration
	began       time.Time

	count                           sync.Mutex
	requests, calls, blocks, tagged int
	sent                            []time.Time // when bytes were sent
}

// newPacedNode returns a node whose network exists for ten minutes.
func newPacedNode(pace, delay time.Duration) *pacedNode {
	n := &pacedNode{
		fakeNode: newFakeNode(-1),
		pace:     pace,
		delay:    delay,
		began:    time.Now().Add(-10 * time.Minute),
	}
	n.answer = func(c rpcCall) (any, bool) {
		n.count.Lock()
		defer n.count.Unlock()

		n.calls++

		switch {
		case c.Method == "eth_getBlockByNumber" && string(c.Params[1]) == "true":
			n.blocks++
		case c.param(0) == "finalized":
			n.tagged++
		case c.Method == "eth_sendRawTransaction":
			n.sent = append(n.sent, time.Now())
		}

		return nil, false
	}
	n.mine()

	return n
}

// tip returns the height of the newest block.
func (n *pacedNode) tip() uint64 { return uint64(time.Since(n.began) / n.pace) }

// mine makes the blocks that are due.
func (n *pacedNode) mine() {
	n.mu.Lock()
	defer n.mu.Unlock()

	for uint64(len(n.fakeNode.blocks)) <= n.tip() {
		height := len(n.fakeNode.blocks)
		n.extend("main")
		at := n.began.Add(time.Duration(height) * n.pace)
		n.fakeNode.blocks[height].header["timestamp"] = hexutil.Uint64(at.Unix())
		n.seal(height)
	}
}

func (n *pacedNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.count.Lock()
	n.requests++
	n.count.Unlock()

	time.Sleep(n.delay / 2)
	n.mine()
	n.fakeNode.ServeHTTP(w, r)
	time.Sleep(n.delay - n.delay/2)
}

// Row 76 of the pitfalls. At blocks of 200 ms an engine at rest asks its node at most five times a second, keeps up
// with the tip, and signs a payout at once.
func TestFastBlocksCostNoMoreCallsAndDelayNoSigning(t *testing.T) {
	for _, c := range []struct {
		name        string
		pace, delay time.Duration
		behind      time.Duration // of the last block that was read, at most
	}{
		{"200 ms, no delay", 200 * time.Millisecond, 0, 1500 * time.Millisecond},
		{"200 ms, 250 ms a call", 200 * time.Millisecond, 250 * time.Millisecond, 2500 * time.Millisecond},
		{"200 ms, 500 ms a call", 200 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second},
		{"2 s, 250 ms a call", 2 * time.Second, 250 * time.Millisecond, 5 * time.Second},
		{"12 s, 250 ms a call", 12 * time.Second, 250 * time.Millisecond, 16 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.pace < time.Second { // thousands of blocks are verified
				raced.Skip(t)
			}

			synctest.Test(t, func(t *testing.T) {
				fastBlocks(t, newPacedNode(c.pace, c.delay), c.behind)
			})
		})
	}
}

func fastBlocks(t *testing.T, node *pacedNode, behind time.Duration) {
	t.Helper()

	network := fakeNetwork()
	network.BlockTime = 2 * time.Second // wrong where the network sped up

	driver, err := evm.New(evm.Config{
		Network:    network,
		RPC:        "http://a",
		HTTPClient: &http.Client{Transport: fakeTransport{"a": node}},
	})
	if err != nil {
		t.Fatal(err)
	}

	keys, err := hdkey.New("legal winner thank year wave sausage worth useful legal winner thank yellow", "")
	if err != nil {
		t.Fatal(err)
	}

	rates, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDX/USD": "1"}, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}

	store := memory.New()

	e, err := engine.New(engine.Config{
		Store:     store,
		Drivers:   []chain.Driver{driver},
		Signer:    keys,
		Rates:     rates,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- e.Run(ctx) }()

	a, err := e.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	// What was paid in the ten minutes before the first address is looked for first.
	for range 600 {
		time.Sleep(time.Second)

		cursor, _, err := store.Cursor(ctx, network.Slug)
		if err != nil {
			t.Fatal(err)
		}

		if _, measured := scanstate.Pace(cursor); measured && cursor.At.Height+20 > node.tip() {
			break
		}
	}

	time.Sleep(30 * time.Second)

	node.count.Lock()
	requests, calls, blocks, tagged := node.requests, node.calls, node.blocks, node.tagged
	node.count.Unlock()

	worst := time.Duration(0)

	const span = 60 * time.Second
	for began := time.Now(); time.Since(began) < span; time.Sleep(50 * time.Millisecond) {
		cursor, _, err := store.Cursor(ctx, network.Slug)
		if err != nil {
			t.Fatal(err)
		}

		worst = max(worst, time.Duration(node.tip()-cursor.At.Height)*node.pace)

		if scanstate.Lags(cursor, 3, 30*time.Second) {
			t.Fatalf(
				"the network lags: nothing would be signed; read to %d, shown %d, tip %d",
				cursor.At.Height,
				cursor.Tip.Height,
				node.tip(),
			)
		}
	}

	node.count.Lock()
	perSecond := func(now, before int) float64 { return float64(now-before) / span.Seconds() }
	asked := perSecond(node.requests, requests)
	t.Logf(
		"at rest: %.1f requests a second with %.1f calls (%.1f blocks, %.1f finality tags); read %s behind at most",
		asked,
		perSecond(node.calls, calls),
		perSecond(node.blocks, blocks),
		perSecond(node.tagged, tagged),
		worst,
	)
	node.count.Unlock()

	if asked > 5 {
		t.Errorf("%.1f requests a second at rest", asked)
	}

	if worst > behind {
		t.Errorf("the last block that was read is %s behind the tip", worst)
	}

	owner := event.Owner{AccountID: a.ID}

	for range 100 { // the wallet's balance is read
		balances, err := e.Payouts.Balances(ctx, owner)
		if err != nil {
			t.Fatal(err)
		}

		if len(balances) > 0 && !balances[0].Available().IsZero() {
			break
		}

		time.Sleep(time.Second)
	}

	// The first payout of a wallet is signed after a look at what the network shows of it.
	for _, which := range []string{"first", "second"} {
		took, asked := node.pays(t, e, owner, network.Slug)
		t.Logf("the %s payout was sent %s after it was made, %d requests later", which, took, asked)

		if limit := 20*node.delay + 3*time.Second; took > limit {
			t.Errorf("the %s payout was sent %s after it was made, want %s", which, took, limit)
		}
	}

	cancel()

	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// pays makes a payout, and returns how long it took until its bytes were sent, and how often all workers asked
// meanwhile.
func (n *pacedNode) pays(
	t *testing.T,
	e *engine.Engine,
	owner event.Owner,
	network string,
) (took time.Duration, asked int) {
	t.Helper()

	before, requests := n.sentTimes()

	if _, err := e.Payouts.Create(t.Context(), payout.Params{
		Owner:       owner,
		Network:     network,
		Asset:       "ETH",
		Amount:      chain.Pow10(16),
		Destination: payee.Hex(),
	}); err != nil {
		t.Fatal(err)
	}

	for made := time.Now(); time.Since(made) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if sent, now := n.sentTimes(); len(sent) > len(before) {
			return sent[len(before)].Sub(made), now - requests
		}
	}

	t.Fatal("the payout was not sent within a minute")

	return 0, 0
}

// sentTimes returns when bytes were sent, and the number of requests.
func (n *pacedNode) sentTimes() (sent []time.Time, requests int) {
	n.count.Lock()
	defer n.count.Unlock()

	return slices.Clone(n.sent), n.requests
}
