//go:build unix

package solana_test

// Nodes that lag, limit, prune and omit: a proxy in front of a real node does each.

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/fault"
)

// faultyNode is a node whose answers a test can change.
type faultyNode struct {
	*httptest.Server
	mu sync.Mutex
	// the new result, and an HTTP status unless it is 0
	change func(method string, params []any, result any) (any, int)
	calls  map[string]int
}

func newFaultyNode(t *testing.T, n *node) *faultyNode {
	t.Helper()

	f := &faultyNode{calls: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)

		var call struct {
			Method string
			Params []any
		}
		if err := json.Unmarshal(body, &call); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		resp, err := http.Post(n.URL, "application/json", bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()

		var answer map[string]any

		d := json.NewDecoder(resp.Body)
		d.UseNumber()

		if err := d.Decode(&answer); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}

		f.mu.Lock()
		defer f.mu.Unlock()

		f.calls[call.Method]++
		if f.change != nil {
			result, status := f.change(call.Method, call.Params, answer["result"])
			if status != 0 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)

				return
			}

			answer["result"] = result

			if code, refused := result.(refusal); refused {
				delete(answer, "result")
				answer["error"] = map[string]any{"code": int(code), "message": "refused"}
			}
		}

		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(f.Close)

	return f
}

// refusal is a result in whose place the node refuses with a JSON-RPC error code.
type refusal int

func (f *faultyNode) set(change func(method string, params []any, result any) (any, int)) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.change = change
}

func (f *faultyNode) called(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.calls[method]
}

// scenario is a good node with payments to one address, one per block, and a faulty proxy of it.
type scenario struct {
	*node
	bad      *faultyNode
	to       chain.Address
	from     uint64 // the first height with a payment
	payments []string
}

func newScenario(t *testing.T, payments int) *scenario {
	t.Helper()
	n := startNode(t, solanago.TokenProgramID)
	s := &scenario{node: n, bad: newFaultyNode(t, n), to: newAddress(t)}
	head, err := n.driver(t).Head(t.Context())
	must(t, err)

	s.from = head.Tip.Height + 1

	for i := range payments {
		native, amount := chain.Asset{Kind: chain.Native}, chain.Units(1_000_000+uint64(i))
		hash, err := controls{n}.Pay(t.Context(), s.to, native, amount)
		must(t, err)

		s.payments = append(s.payments, hash)

		must(t, n.SolanaNode.Skip(i%3)) // some slots have no block
		must(t, n.SolanaNode.Mine(1))
	}

	return s
}

// driver asks the faulty node first, and the good one too if it is there.
func (s *scenario) driver(t *testing.T, withGood bool) *solana.BlockDriver {
	return s.node.driver(t, inBubble, func(c *solana.Config) {
		c.RPC, c.Timeout = s.bad.URL, 5*time.Second
		if withGood {
			c.RPCs = []string{s.node.URL}
		}
	})
}

// read reads all payments by blocks, and by history; it fails the test when an answer lacks one or
// has one twice.
func (s *scenario) read(t *testing.T, d *solana.BlockDriver) (byBlocks, byHistory error) {
	t.Helper()

	to := s.from + uint64(len(s.payments)) - 1
	whole := func(blocks []chain.Block, err error) error {
		t.Helper()

		if err != nil {
			return err
		}

		var got []string

		for _, b := range blocks {
			for _, moved := range b.Transfers {
				if moved.To == s.to {
					got = append(got, moved.TxHash)
				}
			}
		}

		if fmt.Sprint(got) != fmt.Sprint(s.payments) {
			t.Errorf("payments %v, want %v", got, s.payments)
		}

		return nil
	}

	var blocks []chain.Block

	for next := s.from; next <= to; {
		part, err := d.Blocks(t.Context(), next, to)
		if byBlocks = err; err != nil {
			break
		}

		blocks, next = append(blocks, part...), next+uint64(len(part))
	}

	byBlocks = whole(blocks, byBlocks)
	byHistory = whole(d.TransfersTo(t.Context(), []chain.Address{s.to}, s.from, to))

	return byBlocks, byHistory
}

