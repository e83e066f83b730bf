package e2e

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
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv/contracts"
)

// rpcCall is one call to a provider and its answer.
type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// lie changes calls before the node answers them, or answers.
type lie struct {
	ask    func(c *rpcCall)
	answer func(c rpcCall, a *rpcAnswer)
	broken bool // answers nothing that can be read
}

// provider stands between a service and a node, and lies on demand.
type provider struct {
	*httptest.Server
	node string

	mu    sync.Mutex
	lie   lie
	asked int // requests since the lie began
}

func newProvider(t *testing.T, node string) *provider {
	t.Helper()

	p := &provider{node: node}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)

	return p
}

func (p *provider) instruct(l lie) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.lie, p.asked = l, 0
}

func (p *provider) lied() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.asked
}

func (p *provider) serve(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	l := p.lie
	p.asked++
	p.mu.Unlock()

	if l.broken {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`)
		return
	}

	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}

	var calls []rpcCall

	batch := json.Unmarshal(body, &calls) == nil
	if !batch {
		calls = make([]rpcCall, 1)
		if json.Unmarshal(body, &calls[0]) != nil {
			http.Error(w, "no JSON-RPC", http.StatusBadRequest)
			return
		}
	}

	answers := make([]rpcAnswer, len(calls))
	for i, c := range calls {
		if l.ask != nil {
			l.ask(&c)
		}

		if answers[i], err = p.forward(c); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}

		if l.answer != nil {
			l.answer(c, &answers[i])
		}
	}

	var out any = answers
	if !batch {
		out = answers[0]
	}

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (p *provider) forward(c rpcCall) (a rpcAnswer, err error) {
	body, err := json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": c.ID, "method": c.Method, "params": c.Params},
	)
	if err != nil {
		return a, err
	}

	resp, err := http.Post(p.node, "application/json", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()

	return a, json.NewDecoder(resp.Body).Decode(&a)
}

// edit changes an answer's result.
func edit[T any](a *rpcAnswer, change func(v *T)) {
	var v T
	if json.Unmarshal(a.Result, &v) != nil || string(a.Result) == "null" {
		return
	}

	change(&v)

	if b, err := json.Marshal(v); err == nil {
		a.Result = b
	}
}

type object = map[string]any

// behind answers as a node that is blocks behind.
func behind(p *provider, blocks uint64) lie {
	tip := func() uint64 {
		a, err := p.forward(
			rpcCall{ID: json.RawMessage("1"), Method: "eth_blockNumber", Params: []json.RawMessage{}},
		)

		var n hexutil.Uint64
		if err != nil || json.Unmarshal(a.Result, &n) != nil || uint64(n) < blocks {
			return 0
		}

		return uint64(n) - blocks
	}

	return lie{
		ask: func(c *rpcCall) {
			if c.Method == "eth_getBlockByNumber" &&
				(string(c.Params[0]) == `"latest"` || string(c.Params[0]) == `"pending"`) {
				c.Params[0] = json.RawMessage(fmt.Sprintf(`"0x%x"`, tip()))
			}
		},
		answer: func(c rpcCall, a *rpcAnswer) {
			switch c.Method {
			case "eth_blockNumber":
				a.Result = json.RawMessage(fmt.Sprintf(`"0x%x"`, tip()))
			case "eth_getBlockByNumber":
				var asked hexutil.Uint64
				if json.Unmarshal(c.Params[0], &asked) == nil && uint64(asked) > tip() {
					a.Result = json.RawMessage("null")
				}
			}
		},
	}
}

// withoutLogs leaves the logs out of receipts.
func withoutLogs(c rpcCall, a *rpcAnswer) {
	if c.Method == "eth_getBlockReceipts" {
		edit(a, func(all *[]object) {
			for _, r := range *all {
				r["logs"] = []any{}
			}
		})
	}
}

// withoutTransactions leaves the transactions out of blocks.
func withoutTransactions(c rpcCall, a *rpcAnswer) {
	if c.Method == "eth_getBlockByNumber" {
		edit(a, func(b *object) { (*b)["transactions"] = []any{} })
	}
}

// onADeadBranch shows every block of an odd height as an empty one of another branch.
func onADeadBranch(c rpcCall, a *rpcAnswer) {
	if c.Method != "eth_getBlockByNumber" {
		return
	}

	edit(a, func(b *object) {
		number, _ := (*b)["number"].(string)

		height, err := hexutil.DecodeUint64(number)
		if err != nil || height%2 == 0 {
			return
		}

		(*b)["hash"] = common.HexToHash("0xdead" + number[2:]).Hex()
		(*b)["transactions"] = []any{}
		(*b)["logsBloom"] = "0x" + strings.Repeat("00", 256)
		(*b)["transactionsRoot"] = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
	})
}

// invents shows in every receipt of a token's transaction a second transfer like its first, to an address.
func invents(to chain.Address) func(c rpcCall, a *rpcAnswer) {
	return func(c rpcCall, a *rpcAnswer) {
		if c.Method != "eth_getBlockReceipts" {
			return
		}

		edit(a, func(all *[]object) {
			for _, r := range *all {
				logs, _ := r["logs"].([]any)
				if len(logs) == 0 {
					continue
				}

				made := object{}
				for k, v := range logs[0].(object) {
					made[k] = v
				}

				topics := append([]any{}, made["topics"].([]any)...)
				topics[2] = common.BytesToHash(common.HexToAddress(string(to)).Bytes()).Hex()
				index, _ := hexutil.DecodeUint64(made["logIndex"].(string))
				made["topics"], made["logIndex"] = topics, hexutil.EncodeUint64(index+uint64(len(logs)))
				r["logs"] = append(logs, made)
			}
		})
	}
}

// Of three providers the one that is asked first lies, lags or breaks off. Every payment is taken
// in once and confirmed, and nothing else is.
func TestOneOfThreeProvidersLies(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	for name, l := range map[string]func(p *provider, victim chain.Address) lie{
		"it leaves logs out":         func(*provider, chain.Address) lie { return lie{answer: withoutLogs} },
		"it leaves transactions out": func(*provider, chain.Address) lie { return lie{answer: withoutTransactions} },
		"it is behind":               func(p *provider, _ chain.Address) lie { return behind(p, 5) },
		"it is on a dead branch":     func(*provider, chain.Address) lie { return lie{answer: onADeadBranch} },
		"it breaks off":              func(*provider, chain.Address) lie { return lie{broken: true} },
		"it invents a payment": func(_ *provider, victim chain.Address) lie {
			return lie{answer: invents(victim)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liesAtFirst(t, l)
		})
	}
}

func liesAtFirst(t *testing.T, lies func(p *provider, victim chain.Address) lie) {
	node := testenv.Anvil(t, testenv.AnvilOptions{BlockTime: time.Second})
	p := newPayer(t, node.URL, node.ChainID)
	usdc := p.deploy(contracts.TestERC20, "USDC", "Test Dollar", "USDC", uint8(6))
	liar, second, third := newProvider(t, node.URL), newProvider(t, node.URL), newProvider(t, node.URL)
	network := evm.Local(node.ChainID, usdc.asset)

	driver, err := evm.New(evm.Config{
		Network:    network,
		RPCs:       []string{liar.URL, second.URL, third.URL},
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, driver, common.HexToAddress(feeAddress).Hex())
	coin, token, victim := s.order(
		"100", "ETH", network.Slug,
	), s.order(
		"30", "USDC", network.Slug,
	), s.order(
		"40", "USDC", network.Slug,
	)
	s.await(victim.ID, "watched: the network is followed", func(invoiceView) bool {
		c, followed, err := internal.Of(s.engine).Store().Cursor(t.Context(), network.Slug)
		return err == nil && followed && c.At.Height > 0
	})
	liar.instruct(lies(liar, victim.Options[0].Address))
	p.native(coin.Options[0].Address, amount(t, coin.Options[0].AmountDue))
	usdc.send(token.Options[0].Address, amount(t, token.Options[0].AmountDue))

	for _, inv := range []invoiceView{coin, token} {
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })

		if all := s.payments(
			inv.ID,
		); len(all) != 1 || all[0].Amount != inv.Options[0].AmountDue ||
			all[0].Status != "confirmed" {
			t.Errorf("the payments are %+v", all)
		}
	}

	if liar.lied() == 0 {
		t.Error("the liar was never asked")
	}

	if made := s.payments(victim.ID); len(made) != 0 {
		t.Errorf("an invoice that nobody paid has the payments %+v", made)
	}
}
