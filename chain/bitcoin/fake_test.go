package bitcoin_test

// A fake node whose answers each test sets.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain/bitcoin"
)

// rpcError is a JSON-RPC error that a fake node answers.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type params []json.RawMessage

func (p params) text(i int) string {
	var s string

	_ = json.Unmarshal(p[i], &s)

	return s
}

// fakeNode answers by method; raw takes over whole requests.
type fakeNode struct {
	*httptest.Server
	mu      sync.Mutex
	methods map[string]func(params) any
	raw     http.HandlerFunc
	calls   map[string]int
}

// rawGenesisHeader is the header of regtest's genesis block, the parent of the blocks of makeBlock.
var rawGenesisHeader = rawHeader(chaincfg.RegressionNetParams.GenesisBlock.Header)

func rawHeader(header wire.BlockHeader) string {
	var raw bytes.Buffer

	_ = header.Serialize(&raw)

	return hex.EncodeToString(raw.Bytes())
}

// newFake returns a node of regtest that has only its genesis block.
func newFake(t *testing.T) *fakeNode {
	t.Helper()

	f := &fakeNode{methods: map[string]func(params) any{}, calls: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	f.on("getblockhash", func(params) any { return chaincfg.RegressionNetParams.GenesisHash.String() })
	f.on("getblockheader", func(params) any { return rawGenesisHeader })
	f.on("getblockchaininfo", func(params) any { return map[string]any{"initialblockdownload": false} })

	return f
}

func (f *fakeNode) on(method string, answer func(params) any) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.methods[method] = answer
}

func (f *fakeNode) called(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.calls[method]
}

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // before anything else: only then the server sees a client go away
	if f.raw != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.raw(w, r)

		return
	}

	f.answer(w, body)
}

func (f *fakeNode) answer(w http.ResponseWriter, body []byte) {
	var requests []struct {
		ID     int
		Method string
		Params params
	}
	if err := json.Unmarshal(body, &requests); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	type response struct {
		ID     int       `json:"id"`
		Result any       `json:"result"`
		Error  *rpcError `json:"error"`
	}

	var out []response

	for i := len(requests) - 1; i >= 0; i-- { // the order of a batch's answers is free
		q := requests[i]

		f.mu.Lock()
		answer := f.methods[q.Method]
		f.calls[q.Method]++
		f.mu.Unlock()

		a := response{ID: q.ID, Error: &rpcError{-32601, "Method not found"}}
		if answer != nil {
			a.Result, a.Error = answer(q.Params), nil
			if refused, ok := a.Result.(*rpcError); ok {
				a.Result, a.Error = nil, refused
			}
		}

		out = append(out, a)
	}

	_ = json.NewEncoder(w).Encode(out)
}

func (f *fakeNode) config() bitcoin.Config {
	return bitcoin.Config{
		Network:  bitcoin.Regtest,
		RPC:      strings.Replace(f.URL, "http://", "http://somebody:secret-password@", 1) + "/secret-path",
		Attempts: 1,
		Timeout:  2 * time.Second,
	}
}

// fakeBlock is an answer of getblock, which a test may corrupt.
type fakeBlock struct {
	Hash       string   `json:"hash"`
	Height     uint64   `json:"height"`
	Version    int32    `json:"version"`
	Parent     string   `json:"previousblockhash,omitempty"`
	MerkleRoot string   `json:"merkleroot"`
	Time       int64    `json:"time"`
	Bits       string   `json:"bits"`
	Nonce      uint32   `json:"nonce"`
	Txs        []fakeTx `json:"tx"`
}

type fakeTx struct {
	Hex string           `json:"hex"`
	In  []map[string]any `json:"vin"`
}

// makeBlock returns a block of transactions, of which the first is makeReward's.
func makeBlock(t *testing.T, height uint64, txs ...*wire.MsgTx) fakeBlock {
	t.Helper()
	return mineBlock(t, height, chaincfg.RegressionNetParams.GenesisHash.String(), txs...)
}