// TestMisbehaviourLosesNothing reads the same payments from a node that misbehaves. Alone it is an
// outage; beside a good node it has no effect. No answer is ever incomplete.
func TestMisbehaviourLosesNothing(t *testing.T) {
	s := newScenario(t, 7)
	list := func(v any) []any { l, _ := v.([]any); return l }
	without := func(l []any, i int) []any {
		if len(l) <= i {
			return l
		}

		return append(append([]any{}, l[:i]...), l[i+1:]...)
	}

	leavingOut := func(payment int) func(string, []any, any) (any, int) {
		return func(m string, _ []any, r any) (any, int) {
			if m != "getSignaturesForAddress" {
				return r, 0
			}

			kept := []any{}

			for _, entry := range list(r) {
				if entry.(map[string]any)["signature"] != s.payments[payment] {
					kept = append(kept, entry)
				}
			}

			return kept, 0
		}
	}
	for _, c := range []struct {
		name   string
		change func(method string, params []any, result any) (any, int)
		// alone says what a driver with this node only may answer: whether blocks, and whether
		// histories, can still be read.
		blocks, history bool
	}{
		{"healthy", nil, true, true},
		{
			"429 with Retry-After",
			func(string, []any, any) (any, int) { return nil, http.StatusTooManyRequests },
			false,
			false,
		},
		{"the newest signature is missing", leavingOut(6), true, false},
		{"a signature in the middle is missing", leavingOut(3), true, false},
		{"the oldest signature is missing", leavingOut(0), true, false},
		{
			"no signatures at all",
			func(m string, _ []any, r any) (any, int) {
				if m == "getSignaturesForAddress" {
					return []any{}, 0
				}

				return r, 0
			},
			true,
			false,
		},
		{
			"pages shorter than asked for",
			func(m string, _ []any, r any) (any, int) {
				if l := list(r); m == "getSignaturesForAddress" && len(l) > 2 {
					return l[:2], 0
				}

				return r, 0
			},
			true,
			true,
		},
		{
			"pages that do not go on",
			func(m string, p []any, r any) (any, int) {
				if m == "getSignaturesForAddress" && strings.Contains(fmt.Sprint(p), "before") {
					return []any{map[string]any{"signature": s.payments[6], "slot": 1 << 40, "err": nil}}, 0
				}

				return r, 0
			},
			true,
			false,
		},
		{
			"a truncated list of slots",
			func(m string, _ []any, r any) (any, int) {
				if l := list(r); m == "getBlocksWithLimit" && len(l) > 2 {
					return l[:len(l)-1], 0
				}

				return r, 0
			},
			false,
			true,
		},
		{
			"a list of slots with a gap",
			func(m string, _ []any, r any) (any, int) {
				if l := list(r); m == "getBlocksWithLimit" && len(l) > 2 {
					return append(without(l, 1), json.Number("99999999")), 0
				}

				return r, 0
			},
			false,
			true,
		},
		{
			"transactions that are not there",
			func(m string, _ []any, r any) (any, int) {
				if m == "getTransaction" {
					return nil, 0
				}

				return r, 0
			},
			true,
			false,
		},
		{
			"blocks without transactions",
			func(m string, _ []any, r any) (any, int) {
				if b, ok := r.(map[string]any); m == "getBlock" && ok {
					delete(b, "transactions")
				}

				return r, 0
			},
			false,
			true,
		},
		{
			"an amount that came from nowhere",
			func(m string, _ []any, r any) (any, int) {
				for _, meta := range metasOf(r) {
					after := meta["postBalances"].([]any)
					n, _ := after[len(after)-1].(json.Number).Int64()
					after[len(after)-1] = json.Number(strconv.FormatInt(n+1, 10))
				}

				return r, 0
			},
			false,
			false,
		},
		{
			"transactions twice",
			func(m string, _ []any, r any) (any, int) {
				if b, ok := r.(map[string]any); m == "getBlock" && ok && b["transactions"] != nil {
					b["transactions"] = append(list(b["transactions"]), list(b["transactions"])...)
				}

				return r, 0
			},
			false,
			true,
		},
		{
			"another parent",
			func(m string, _ []any, r any) (any, int) {
				if b, ok := r.(map[string]any); m == "getBlock" && ok {
					b["previousBlockhash"] = b["blockhash"]
				}

				return r, 0
			},
			false,
			true,
		},
		{"transactions of a later version", laterVersion, true, true},
		{
			"transactions of a later version, without their accounts",
			func(m string, p []any, r any) (any, int) {
				r, _ = laterVersion(m, p, r)
				if !strings.Contains(fmt.Sprint(p), "base64") {
					return nil, 0
				}

				return r, 0
			},
			false,
			false,
		},
		{
			"answers without results",
			func(m string, _ []any, r any) (any, int) { return map[string]any{}, 0 },
			false,
			false,
		},
		{
			"half of every second answer",
			func(m string, _ []any, r any) (any, int) {
				if s.bad.calls[m]%2 == 0 {
					return "…", 0
				}

				return r, 0
			},
			false,
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.bad.set(nil)

				alone, both := s.driver(t, false), s.driver(t, true)
				for _, d := range []*solana.BlockDriver{alone, both} {
					_, err := d.Head(t.Context()) // the genesis hash is known
					must(t, err)
				}

				s.bad.set(c.change)

				byBlocks, byHistory := s.read(t, alone)
				for what, got := range map[string]struct {
					err  error
					able bool
				}{"blocks": {byBlocks, c.blocks}, "history": {byHistory, c.history}} {
					if got.able && got.err != nil {
						t.Errorf("alone, by %s: %v", what, got.err)
					}

					if !got.able && !errors.Is(got.err, fault.Unavailable) {
						t.Errorf("alone, by %s: %v, want fault.Unavailable", what, got.err)
					}
				}

				if byBlocks, byHistory = s.read(t, both); byBlocks != nil || byHistory != nil {
					t.Errorf("beside a good node: %v, %v", byBlocks, byHistory)
				}
			})
		})
	}
}

