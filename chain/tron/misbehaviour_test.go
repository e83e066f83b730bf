//go:build unix

package tron_test

// Wrong answers of nodes: nothing is lost, nothing happens twice, and nothing is guessed.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/tron"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// answer is an HTTP answer that can be changed.
type answer struct {
	status int
	header map[string]string
	body   []byte
}

// proxy forwards to a node. change, when set, alters an answer or gives its own without asking the node.
type proxy struct {
	*httptest.Server
	requests atomic.Int64
	change   atomic.Pointer[func(path string, ask func() answer) answer]
}

func (p *proxy) intercept(f func(path string, ask func() answer) answer) { p.change.Store(&f) }

func (p *proxy) passThrough() { p.change.Store(nil) }

func newProxy(t *testing.T, n *testenv.TronNode) *proxy {
	t.Helper()

	p := new(proxy)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)

		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}

		ask := func() answer {
			resp, err := http.Post(n.URL+r.URL.Path, "application/json", bytes.NewReader(body))
			if err != nil {
				return answer{status: http.StatusBadGateway}
			}
			defer resp.Body.Close()

			b, err := io.ReadAll(resp.Body)
			if err != nil {
				return answer{status: http.StatusBadGateway}
			}

			return answer{status: resp.StatusCode, body: b}
		}

		var a answer
		if f := p.change.Load(); f != nil {
			a = (*f)(r.URL.Path, ask)
		} else {
			a = ask()
		}

		for k, v := range a.header {
			w.Header().Set(k, v)
		}

		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}))
	t.Cleanup(p.Close)

	return p
}

func ok(body string) answer { return answer{status: http.StatusOK, body: []byte(body)} }

// viaNodes makes the driver use these servers, once each.
func viaNodes(urls ...string) func(*tron.Config) {
	return func(c *tron.Config) {
		c.Nodes, c.Attempts = nil, 1
		for _, u := range urls {
			c.Nodes = append(c.Nodes, tron.Node{URL: u})
		}
	}
}

func TestThrottledNodeIsLeftAlone(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL, h.URL))
	h.must(d.Check(t.Context()))
	p.intercept(func(string, func() answer) answer {
		return answer{status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "30"}}
	})

	for range 5 {
		if _, err := d.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	asked := p.requests.Load()
	if _, err := d.Head(t.Context()); err != nil || p.requests.Load() != asked {
		t.Errorf("%d requests after the node asked to be left alone, %v", p.requests.Load()-asked, err)
	}

	alone := h.driver(t, viaNodes(p.URL))
	_, err := alone.Head(t.Context())
	wantFault(t, err, fault.Unavailable, "node_unavailable")

	if wait := fault.RetryAfter(err); wait < 20*time.Second || wait > 30*time.Second {
		t.Errorf("come back in %s, the node said 30 s", wait)
	}
}

// java-tron's own rate limiter answers with status 200.
func TestOverloadedNodeIsAskedAgain(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) { c.Attempts = 3 })

	var refusals atomic.Int64

	p.intercept(func(path string, ask func() answer) answer {
		if refusals.Add(1) <= 2 {
			return ok(`{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}`)
		}

		return ask()
	})

	if _, err := d.Head(t.Context()); err != nil || refusals.Load() < 3 {
		t.Errorf("%v after %d requests", err, refusals.Load())
	}
}

// edit changes a JSON answer.
func edit(a answer, f func(v map[string]any)) answer {
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		return a
	}

	f(v)
	a.body, _ = json.Marshal(v)

	return a
}

func editList(a answer, f func(v []any) []any) answer {
	var v []any
	if err := json.Unmarshal(a.body, &v); err != nil {
		return a
	}

	a.body, _ = json.Marshal(f(v))

	return a
}

// blockIn is the first block of an answer to getblockbylimitnext.
func blockIn(v map[string]any) map[string]any { return v["block"].([]any)[0].(map[string]any) }

