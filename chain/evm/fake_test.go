package evm_test

// A scripted JSON-RPC node for what a real one cannot do: contradict itself, lag, refuse and fail.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
)

const fakeChainID = 4242

var (
	fakeToken = chain.Asset{
		Symbol:   "USDX",
		Kind:     chain.Token,
		Decimals: 6,
		Contract: chain.Address(common.HexToAddress("0x1000000000000000000000000000000000000001").Hex()),
	}
	transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	payer         = common.HexToAddress("0x2000000000000000000000000000000000000002")
	payee         = common.HexToAddress("0x3000000000000000000000000000000000000003")
)

type jsonObject = map[string]any

// rpcCall is one call of a JSON-RPC request.
type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// param returns a parameter as text, "" if it is none.
func (c rpcCall) param(i int) string {
	var s string
	if i < len(c.Params) {
		_ = json.Unmarshal(c.Params[i], &s)
	}

	return s
}

// rpcError is a JSON-RPC error as a result.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// fakeBlock is one block of a fakeNode.
type fakeBlock struct {
	header   jsonObject
	txs      []jsonObject
	receipts []jsonObject
}

func (b fakeBlock) hash() string { return b.header["hash"].(string) }

func (b fakeBlock) json(full bool) jsonObject {
	out := jsonObject{}
	for field, value := range b.header {
		out[field] = value
	}

	txs := []any{}
	for _, tx := range b.txs {
		if full {
			txs = append(txs, tx)
		} else {
			txs = append(txs, tx["hash"])
		}
	}

	out["transactions"] = txs

	return out
}

// fakeNode is a scripted JSON-RPC node with a chain that the test makes.
type fakeNode struct {
	mu      sync.Mutex
	chainID uint64
	blocks  []fakeBlock
	// answer overrides single calls: handled false leaves the call to the chain.
	answer func(c rpcCall) (result any, handled bool)
	// http overrides whole requests.
	http     func(w http.ResponseWriter, calls []rpcCall) (handled bool)
	requests [][]string // the methods of each request
}

// newFakeNode returns a node with blocks 0 to tip. Each block above 0 has one transaction to the
// payee, with 1000+height wei and, in its second log, height base units of the token.
func newFakeNode(tip int) *fakeNode {
	n := &fakeNode{chainID: fakeChainID}
	for range tip + 1 {
		n.extend("main")
	}

	return n
}

func (n *fakeNode) extend(branch string) {
	height := len(n.blocks)
	hash := crypto.Keccak256Hash(fmt.Appendf(nil, "block %d %s", height, branch))

	parent := common.Hash{}
	if height > 0 {
		parent = common.HexToHash(n.blocks[height-1].hash())
	}

	b := fakeBlock{
		header: jsonObject{
			"number":           hexutil.Uint64(height),
			"hash":             hash.Hex(),
			"parentHash":       parent.Hex(),
			"timestamp":        hexutil.Uint64(1_700_000_000 + 12*height),
			"transactionsRoot": types.EmptyTxsHash.Hex(),
			"baseFeePerGas":    hexutil.Uint64(1_000_000_000),
			"logsBloom":        types.Bloom{},
		},
	}
	if height > 0 {
		b.header["transactionsRoot"] = common.HexToHash("0x01").Hex()
		tx := crypto.Keccak256Hash(fmt.Appendf(nil, "tx %d %s", height, branch)).Hex()
		b.txs = []jsonObject{
			{
				"hash":      tx,
				"from":      payer.Hex(),
				"to":        payee.Hex(),
				"value":     hexutil.Uint64(1000 + height),
				"blockHash": hash.Hex(),
				"input":     "0x",
				"type":      "0x7e",
			},
		}
		token := common.HexToAddress(string(fakeToken.Contract))

		var bloom types.Bloom

		other := common.HexToAddress("0x4000000000000000000000000000000000000004")
		for _, item := range [][]byte{
			other.Bytes(),
			transferTopic[:],
			token.Bytes(),
			common.LeftPadBytes(payer[:], 32),
			common.LeftPadBytes(payee[:], 32),
		} {
			bloom.Add(item)
		}

		b.header["logsBloom"] = bloom
		b.receipts = []jsonObject{
			{
				"transactionHash":   tx,
				"blockHash":         hash.Hex(),
				"blockNumber":       hexutil.Uint64(height),
				"status":            "0x1",
				"gasUsed":           "0x5208",
				"effectiveGasPrice": "0x3b9aca00",
				"logs": []jsonObject{
					logOf(other, 7, 1), // another contract's
					logOf(token, 8, uint64(height)),
				},
			},
		}
	}

	n.blocks = append(n.blocks, b)
}

func logOf(contract common.Address, index, amount uint64) jsonObject {
	word := chain.Units(amount).Bytes32()

	return jsonObject{
		"address":  contract.Hex(),
		"logIndex": hexutil.Uint64(index),
		"data":     hexutil.Bytes(word[:]),
		"topics": []string{
			transferTopic.Hex(),
			common.BytesToHash(payer[:]).Hex(),
			common.BytesToHash(payee[:]).Hex(),
		},
	}
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()

	body, _ := io.ReadAll(r.Body)
	calls, batch := decodeCalls(body)

	var methods []string
	for _, c := range calls {
		methods = append(methods, c.Method)
	}

	n.requests = append(n.requests, methods)
	if n.http != nil && n.http(w, calls) {
		return
	}

	var answers []jsonObject

	for _, c := range calls {
		answer := jsonObject{"jsonrpc": "2.0", "id": c.ID}
		if result := n.respond(c); isRPCError(result) {
			answer["error"] = result
		} else {
			answer["result"] = result
		}

		answers = append(answers, answer)
	}

	w.Header().Set("Content-Type", "application/json")

	if batch {
		_ = json.NewEncoder(w).Encode(answers)
		return
	}

	_ = json.NewEncoder(w).Encode(answers[0])
}