// metasOf returns the results of the transactions in an answer.
func metasOf(result any) (metas []map[string]any) {
	answer, _ := result.(map[string]any)
	txs, _ := answer["transactions"].([]any)

	for _, tx := range append(txs, answer) {
		if meta, ok := tx.(map[string]any)["meta"].(map[string]any); ok {
			metas = append(metas, meta)
		}
	}

	return metas
}

// laterVersion makes the bytes of transactions those of a version that does not exist yet.
func laterVersion(_ string, _ []any, result any) (any, int) {
	answer, _ := result.(map[string]any)
	txs, _ := answer["transactions"].([]any)

	for _, tx := range append(txs, result) {
		encoded, _ := tx.(map[string]any)
		if pair, ok := encoded["transaction"].([]any); ok { // base64
			raw, _ := base64.StdEncoding.DecodeString(pair[0].(string))
			raw[0] |= 0x80
			pair[0] = base64.StdEncoding.EncodeToString(raw)
		}
	}

	return result, 0
}

// TestReadingsSayWhoSigned compares what blocks and histories say of two wallets, failed transactions included.
func TestReadingsSayWhoSigned(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	s := newSender(t, n)
	from, payer := s.party(chain.RoleMaster, 1), s.party(chain.RoleMaster, 2)
	s.fund(from, sol, 0)
	s.fund(payer, sol, 0)

	head, err := s.d.Head(t.Context())
	must(t, err)

	tx := s.sign(chain.Order{
		From:     from,
		FeePayer: &payer,
		Outputs:  []chain.Output{{To: newAddress(t), AssetID: s.native().ID, Amount: chain.Units(1_000_000)}},
	})
	must(t, s.d.Broadcast(t.Context(), tx))
	must(t, n.SolanaNode.Mine(1))

	failing, err := controls{n}.PayFailing(t.Context(), newAddress(t), n.asset, chain.Units(1))
	must(t, err)
	must(t, n.SolanaNode.Mine(1))

	now, err := s.d.Head(t.Context())
	must(t, err)

	blocks, err := s.d.Blocks(t.Context(), head.Tip.Height+1, now.Tip.Height)
	must(t, err)

	outsider := chain.Address(n.authority.PublicKey().String())
	found := map[chain.Spend]int{}

	for _, block := range blocks {
		for _, spend := range block.Spent {
			found[spend]++
		}

		if block.Unverified != "" {
			t.Errorf("block %d is unverified: %s", block.Height, block.Unverified)
		}
	}

	want := []chain.Spend{
		{Sender: from.Address, By: tx.TxHash, Shared: true},
		{Sender: payer.Address, By: tx.TxHash, Shared: true},
		{Sender: outsider, By: failing, Shared: true, Failed: true},
	}
	for _, spend := range want {
		if found[spend] != 1 {
			t.Errorf("the blocks say %d times that %+v; all is %+v", found[spend], spend, found)
		}
	}

	for _, by := range []chain.Address{from.Address, payer.Address, outsider} {
		history, err := s.d.TransfersTo(t.Context(), []chain.Address{by}, head.Tip.Height+1, now.Tip.Height)
		must(t, err)

		for _, block := range history {
			for _, spend := range block.Spent {
				if found[spend]--; spend.Sender != by {
					t.Errorf("asked of %s, the history says %+v", by, spend)
				}
			}
		}
	}

	for _, spend := range want {
		if found[spend] != 0 {
			t.Errorf("the histories do not say that %+v", spend)
		}
	}
}