func TestLiesAboutABlockAreUnavailable(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(2)

	to := h.stranger()
	for range 3 {
		_, err := h.Pay(t.Context(), to, h.usdt, chain.Units(1_000_000))
		h.must(err)
	}

	h.mine(1)
	head, err := h.d.Head(t.Context())
	h.must(err)

	const list, infos = "/wallet/getblockbylimitnext", "/wallet/gettransactioninfobyblocknum"
	for name, lie := range map[string]struct {
		path string
		f    func(a answer) answer
	}{
		"no receipts":    {infos, func(a answer) answer { return ok("[]") }},
		"a receipt less": {infos, func(a answer) answer { return editList(a, func(v []any) []any { return v[:2] }) }},
		"a receipt twice": {
			infos,
			func(a answer) answer { return editList(a, func(v []any) []any { return []any{v[0], v[0], v[2]} }) },
		},
		"another block's receipt": {
			infos,
			func(a answer) answer {
				return editList(a, func(v []any) []any { v[0].(map[string]any)["blockNumber"] = 1; return v })
			},
		},
		"a call without result": {
			infos,
			func(a answer) answer {
				return editList(
					a,
					func(v []any) []any {
						delete(
							v[0].(map[string]any)["receipt"].(map[string]any), "result",
						)

						return v
					},
				)
			},
		},
		"a negative fee": {
			infos,
			func(a answer) answer {
				return editList(a, func(v []any) []any { v[0].(map[string]any)["fee"] = -1; return v })
			},
		},
		"an empty object": {infos, func(a answer) answer { return ok("{}") }},
		"half an answer":  {infos, func(a answer) answer { a.body = a.body[:len(a.body)/2]; return a }},
		"an HTML page":    {infos, func(a answer) answer { return ok("<html>busy</html>") }},
		"a lite node": {
			infos,
			func(a answer) answer { return ok("this API is closed because this node is a lite fullnode") },
		},
		"a gateway's error": {infos, func(a answer) answer { return answer{status: http.StatusBadGateway} }},
		"transactions left out": {
			list,
			func(a answer) answer { return edit(a, func(v map[string]any) { delete(blockIn(v), "transactions") }) },
		},
		"one transaction left out": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					blockIn(v)["transactions"] = blockIn(v)["transactions"].([]any)[1:]
				})
			},
		},
		"other bytes": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					tx := blockIn(v)["transactions"].([]any)[0].(map[string]any)
					tx["raw_data_hex"] = strings.Replace(tx["raw_data_hex"].(string), "a9059cbb", "a9059cbc", 1)
				})
			},
		},
		"a transaction's signature changed": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					tx := blockIn(v)["transactions"].([]any)[0].(map[string]any)
					tx["signature"] = []any{strings.Repeat("1", 130)}
				})
			},
		},
		"a result changed": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					tx := blockIn(v)["transactions"].([]any)[0].(map[string]any)
					tx["ret"] = []any{map[string]any{"contractRet": "REVERT"}}
				})
			},
		},
		"transactions in another order": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					txs := blockIn(v)["transactions"].([]any)
					txs[0], txs[1] = txs[1], txs[0]
				})
			},
		},
		"a transaction and its receipt left out": {
			"",
			func(a answer) answer {
				a = editList(a, func(v []any) []any { return v[1:] })

				return edit(a, func(v map[string]any) {
					if v["block"] != nil {
						blockIn(v)["transactions"] = blockIn(v)["transactions"].([]any)[1:]
					}
				})
			},
		},
		"another transaction root": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					header := blockIn(v)["block_header"].(map[string]any)
					header["raw_data"].(map[string]any)["txTrieRoot"] = strings.Repeat("1", 64)
				})
			},
		},
		"another parent": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					raw := blockIn(v)["block_header"].(map[string]any)["raw_data"].(map[string]any)
					raw["parentHash"] = raw["parentHash"].(string)[:60] + "0000"
				})
			},
		},
		"a failure that the block does not have": {
			infos,
			func(a answer) answer {
				return editList(a, func(v []any) []any { v[0].(map[string]any)["result"] = "FAILED"; return v })
			},
		},
		"another height": {
			list,
			func(a answer) answer {
				return edit(a, func(v map[string]any) {
					header := blockIn(v)["block_header"].(map[string]any)
					header["raw_data"].(map[string]any)["number"] = head.Tip.Height - 1
				})
			},
		},
		"no block": {list, func(a answer) answer { return ok("{}") }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, h.TronNode)
			d := h.driver(t, viaNodes(p.URL))
			p.intercept(func(path string, ask func() answer) answer {
				a := ask()
				if lie.path != "" && path != lie.path {
					return a
				}

				return lie.f(a)
			})

			blocks, err := d.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
			wantFault(t, err, fault.Unavailable, "node_unavailable")

			if len(blocks) != 0 {
				t.Errorf("it returned %+v beside its error", blocks)
			}

			both := h.driver(t, viaNodes(p.URL, h.URL))

			blocks, err = both.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
			if err != nil || len(blocks) != 1 || len(blocks[0].Transfers) != 3 {
				t.Errorf("beside an honest node: %+v, %v", blocks, err)
			}

			p.passThrough()

			blocks, err = d.Blocks(t.Context(), head.Tip.Height, head.Tip.Height)
			if err != nil || len(blocks) != 1 || len(blocks[0].Transfers) != 3 {
				t.Errorf("afterwards: %+v, %v", blocks, err)
			}
		})
	}
}

