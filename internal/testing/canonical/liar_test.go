//go:build unix

package canonical_test

// This file stands between the service and the node, and lies on demand.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

type (
	rpcCall struct {
		Version string            `json:"jsonrpc"`
		ID      json.RawMessage   `json:"id"`
		Method  string            `json:"method"`
		Params  []json.RawMessage `json:"params"`
	}
	rpcAnswer struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   json.RawMessage `json:"error,omitempty"`
	}
	object = map[string]any
)

// lie changes calls before the node answers them, and results.
type lie struct {
	ask    func(c *rpcCall)
	answer func(c rpcCall, result json.RawMessage) json.RawMessage
	silent bool
}

// liar is an endpoint that answers as the node does, but for its lie.
type liar struct {
	*httptest.Server
	node node

	mu      sync.Mutex
	lie     lie
	changed int // answers since it was made that a lie changed
}

func newLiar(t *testing.T, n node) *liar {
	t.Helper()

	l := &liar{node: n}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)

	return l
}

func (l *liar) instruct(what lie) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lie = what
}

func (l *liar) lied() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.changed
}

func (l *liar) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	l.mu.Lock()
	what := l.lie
	l.mu.Unlock()

	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}

	if what.silent {
		l.count(1)
		http.Error(w, "out of service", http.StatusBadGateway)

		return
	}

	answer, changed, err := l.answer(body, what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}

	l.count(changed)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func (l *liar) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.changed += n
}

// answer forwards a request, which may be a batch, and returns how many answers are not the node's.
func (l *liar) answer(body []byte, what lie) (_ []byte, changed int, err error) {
	var calls []rpcCall

	batch := json.Unmarshal(body, &calls) == nil
	if !batch {
		calls = make([]rpcCall, 1)
		if err := json.Unmarshal(body, &calls[0]); err != nil {
			return nil, 0, err
		}
	}

	answers := make([]rpcAnswer, len(calls))

	for i, c := range calls {
		before := fmt.Sprintf("%s", c.Params)

		if what.ask != nil {
			what.ask(&c)
		}

		if answers[i], err = l.forward(c); err != nil {
			return nil, 0, err
		}

		honest := string(answers[i].Result)

		if what.answer != nil && honest != "" && honest != "null" {
			answers[i].Result = what.answer(c, answers[i].Result)
		}

		if before != fmt.Sprintf("%s", c.Params) || honest != string(answers[i].Result) {
			changed++
		}
	}

	var out any = answers
	if !batch {
		out = answers[0]
	}

	text, err := json.Marshal(out)

	return text, changed, err
}

func (l *liar) forward(c rpcCall) (a rpcAnswer, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return a, err
	}

	resp, err := http.Post(l.node.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()

	return a, json.NewDecoder(resp.Body).Decode(&a)
}

// lies are what an endpoint may say, by name.
var lies = map[string]func(l *liar) lie{
	"denies hashes":                 func(*liar) lie { return lie{answer: denied} },
	"receipts by hash without logs": func(*liar) lie { return lie{answer: without("eth_getTransactionReceipt")} },
	"blocks without logs":           func(*liar) lie { return lie{answer: without("eth_getBlockReceipts")} },
	"blocks without logs and bloom": func(*liar) lie { return lie{answer: withoutBloom} },
	"stale heights":                 func(l *liar) lie { return behind(l, 3) },
	"far behind":                    func(l *liar) lie { return behind(l, 30) },
	"another branch":                func(*liar) lie { return lie{answer: anotherBranch} },
	"silence":                       func(*liar) lie { return lie{silent: true} },
}

// denied is the answer of a node that knows no transaction by its hash.
func denied(c rpcCall, result json.RawMessage) json.RawMessage {
	switch c.Method {
	case "eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getRawTransactionByHash":
		return json.RawMessage("null")
	}

	return result
}

// without returns a lie that leaves the logs out of receipts, and of logs that are asked for.
func without(method string) func(c rpcCall, result json.RawMessage) json.RawMessage {
	return func(c rpcCall, result json.RawMessage) json.RawMessage {
		switch c.Method {
		case "eth_getLogs":
			return json.RawMessage("[]")
		case method:
			return edited(result, func(r object) {
				if r["logs"] != nil {
					r["logs"] = []any{}
				}
			})
		}

		return result
	}
}

const noBloom = 512 // digits of an empty bloom

// withoutBloom leaves out the logs of blocks, and says in header and receipts that there are none.
func withoutBloom(c rpcCall, result json.RawMessage) json.RawMessage {
	switch c.Method {
	case "eth_getLogs":
		return json.RawMessage("[]")
	case "eth_getBlockReceipts", "eth_getBlockByNumber", "eth_getBlockByHash":
		return edited(result, func(r object) {
			if r["logs"] != nil {
				r["logs"] = []any{}
			}

			r["logsBloom"] = "0x" + strings.Repeat("0", noBloom)
		})
	}

	return result
}

// anotherBranch shows blocks of odd heights as others, without transactions.
func anotherBranch(c rpcCall, result json.RawMessage) json.RawMessage {
	if c.Method != "eth_getBlockByNumber" {
		return result
	}

	return edited(result, func(b object) {
		height, _ := b["number"].(string)
		if height == "" || !strings.ContainsAny(height[len(height)-1:], "13579bdf") {
			return
		}

		b["hash"] = fmt.Sprintf("0xdead%060s", strings.TrimPrefix(height, "0x"))
		b["transactions"] = []any{}
	})
}

// behind answers as a node that has not read the newest blocks.
func behind(l *liar, blocks uint64) lie {
	tip := func() uint64 {
		var height string
		if l.node.try(&height, "eth_blockNumber") != nil {
			return 0
		}

		n := quantity(height)

		return n - min(n, blocks)
	}

	return lie{
		ask: func(c *rpcCall) {
			if c.Method == "eth_getBlockByNumber" && len(c.Params) > 0 {
				switch string(c.Params[0]) {
				case `"latest"`, `"pending"`:
					c.Params[0] = json.RawMessage(fmt.Sprintf("%q", hexOf(tip())))
				}
			}
		},
		answer: func(c rpcCall, result json.RawMessage) json.RawMessage {
			switch c.Method {
			case "eth_blockNumber":
				return json.RawMessage(fmt.Sprintf("%q", hexOf(tip())))
			case "eth_getBlockByNumber", "eth_getBlockReceipts":
				var asked string
				if json.Unmarshal(c.Params[0], &asked) == nil && quantity(asked) > tip() && len(asked) < 20 {
					return json.RawMessage("null")
				}
			}

			return result
		},
	}
}

func quantity(text string) (n uint64) {
	_, _ = fmt.Sscanf(text, "0x%x", &n)
	return n
}

// edited changes an object, or each of a list.
func edited(result json.RawMessage, change func(o object)) json.RawMessage {
	var (
		list []object
		one  object
		out  any
	)

	switch {
	case json.Unmarshal(result, &list) == nil:
		for _, o := range list {
			change(o)
		}

		out = list
	case json.Unmarshal(result, &one) == nil && one != nil:
		change(one)

		out = one
	default:
		return result
	}

	text, err := json.Marshal(out)
	if err != nil {
		return result
	}

	return text
}