func TestABlockIsConfirmedByAnotherNode(t *testing.T) {
	s := newScenario(t, 2)
	both := s.driver(t, true)
	head, err := both.Head(t.Context())
	must(t, err)

	at := head.Tip
	agreed := func(d chain.Agreed) error {
		_, err := d.AgreedBlock(t.Context(), at, nil)
		return err
	}

	must(t, agreed(s.driver(t, false))) // one node alone
	must(t, agreed(both))

	s.bad.set(func(m string, _ []any, r any) (any, int) {
		if b, ok := r.(map[string]any); m == "getBlock" && ok {
			b["blockhash"] = b["previousBlockhash"]
		}

		return r, 0
	})

	if err := agreed(both); fault.Code(err) != "nodes_disagree" {
		t.Errorf("of a node with another block: %v", err)
	}

	s.bad.set(func(string, []any, any) (any, int) { return nil, http.StatusBadGateway })

	if err := agreed(both); fault.Code(err) != "nodes_missing" {
		t.Errorf("without a second node: %v", err)
	}
}

// TestRetryAfterIsHeeded does not call a node before its Retry-After.
func TestRetryAfterIsHeeded(t *testing.T) {
	s := newScenario(t, 1)

	synctest.Test(t, func(t *testing.T) { testRetryAfter(t, s) })
}

func testRetryAfter(t *testing.T, s *scenario) {
	t.Helper()

	d := s.driver(t, false)
	_, err := d.Head(t.Context())
	must(t, err)
	s.bad.set(func(string, []any, any) (any, int) { return nil, http.StatusTooManyRequests })

	_, err = d.Head(t.Context())
	if !errors.Is(err, fault.Unavailable) || fault.RetryAfter(err) <= 0 {
		t.Fatalf("%v, retry after %v", err, fault.RetryAfter(err))
	}

	s.bad.set(nil)
	asked := s.bad.called("getSlot")

	began := time.Now()

	_, err = d.Head(t.Context())
	if err != nil || s.bad.called("getSlot") == asked || time.Since(began) < 500*time.Millisecond {
		t.Errorf("asked %v after it wanted to be left alone for a second: %v", time.Since(began), err)
	}

	patient := s.node.driver(t, inBubble, func(c *solana.Config) { c.RPC, c.Attempts = s.bad.URL, 5 })
	s.bad.set(func(m string, _ []any, r any) (any, int) {
		if s.bad.calls["getSlot"] < asked+2 && m == "getSlot" {
			return nil, http.StatusTooManyRequests
		}

		return r, 0
	})

	if _, err := patient.Head(t.Context()); err != nil {
		t.Errorf("a driver with patience: %v", err)
	}
}

// TestNodeBehind puts a node that stopped some blocks ago before one that goes on.
func TestNodeBehind(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	late := newFaultyNode(t, n)
	d := n.driver(t, func(c *solana.Config) { c.RPC, c.RPCs = late.URL, []string{n.URL} })
	old, err := d.Head(t.Context())
	must(t, err)

	var slot uint64
	must(t, n.Call(&slot, "getSlot", map[string]string{"commitment": "confirmed"}))
	late.set(func(m string, p []any, r any) (any, int) {
		switch m {
		case "getSlot":
			return slot, 0
		case "getSignaturesForAddress":
			if strings.Contains(fmt.Sprint(p), "minContextSlot") {
				return nil, http.StatusServiceUnavailable
			}
		}

		return r, 0
	})

	to := newAddress(t)
	hash, err := controls{n}.Pay(t.Context(), to, chain.Asset{Kind: chain.Native}, chain.Units(1_000_000))
	must(t, err)
	must(t, n.SolanaNode.Mine(3))

	if head, err := n.driver(t).Head(t.Context()); err != nil || head.Tip.Height != old.Tip.Height+3 {
		t.Fatalf("%+v, %v", head, err)
	}

	ref, err := d.RefAt(t.Context(), old.Tip.Height+1)
	if err != nil || ref.Height != old.Tip.Height+1 {
		t.Errorf("a block that one node has not reached: %+v, %v", ref, err)
	}

	blocks, err := d.TransfersTo(t.Context(), []chain.Address{to}, old.Tip.Height+1, old.Tip.Height+3)
	if err != nil || len(blocks) != 1 || blocks[0].Transfers[0].TxHash != hash {
		t.Errorf("a payment that one node has not seen: %+v, %v", blocks, err)
	}

	head, err := d.Head(t.Context())
	if err != nil || head.Tip.Height != old.Tip.Height+3 {
		t.Errorf("the head with one node behind: %+v, %v", head, err)
	}

	only := n.driver(t, func(c *solana.Config) { c.RPC = late.URL })
	if _, err := only.RefAt(t.Context(), old.Tip.Height+1); !errors.Is(err, fault.NotFound) {
		t.Errorf("alone, above its tip: %v", err)
	}
}