// mineBlock returns a block on top of a parent, with proof of work. A reward at its front gets the height.
func mineBlock(t *testing.T, height uint64, parent string, txs ...*wire.MsgTx) fakeBlock {
	t.Helper()

	var (
		ids []chainhash.Hash
		in  []fakeTx
	)

	if len(txs) > 0 && txs[0].TxIn[0].PreviousOutPoint.Hash == (chainhash.Hash{}) {
		txs[0].TxIn[0].SignatureScript = heightScript(t, height)
	}

	for _, tx := range txs {
		ids = append(ids, tx.TxHash())
		in = append(in, fakeTx{Hex: hexOf(t, tx)})
	}

	prev, err := chainhash.NewHashFromStr(parent)
	if err != nil {
		t.Fatal(err)
	}

	h := wire.BlockHeader{
		Version:    0x20000000,
		PrevBlock:  *prev,
		MerkleRoot: rootOf(ids),
		Timestamp:  time.Unix(1_700_000_000, 0),
		Bits:       0x207fffff,
	}
	for h.BlockHash()[31]&0x80 != 0 { // regtest's target is all but the highest bit
		h.Nonce++
	}

	return fakeBlock{
		Hash:       h.BlockHash().String(),
		Height:     height,
		Version:    h.Version,
		Parent:     h.PrevBlock.String(),
		MerkleRoot: h.MerkleRoot.String(),
		Time:       h.Timestamp.Unix(),
		Bits:       "207fffff",
		Nonce:      h.Nonce,
		Txs:        in,
	}
}

// heightScript begins a coinbase (BIP-34).
func heightScript(t *testing.T, height uint64) []byte {
	t.Helper()

	script, err := txscript.NewScriptBuilder().AddInt64(int64(height)).AddOp(txscript.OP_0).Script()
	if err != nil {
		t.Fatal(err)
	}

	return script
}

// rootOf returns the Merkle root, written apart from the driver's own.
func rootOf(ids []chainhash.Hash) chainhash.Hash {
	for len(ids) > 1 {
		var next []chainhash.Hash

		for i := 0; i < len(ids); i += 2 {
			right := ids[min(i+1, len(ids)-1)]
			next = append(next, chainhash.DoubleHashH(append(ids[i][:], right[:]...)))
		}

		ids = next
	}

	return ids[0]
}

// raw returns the block's bytes, as getblock answers them with verbosity 0.
func (b fakeBlock) raw(t *testing.T) string {
	t.Helper()

	var prev, root chainhash.Hash
	if chainhash.Decode(&prev, b.Parent) != nil || chainhash.Decode(&root, b.MerkleRoot) != nil {
		t.Fatal("the block has no header")
	}

	bits, err := strconv.ParseUint(b.Bits, 16, 32)
	if err != nil {
		t.Fatal(err)
	}

	var text strings.Builder

	header := wire.NewBlockHeader(b.Version, &prev, &root, uint32(bits), b.Nonce)
	header.Timestamp = time.Unix(b.Time, 0)

	if err := header.Serialize(hexWriter{&text}); err != nil {
		t.Fatal(err)
	}

	fmt.Fprintf(&text, "%02x", len(b.Txs)) // fewer than 253

	for _, tx := range b.Txs {
		text.WriteString(tx.Hex)
	}

	return text.String()
}

// makeReward returns a coinbase transaction.
func makeReward(outputs ...*wire.TxOut) *wire.MsgTx {
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&chainhash.Hash{}, ^uint32(0)), []byte{1, 9}, nil))
	tx.TxOut = outputs

	return tx
}

// commitTo makes a coinbase transaction commit to the witnesses of the others (BIP-141).
func commitTo(reward *wire.MsgTx, txs ...*wire.MsgTx) *wire.MsgTx {
	ids := []chainhash.Hash{{}}
	for _, tx := range txs {
		ids = append(ids, tx.WitnessHash())
	}

	reserved := make([]byte, 32)
	reward.TxIn[0].Witness = wire.TxWitness{reserved}
	root := rootOf(ids)
	script := append(
		[]byte{0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed},
		chainhash.DoubleHashB(append(root[:], reserved...))...)
	reward.AddTxOut(wire.NewTxOut(0, script))

	return reward
}

func hexOf(t *testing.T, tx *wire.MsgTx) string {
	t.Helper()

	var b strings.Builder
	if err := tx.Serialize(hexWriter{&b}); err != nil {
		t.Fatal(err)
	}

	return b.String()
}

type hexWriter struct{ to *strings.Builder }

func (w hexWriter) Write(p []byte) (int, error) {
	const digits = "0123456789abcdef"
	for _, c := range p {
		w.to.WriteByte(digits[c>>4])
		w.to.WriteByte(digits[c&15])
	}

	return len(p), nil
}

// makeTx spends an output that does not exist; salt makes transactions different.
func makeTx(salt byte, outputs ...*wire.TxOut) *wire.MsgTx {
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: chainhash.Hash{salt}, Index: uint32(salt)}, nil, nil))
	tx.TxOut = outputs

	return tx
}