// Receipts belong to their transactions by id, in whatever order a provider lists them.
func TestReceiptsInAnyOrder(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})

	to := h.stranger()
	for sum := range uint64(3) {
		_, err := h.Pay(t.Context(), to, h.usdt, chain.Units(sum+1))
		h.must(err)
	}

	h.mine(1)
	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		a := ask()
		if path == "/wallet/gettransactioninfobyblocknum" {
			a = editList(a, func(v []any) []any { return []any{v[2], v[0], v[1]} })
		}

		return a
	})
	blocks, err := h.driver(t, viaNodes(p.URL)).Blocks(t.Context(), 1, 1)
	h.must(err)

	got, want := fmt.Sprint(blocks[0].Transfers), fmt.Sprint(h.latestBlock().Transfers)
	if got != want || len(blocks[0].Transfers) != 3 {
		t.Errorf("%s, want %s", got, want)
	}
}

// A list of blocks that breaks off, or does not link, ends before the break. The next call returns the
// others.
func TestShortListIsAPrefix(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(10)
	p := newProxy(t, h.TronNode)

	d := h.driver(t, viaNodes(p.URL))
	for name, f := range map[string]func(list []any) []any{
		"cut": func(list []any) []any { return list[:4] },
		"relinked": func(list []any) []any {
			block := list[4].(map[string]any)
			raw := block["block_header"].(map[string]any)["raw_data"].(map[string]any)
			raw["parentHash"] = raw["parentHash"].(string)[:60] + "0000"
			text, err := json.Marshal(raw)
			h.must(err)

			block["blockID"], err = tron.HeaderID(text)
			h.must(err)

			return list
		},
	} {
		p.intercept(func(path string, ask func() answer) answer {
			a := ask()
			if path == "/wallet/getblockbylimitnext" {
				a = edit(a, func(v map[string]any) { v["block"] = f(v["block"].([]any)) })
			}

			return a
		})

		blocks, err := d.Blocks(t.Context(), 1, 8)
		if err != nil || len(blocks) != 4 || blocks[3].Height != 4 {
			t.Errorf("%s: %d blocks, %v", name, len(blocks), err)
		}
	}

	p.intercept(func(path string, ask func() answer) answer {
		a := ask()
		if path == "/wallet/getblockbylimitnext" {
			a = edit(a, func(v map[string]any) {
				list := v["block"].([]any)
				v["block"] = append(list[:2:2], list[3:]...)
			})
		}

		return a
	})

	if blocks, err := d.Blocks(t.Context(), 1, 8); err == nil {
		t.Errorf("a list with a gap: %+v", blocks)
	}
}

