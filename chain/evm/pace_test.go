package evm_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
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

	count sync.Mutex
	asked asked
	sent  []time.Time // when bytes were sent
}

// asked is what a node was asked: HTTP requests, and the calls in them by method. A provider bills each call.
type asked struct {
	requests int
	calls    map[string]int
}

// since returns what was asked after an earlier count.
func (a asked) since(before asked) asked {
	more := asked{requests: a.requests - before.requests, calls: map[string]int{}}
	for method, n := range a.calls {
		more.calls[method] = n - before.calls[method]
	}

	return more
}

// sum returns the number of calls.
func (a asked) sum() (all int) {
	for _, n := range a.calls {
		all += n
	}

	return all
}

// table returns the calls a second by method, the most first.
func (a asked) table(span time.Duration) string {
	var text strings.Builder

	for _, method := range slices.SortedFunc(maps.Keys(a.calls), func(one, other string) int {
		return cmp.Or(cmp.Compare(a.calls[other], a.calls[one]), cmp.Compare(one, other))
	}) {
		if n := a.calls[method]; n > 0 {
			fmt.Fprintf(&text, "\n    %-40s %5.2f", method, float64(n)/span.Seconds())
		}
	}

	return text.String()
}

// countedAs returns the name under which a call is counted: that of its method, and what kind of block it is about.
func countedAs(c rpcCall) string {
	if c.Method != "eth_getBlockByNumber" {
		return c.Method
	}

	what := c.param(0)
	if strings.HasPrefix(what, "0x") {
		what = "by height"
	}

	if string(c.Params[1]) == "true" {
		what += ", whole"
	}

	return c.Method + " " + what
}

// newPacedNode returns a node whose network exists for ten minutes.
func newPacedNode(pace, delay time.Duration) *pacedNode {
	n := &pacedNode{
		fakeNode: newFakeNode(-1),
		pace:     pace,
		delay:    delay,
		began:    time.Now().Add(-10 * time.Minute),
		asked:    asked{calls: map[string]int{}},
	}
	n.answer = func(c rpcCall) (any, bool) {
		n.count.Lock()
		defer n.count.Unlock()

		n.asked.calls[countedAs(c)]++

		if c.Method == "eth_sendRawTransaction" {
			n.sent = append(n.sent, time.Now())
		}

		return nil, false
	}
	n.mine()

	return n
}

// counted returns what was asked until now.
func (n *pacedNode) counted() asked {
	n.count.Lock()
	defer n.count.Unlock()

	return asked{requests: n.asked.requests, calls: maps.Clone(n.asked.calls)}
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
	n.asked.requests++
	n.count.Unlock()

	time.Sleep(n.delay / 2)
	n.mine()

	shown := n.fakeNode
	if r.URL.Hostname() == "b" { // two blocks behind
		n.mu.Lock()
		shown = &fakeNode{chainID: n.chainID, blocks: n.blocks[:len(n.blocks)-2], answer: n.answer}
		n.mu.Unlock()
	}

	shown.ServeHTTP(w, r)
	time.Sleep(n.delay - n.delay/2)
}

// callsPerBlock are the calls that a block costs: its body and its receipts, without which its roots are not verified.
const callsPerBlock = 2

// paceCase is a network at rest, and what reading it may cost.
type paceCase struct {
	pace, delay time.Duration // of blocks, and of each request
	nodes       int

	requests float64       // a second, at most
	beside   float64       // calls a second beside those of blocks, at most
	behind   time.Duration // of the last block that was read, at most
}

// Row 76 of the pitfalls. What an engine at rest asks of its nodes beside the blocks does not grow with their pace. At
// 200 ms the last block that was read is at most 2 s old where a call takes 500 ms, half a second more while a second
// node is two blocks behind and is compared, and a payout is signed at once.
func TestFastBlocksCostNoMoreCallsAndDelayNoSigning(t *testing.T) {
	for _, c := range []paceCase{
		{200 * time.Millisecond, 0, 1, 2.5, 2, 1200 * time.Millisecond},
		{200 * time.Millisecond, 250 * time.Millisecond, 1, 2.5, 2, 1500 * time.Millisecond},
		{200 * time.Millisecond, 500 * time.Millisecond, 1, 2.5, 2, 2 * time.Second},
		{200 * time.Millisecond, 500 * time.Millisecond, 2, 4, 4.5, 2500 * time.Millisecond},
		{450 * time.Millisecond, 500 * time.Millisecond, 2, 4, 4.5, 2500 * time.Millisecond},
		{2 * time.Second, 250 * time.Millisecond, 1, 3.5, 5, 3 * time.Second},
		{12 * time.Second, 250 * time.Millisecond, 1, 1, 1.5, 13 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s, %s a call, %d nodes", c.pace, c.delay, c.nodes), func(t *testing.T) {
			if c.pace < time.Second { // thousands of blocks are verified
				raced.Skip(t)
			}

			synctest.Test(t, func(t *testing.T) { fastBlocks(t, c) })
		})
	}
}

func fastBlocks(t *testing.T, c paceCase) {
	t.Helper()

	node := newPacedNode(c.pace, c.delay)

	network := fakeNetwork()
	network.BlockTime = 2 * time.Second // wrong where the network sped up

	driver, err := evm.New(evm.Config{
		Network:    network,
		RPCs:       []string{"http://a", "http://b"}[:c.nodes],
		HTTPClient: &http.Client{Transport: fakeTransport{"a": node, "b": node}},
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

	before := node.counted()
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

	atRest := node.counted().since(before)
	perSecond := func(n int) float64 { return float64(n) / span.Seconds() }
	besideBlocks := perSecond(atRest.sum()) - callsPerBlock/node.pace.Seconds()

	t.Logf(
		"at rest: %.1f requests and %.1f calls a second, %.1f beside the %d of each block; read %s behind at most%s",
		perSecond(
			atRest.requests,
		),
		perSecond(atRest.sum()),
		besideBlocks,
		callsPerBlock,
		worst,
		atRest.table(span),
	)

	if got := perSecond(atRest.requests); got > c.requests {
		t.Errorf("%.1f requests a second at rest, want at most %.1f", got, c.requests)
	}

	if besideBlocks > c.beside {
		t.Errorf(
			"%.1f calls a second at rest beside those of blocks, want at most %.1f",
			besideBlocks,
			c.beside,
		)
	}

	if worst > c.behind {
		t.Errorf("the last block that was read is %s behind the tip, want at most %s", worst, c.behind)
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

	return slices.Clone(n.sent), n.asked.requests
}