// TestSecretsStayInside lets a node with a key in its URL fail.
func TestSecretsStayInside(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	d := n.driver(t, func(c *solana.Config) {
		c.RPC = "http://user:hunter2secret@127.0.0.1:1/v2/abcdef1234567890?api-key=zyxwvut9876"
	})

	_, err := d.Head(context.Background())
	if err == nil {
		t.Fatal("no error without a node")
	}

	for _, secret := range []string{"hunter2secret", "abcdef1234567890", "zyxwvut9876"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v holds %q", err, secret)
		}
	}
}

// TestLongGaps finds blocks on both sides of a long stretch of slots without any.
func TestLongGaps(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	first, err := n.driver(t).Head(t.Context())
	must(t, err)

	for _, gap := range []int{1, 70, 5_000} {
		must(t, n.SolanaNode.Skip(gap))
		must(t, n.SolanaNode.Mine(2))
	}

	d := n.driver(t)
	for height := uint64(0); height <= first.Tip.Height+6; height++ {
		ref, err := n.driver(t).RefAt(t.Context(), height) // one that remembers nothing
		if err != nil || ref.Height != height {
			t.Errorf("block %d is %+v, %v", height, ref, err)
		}

		again, err := d.RefAt(t.Context(), height)
		if err != nil || again != ref {
			t.Errorf("block %d is %+v, %v", height, again, err)
		}
	}
}

// TestHistoryReadInRanges reads a history range by range with one driver, while payments continue: each
// is returned once.
func TestHistoryReadInRanges(t *testing.T) {
	s := newScenario(t, 6)
	d := s.node.driver(t)

	var got []string

	last := s.from + 5
	for from := s.from; from <= last; from++ {
		// the tip is beyond, and so is what the account holds
		blocks, err := d.TransfersTo(t.Context(), []chain.Address{s.to}, from, from)
		must(t, err)

		for _, b := range blocks {
			for _, moved := range b.Transfers {
				got = append(got, moved.TxHash)
			}
		}
	}

	if fmt.Sprint(got) != fmt.Sprint(s.payments) {
		t.Errorf("payments %v, want %v", got, s.payments)
	}

	counted := s.node.driver(t, func(c *solana.Config) { c.RPC = s.bad.URL })
	// A fork puts another payment of the same amount in the place of one.
	head, err := counted.Head(t.Context())
	must(t, err)

	pay := func() string {
		hash, err := controls{s.node}.Pay(t.Context(), s.to, chain.Asset{Kind: chain.Native}, chain.Units(7))
		must(t, err)

		return hash
	}
	first := pay()

	must(t, s.SolanaNode.Mine(1))

	poll := func(from, to uint64, want string) {
		t.Helper()

		blocks, err := counted.TransfersTo(t.Context(), []chain.Address{s.to}, from, to)
		if err != nil || len(blocks) != 1 || len(blocks[0].Transfers) != 1 ||
			blocks[0].Transfers[0].TxHash != want {
			t.Errorf("%+v, %v; want %s", blocks, err, want)
		}
	}
	poll(head.Tip.Height+1, head.Tip.Height+1, first)
	must(t, s.SolanaNode.Fork(1))

	second := pay()

	must(t, s.SolanaNode.Mine(1))
	poll(head.Tip.Height+1, head.Tip.Height+3, second)
}