// frozenTip returns an interceptor that repeats the current getnowblock of both services.
func frozenTip(t *testing.T, h *harness) func(path string, ask func() answer) answer {
	t.Helper()

	old := map[string]answer{}

	for _, path := range []string{"/wallet/getnowblock", "/walletsolidity/getnowblock"} {
		var v json.RawMessage
		h.must(h.Call(t.Context(), path, map[string]any{}, &v))
		old[path] = ok(string(v))
	}

	return func(path string, ask func() answer) answer {
		if a, isOld := old[path]; isOld {
			return a
		}

		return ask()
	}
}

func TestStaleNodeIsPassedOver(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	h.mine(5)
	p := newProxy(t, h.TronNode)
	stale := frozenTip(t, h)
	h.mine(5)
	d := h.driver(t, viaNodes(p.URL, h.URL))
	fresh, err := d.Head(t.Context())
	h.must(err)
	p.intercept(stale)

	again, err := d.Head(t.Context())
	if err != nil || again.Tip.Height != fresh.Tip.Height {
		t.Errorf(
			"the tip was %d and is %d, %v: the first node fell behind what was seen",
			fresh.Tip.Height, again.Tip.Height, err,
		)
	}

	other := h.driver(t, viaNodes(p.URL, h.URL))
	if ref, err := other.RefAt(t.Context(), fresh.Tip.Height); err != nil || ref.Hash != fresh.Tip.Hash {
		t.Errorf("the first node is not that far, and the second was not asked: %+v, %v", ref, err)
	}

	alone := h.driver(t, viaNodes(p.URL))
	_, err = alone.RefAt(t.Context(), fresh.Tip.Height)
	wantFault(t, err, fault.NotFound, "block_unknown")
	_, err = alone.Balances(
		t.Context(), fresh.Tip, []chain.Holding{{Address: h.stranger(), AssetID: h.native.ID}},
	)
	wantFault(t, err, fault.Unavailable, "node_behind")
}

// The node takes the transaction, and its answer never comes.
func TestBroadcastThatTimesOutAfterItWasTaken(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	p := newProxy(t, h.TronNode)
	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) { c.Timeout = 2 * time.Second })
	h.must(d.Check(t.Context()))
	signed := h.sign(h.order(from, h.native, to, 5_000_000))
	release := make(chan struct{})

	p.intercept(func(path string, ask func() answer) answer {
		a := ask()

		if path == "/wallet/broadcasthex" {
			<-release
		}

		return a
	})

	err := d.Broadcast(t.Context(), signed)

	close(release)
	wantFault(t, err, fault.Unavailable, "node_unavailable")
	p.passThrough()

	if status, err := d.Status(t.Context(), signed); err != nil || status.State != chain.TxPooled {
		t.Errorf("the transaction that was taken is %+v, %v", status, err)
	}

	h.must(d.Broadcast(t.Context(), signed)) // the same bytes again
	h.mine(1)
	h.must(d.Broadcast(t.Context(), signed)) // and once more, from its block
	h.mine(1)

	if got := h.balance(to, h.native); got != chain.Units(6_000_000) {
		t.Errorf("the destination has %s after 1 and once 5 TRX", got)
	}
}

