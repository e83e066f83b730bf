package evm_test

// A scripted JSON-RPC node for what a real one cannot do: contradict itself, lag, refuse and fail.

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"io"
	"math/big"
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
	payerKey      = keyOf(9)
	payer         = crypto.PubkeyToAddress(payerKey.PublicKey)
	payee         = common.HexToAddress("0x3000000000000000000000000000000000000003")
)

type jsonObject = map[string]any

// keyOf returns the private key whose bytes are all the same.
func keyOf(b byte) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{b}, 32))
	must(err)

	return key
}

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
	full     bool // its transactions use all the gas that it has
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
	// refusesWith is the HTTP status of responses with an error; 0 for 200. Where refusesWhole is set, a batch with an
	// error is answered by that error alone.
	refusesWith  int
	refusesWhole bool
	nullErrors   bool // write "error": null beside results, as JSON-RPC 1.0 does
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

	b := fakeBlock{
		header: jsonObject{
			"number":        hexutil.Uint64(height),
			"timestamp":     hexutil.Uint64(1_700_000_000 + 12*height),
			"baseFeePerGas": hexutil.Uint64(1_000_000_000),
			"extraData":     hexutil.Bytes(branch),
		},
	}
	if height > 0 {
		b.txs = []jsonObject{
			{"to": payee.Hex(), "value": hexutil.Uint64(1000 + height), "nonce": hexutil.Uint64(height)},
		}
		other := common.HexToAddress("0x4000000000000000000000000000000000000004")
		token := common.HexToAddress(string(fakeToken.Contract))
		b.receipts = []jsonObject{
			{
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
	n.seal(height)
}

// seal makes the blocks from a height on consistent: signatures, hashes, roots, blooms and links follow
// from what the test wrote into transactions and receipts.
func (n *fakeNode) seal(from int) {
	for height := from; height < len(n.blocks); height++ {
		parent := common.Hash{}
		if height > 0 {
			parent = common.HexToHash(n.blocks[height-1].hash())
		}

		n.blocks[height].seal(parent, n.chainID)
	}
}

func (b *fakeBlock) seal(parent common.Hash, chainID uint64) {
	var (
		header   types.Header
		txs      [][]byte
		receipts [][]byte
	)

	for _, field := range []string{"sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot"} {
		b.header[field] = common.Hash{}
	}

	b.header["parentHash"], b.header["logsBloom"] = parent, types.Bloom{}
	b.header["difficulty"], b.header["gasLimit"], b.header["gasUsed"] = "0x0", "0x1c9c380", "0x5208"

	if b.full {
		b.header["gasUsed"] = b.header["gasLimit"]
	}

	recode(b.header, &header)

	gas := uint64(0)

	for i := range b.txs {
		kind, raw := sealTx(b.txs[i], chainID)
		receipt := sealReceipt(b.receipts[i], kind, &gas)
		encoded, err := receipt.MarshalBinary()
		must(err)

		txs, receipts = append(txs, raw), append(receipts, encoded)

		for j := range header.Bloom {
			header.Bloom[j] |= receipt.Bloom[j]
		}
	}

	header.TxHash, header.ReceiptHash = evm.ListRoot(txs), evm.ListRoot(receipts)
	hash := header.Hash()
	recode(&header, &b.header)

	for i := range b.txs {
		for _, part := range []jsonObject{b.txs[i], b.receipts[i]} {
			part["blockHash"], part["blockNumber"] = hash.Hex(), b.header["number"]
			part["transactionIndex"] = hexutil.Uint64(i)
		}

		b.receipts[i]["transactionHash"] = b.txs[i]["hash"]
	}
}

// sealTx signs a transaction and returns its type and encoding. One of a type that Ethereum does not
// have is left alone, with its encoding in raw.
func sealTx(fields jsonObject, chainID uint64) (kind uint8, encoded []byte) {
	if raw, ok := fields["raw"].(hexutil.Bytes); ok {
		fields["hash"] = crypto.Keccak256Hash(raw).Hex()
		return raw[0], raw
	}

	var wanted struct {
		To    *common.Address `json:"to"`
		Value *hexutil.Big    `json:"value"`
		Nonce hexutil.Uint64  `json:"nonce"`
		Input hexutil.Bytes   `json:"input"`
		Tip   hexutil.Uint64  `json:"maxPriorityFeePerGas"`
	}

	recode(fields, &wanted)

	id := new(big.Int).SetUint64(chainID)
	tx, err := types.SignNewTx(payerKey, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID:   id,
		Nonce:     uint64(wanted.Nonce),
		GasTipCap: new(big.Int).SetUint64(uint64(wanted.Tip)),
		GasFeeCap: new(big.Int).SetUint64(2_000_000_000 + uint64(wanted.Tip)),
		Gas:       100_000,
		To:        wanted.To,
		Value:     wanted.Value.ToInt(),
		Data:      wanted.Input,
	})
	must(err)
	recode(tx, &fields)

	fields["from"], fields["hash"] = payer.Hex(), tx.Hash().Hex()
	encoded, err = tx.MarshalBinary()
	must(err)

	return tx.Type(), encoded
}

// sealReceipt returns a receipt as the receipts root has it, and sets what nodes add to it.
func sealReceipt(fields jsonObject, kind uint8, gas *uint64) *types.Receipt {
	var wanted struct {
		Status  hexutil.Uint64 `json:"status"`
		GasUsed hexutil.Uint64 `json:"gasUsed"`
		Logs    []struct {
			Address common.Address `json:"address"`
			Topics  []common.Hash  `json:"topics"`
			Data    hexutil.Bytes  `json:"data"`
		} `json:"logs"`
	}

	recode(fields, &wanted)

	*gas += uint64(wanted.GasUsed)
	fields["cumulativeGasUsed"], fields["type"] = hexutil.Uint64(*gas), hexutil.Uint64(kind)
	receipt := &types.Receipt{Type: kind, Status: uint64(wanted.Status), CumulativeGasUsed: *gas}

	for _, log := range wanted.Logs {
		receipt.Logs = append(
			receipt.Logs, &types.Log{Address: log.Address, Topics: log.Topics, Data: log.Data},
		)
	}

	receipt.Bloom = types.CreateBloom(receipt)

	return receipt
}

// rename gives a block another hash, as an upgrade does that hashes more than go-ethereum knows, and
// seals the blocks above it.
func (n *fakeNode) rename(height int) {
	b := &n.blocks[height]
	hash := crypto.Keccak256Hash([]byte(b.hash())).Hex()
	b.header["hash"] = hash

	for i := range b.txs {
		b.txs[i]["blockHash"], b.receipts[i]["blockHash"] = hash, hash
	}

	n.seal(height + 1)
}

// recode writes one value into another of the same JSON form.
func recode(from, to any) {
	raw, err := json.Marshal(from)
	must(err)
	must(json.Unmarshal(raw, to))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
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

	var (
		answers []jsonObject
		refused jsonObject
	)

	for _, c := range calls {
		answer := jsonObject{"jsonrpc": "2.0", "id": c.ID}
		if result := n.respond(c); isRPCError(result) {
			answer["error"], refused = result, answer
		} else {
			answer["result"] = result
			if n.nullErrors {
				answer["error"] = nil
			}
		}

		answers = append(answers, answer)
	}

	w.Header().Set("Content-Type", "application/json")

	if refused != nil && n.refusesWith != 0 {
		w.WriteHeader(n.refusesWith)
	}

	if refused != nil && n.refusesWhole {
		_ = json.NewEncoder(w).Encode(refused)
		return
	}

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
		return n.inBlock(c.param(0), func(b fakeBlock) any { return b.receipts })
	case "eth_getBlockTransactionCountByHash":
		return n.inBlock(c.param(0), func(b fakeBlock) any { return hexutil.Uint64(len(b.txs)) })
	case "eth_getLogs":
		var filter struct {
			BlockHash string           `json:"blockHash"`
			Address   []common.Address `json:"address"`
		}

		must(json.Unmarshal(c.Params[0], &filter))

		return n.inBlock(filter.BlockHash, func(b fakeBlock) any { return b.logsOf(filter.Address) })
	case "eth_getRawTransactionByHash":
		return n.find(c.param(0), func(b fakeBlock, i int) any { return b.txs[i]["raw"] })
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

// inBlock returns a part of a block of a hash or a height; nil where there is none.
func (n *fakeNode) inBlock(block string, get func(b fakeBlock) any) any {
	if height, err := hexutil.DecodeUint64(block); err == nil && height < uint64(len(n.blocks)) {
		return get(n.blocks[height])
	}

	for _, b := range n.blocks {
		if b.hash() == block {
			return get(b)
		}
	}

	return nil
}

// logsOf returns the logs of contracts.
func (b fakeBlock) logsOf(contracts []common.Address) []jsonObject {
	logs := []jsonObject{}

	for _, receipt := range b.receipts {
		for _, log := range receipt["logs"].([]jsonObject) {
			if slices.Contains(contracts, common.HexToAddress(log["address"].(string))) {
				logs = append(logs, log)
			}
		}
	}

	return logs
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

	driver, err := evm.NewDriver(c)
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