func decodeCalls(body []byte) (calls []rpcCall, batch bool) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		_ = json.Unmarshal(body, &calls)
		return calls, true
	}

	var c rpcCall

	_ = json.Unmarshal(body, &c)

	return []rpcCall{c}, false
}

func isRPCError(v any) bool { _, ok := v.(rpcError); return ok }

func (n *fakeNode) respond(c rpcCall) any {
	if n.answer != nil {
		if result, handled := n.answer(c); handled {
			return result
		}
	}

	tip := len(n.blocks) - 1

	switch c.Method {
	case "eth_chainId":
		return hexutil.Uint64(n.chainID)
	case "eth_blockNumber":
		return hexutil.Uint64(tip)
	case "eth_getBlockByNumber":
		full := len(c.Params) > 1 && string(c.Params[1]) == "true"
		height := tip

		switch tag := c.param(0); tag {
		case "latest":
		case "safe":
			height = max(0, tip-2)
		case "finalized":
			height = max(0, tip-4)
		default:
			number, err := hexutil.DecodeUint64(tag)
			if err != nil || number > uint64(tip) {
				return nil
			}

			height = int(number)
		}

		return n.blocks[height].json(full)
	case "eth_getBlockReceipts":
		for _, b := range n.blocks {
			if b.hash() == c.param(0) {
				return b.receipts
			}
		}

		return nil
	case "eth_getTransactionReceipt":
		return n.find(c.param(0), func(b fakeBlock, i int) any { return b.receipts[i] })
	case "eth_getTransactionByHash":
		return n.find(c.param(0), func(b fakeBlock, i int) any { return b.txs[i] })
	case "eth_getTransactionCount":
		return "0x0"
	case "eth_maxPriorityFeePerGas":
		return hexutil.Uint64(100_000_000)
	case "eth_estimateGas":
		return "0x5208"
	case "eth_getCode":
		return "0x"
	case "eth_getBalance":
		return hexutil.EncodeBig(chain.Pow10(18).Big())
	case "eth_call":
		word := chain.Pow10(12).Bytes32()
		return hexutil.Bytes(word[:])
	}

	return rpcError{-32601, "the method does not exist"}
}

func (n *fakeNode) find(hash string, get func(b fakeBlock, i int) any) any {
	for _, b := range n.blocks {
		for i, tx := range b.txs {
			if tx["hash"] == hash {
				return get(b, i)
			}
		}
	}

	return nil
}

// count returns how often a method was called.
func (n *fakeNode) count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()

	sum := 0

	for _, methods := range n.requests {
		for _, name := range methods {
			if name == method {
				sum++
			}
		}
	}

	return sum
}

func (n *fakeNode) resetRequests() {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.requests = nil
}

func (n *fakeNode) update(f func(n *fakeNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()

	f(n)
}

// fakeTransport sends requests to fake nodes by host name, in memory, for use under synctest. A nil
// node never answers.
type fakeTransport map[string]http.Handler

func (w fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}

	node, ok := w[r.URL.Hostname()]
	if !ok {
		return nil, errors.New("dial tcp: connection refused")
	}

	if node == nil { // a black hole
		<-r.Context().Done()
		return nil, r.Context().Err()
	}

	rec := httptest.NewRecorder()
	node.ServeHTTP(rec, r)

	return rec.Result(), nil
}

func fakeNetwork() chain.Network {
	n := evm.Local(fakeChainID, fakeToken)
	n.Rule, n.Confirmations = chain.RuleFinalized, 3

	return n
}

// fakeDriver returns a driver of fake nodes, in order of preference.
func fakeDriver(t *testing.T, w fakeTransport, hosts []string, change ...func(*evm.Config)) *evm.Driver {
	t.Helper()

	c := evm.Config{Network: fakeNetwork(), HTTPClient: &http.Client{Transport: w}, MaxBatch: 16}
	for _, host := range hosts {
		c.RPCs = append(c.RPCs, "http://"+host)
	}

	for _, apply := range change {
		apply(&c)
	}

	driver, err := evm.New(c)
	if err != nil {
		t.Fatal(err)
	}

	return driver
}

func driverOf(t *testing.T, n *fakeNode, change ...func(*evm.Config)) *evm.Driver {
	t.Helper()
	return fakeDriver(t, fakeTransport{"a": n}, []string{"a"}, change...)
}

func heights(blocks []chain.Block) []uint64 {
	var out []uint64
	for _, b := range blocks {
		out = append(out, b.Height)
	}

	return out
}

func wantHeights(t *testing.T, blocks []chain.Block, from, to uint64) {
	t.Helper()

	var want []uint64
	for h := from; h <= to; h++ {
		want = append(want, h)
	}

	if !slices.Equal(heights(blocks), want) {
		t.Fatalf("blocks %v, want %d to %d", heights(blocks), from, to)
	}
}