// The refusals of nodes, and what they prove.
func TestRefusalsOfABroadcast(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	p := newProxy(t, h.TronNode)

	d := h.driver(t, viaNodes(p.URL))
	for code, want := range map[string]struct {
		word error
		code string
	}{
		"CONTRACT_VALIDATE_ERROR":   {fault.Invalid, "chain:insufficient_funds"},
		"BANDWITH_ERROR":            {fault.Invalid, "chain:insufficient_funds"},
		"SIGERROR":                  {fault.Invalid, "transaction_malformed"},
		"TOO_BIG_TRANSACTION_ERROR": {fault.Invalid, "transaction_malformed"},
		// and yet the node does not have it: it refused it once
		"DUP_TRANSACTION_ERROR":           {fault.Unavailable, ""},
		"TAPOS_ERROR":                     {fault.Unavailable, ""},
		"TRANSACTION_EXPIRATION_ERROR":    {fault.Unavailable, ""},
		"SERVER_BUSY":                     {fault.Unavailable, ""},
		"NO_CONNECTION":                   {fault.Unavailable, ""},
		"NOT_ENOUGH_EFFECTIVE_CONNECTION": {fault.Unavailable, ""},
		"BLOCK_UNSOLIDIFIED":              {fault.Unavailable, ""},
		"OTHER_ERROR":                     {fault.Unavailable, ""},
	} {
		signed := h.sign(h.order(from, h.native, to, 1_000_000))
		said := ok(`{"result":false,"code":"` + code + `","message":"no","txid":"` + signed.TxHash + `"}`)

		p.intercept(func(path string, ask func() answer) answer {
			if path == "/wallet/broadcasthex" {
				return said
			}

			return ask()
		})

		if wantFault(t, d.Broadcast(t.Context(), signed), want.word, want.code); t.Failed() {
			t.Fatal(code)
		}
		// The same words about a transaction that the node has are a yes.
		h.must(h.d.Broadcast(t.Context(), signed))

		if err := d.Broadcast(t.Context(), signed); err != nil {
			t.Errorf("%s of a transaction that waits: %v", code, err)
		}
	}
	// One node's no is not the network's.
	signed := h.sign(h.order(from, h.native, to, 1_000_000))
	both := h.driver(t, viaNodes(p.URL, h.URL))
	h.must(both.Broadcast(t.Context(), signed))
}

// A refusal is final when all nodes refuse, and for the same reason.
func TestARefusalNeedsEveryNode(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	signed := h.sign(h.order(from, h.native, to, 1_000_000))

	refusing := func(code string) *proxy {
		p := newProxy(t, h.TronNode)
		p.intercept(func(path string, ask func() answer) answer {
			if path == "/wallet/broadcasthex" {
				return ok(
					`{"result":false,"code":"` + code + `","message":"no","txid":"` + signed.TxHash + `"}`,
				)
			}

			return ask()
		})

		return p
	}
	first := refusing("CONTRACT_VALIDATE_ERROR")

	down := newProxy(t, h.TronNode)
	down.intercept(func(string, func() answer) answer { return answer{status: http.StatusBadGateway} })

	for name, c := range map[string]struct {
		second *proxy
		want   error
		code   string
	}{
		"the same reason": {refusing("BANDWITH_ERROR"), fault.Invalid, "chain:insufficient_funds"},
		"another reason":  {refusing("SIGERROR"), fault.Unavailable, ""},
		"no reason":       {refusing("SERVER_BUSY"), fault.Unavailable, ""},
		"no answer":       {down, fault.Unavailable, ""},
	} {
		for order, urls := range [][]string{{first.URL, c.second.URL}, {c.second.URL, first.URL}} {
			err := h.driver(t, viaNodes(urls...)).Broadcast(t.Context(), signed)
			if wantFault(t, err, c.want, c.code); t.Failed() {
				t.Fatalf("%s, order %d", name, order)
			}
		}
	}
}

// The money is gone when the transaction is sent.
func TestUnfundedBroadcastIsInvalid(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(10), h.wallet(1).Address
	one, two := h.sign(h.order(from, h.native, to, 7_000_000)), h.sign(h.order(from, h.native, to, 7_000_000))
	h.include(one)
	wantFault(t, h.d.Broadcast(t.Context(), two), fault.Invalid, "chain:insufficient_funds")

	if status, err := h.d.Status(t.Context(), two); err != nil || status.State != chain.TxUnknown {
		t.Errorf("%+v, %v", status, err)
	}
}

// A receipt whose block does not hold the transaction is no inclusion.
func TestReceiptOfAnotherBranch(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.wallet(1).Address
	signed := h.sign(h.order(from, h.native, to, 1_000_000))
	h.include(signed)
	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		a := ask()
		if path == "/wallet/gettransactioninfobyid" {
			a = edit(a, func(v map[string]any) { v["blockNumber"] = 1 })
		}

		return a
	})
	d := h.driver(t, viaNodes(p.URL))
	_, err := d.Status(t.Context(), signed)
	wantFault(t, err, fault.Unavailable, "node_unavailable")
	_, err = d.Transaction(t.Context(), signed.TxHash)
	wantFault(t, err, fault.Unavailable, "node_unavailable")
}

// Prices that a node omits or makes up are not used.
func TestPricesAreNotGuessed(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})
	from, to := h.wallet(100), h.stranger()
	p := newProxy(t, h.TronNode)

	d := h.driver(t, viaNodes(p.URL))
	for name, lie := range map[string]struct{ path, body string }{
		"no prices":        {"/wallet/getchainparameters", `{"chainParameter":[]}`},
		"a negative price": {"/wallet/getchainparameters", `{"chainParameter":[{"key":"getEnergyFee","value":-1}]}`},
		"a price beyond": {
			"/wallet/getchainparameters",
			`{"chainParameter":[{"key":"getEnergyFee","value":9000000000000000000}]}`,
		},
		"another's account": {
			"/wallet/getaccount",
			`{"address":"41a614f803b6fd780986a42c78ec9c7f77e6ded13c","balance":5}`,
		},
		"a negative balance": {
			"/wallet/getaccount",
			`{"address":"` + testenv.TronHex(string(from.Address)) + `","balance":-5}`,
		},
	} {
		p.intercept(func(path string, ask func() answer) answer {
			if path == lie.path {
				return ok(lie.body)
			}

			return ask()
		})

		_, err := d.EstimateFee(t.Context(), h.order(from, h.native, to, 5_000_000))
		if wantFault(t, err, fault.Unavailable, "node_unavailable"); t.Failed() {
			t.Fatal(name)
		}
	}
}

// The API key goes with every request, and neither it nor the key in a URL is ever shown.
func TestKeysStayIn(t *testing.T) {
	h := newHarness(t, testenv.TronOptions{})

	const key, path = "0123456789-secret-api-key", "secret-in-the-path"

	var sent atomic.Int64

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("TRON-PRO-API-KEY") == key {
			sent.Add(1)
		}

		http.Error(w, "your key "+key+" and your path "+r.URL.Path+" are refused", http.StatusUnauthorized)
	}))
	defer server.Close()

	d := h.driver(t, func(c *tron.Config) {
		c.Nodes, c.Attempts = []tron.Node{{URL: server.URL + "/" + path, APIKey: key}}, 1
	})
	_, err := d.Head(t.Context())
	wantFault(t, err, fault.Unavailable, "node_unavailable")

	if sent.Load() == 0 {
		t.Error("the API key was not sent")
	}

	if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), strings.TrimPrefix(server.URL, "http://")) {
		t.Errorf("the error is %q", err)
	}
}

// Where the answer with many blocks is too large, fewer are read at a time, down to one.
func TestBlocksOfALargeAnswerAreReadInParts(t *testing.T) {
	const most = 1 << 20

	h := newHarness(t, testenv.TronOptions{})
	h.mine(12)

	head, err := h.d.Head(t.Context())
	h.must(err)

	var asked atomic.Int32

	p := newProxy(t, h.TronNode)
	p.intercept(func(path string, ask func() answer) answer {
		a := ask()
		if path != "/wallet/getblockbylimitnext" {
			return a
		}

		asked.Add(1)

		return edit(a, func(v map[string]any) {
			v["padding"] = strings.Repeat(" ", len(v["block"].([]any))*most/3)
		})
	})

	d := h.driver(t, viaNodes(p.URL), func(c *tron.Config) { c.MaxResponse = most })

	from := head.Tip.Height - 9
	for next := from; next <= head.Tip.Height; {
		blocks, err := d.Blocks(t.Context(), next, head.Tip.Height)
		if err != nil || len(blocks) == 0 || blocks[0].Height != next {
			t.Fatalf("blocks from %d: %d, %v", next, len(blocks), err)
		}

		next += uint64(len(blocks))
	}

	if n := asked.Load(); n < 5 {
		t.Errorf("10 blocks, of which 2 fit into an answer, were asked for %d times", n)
	}
}
