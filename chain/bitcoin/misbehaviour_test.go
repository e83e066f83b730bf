package bitcoin_test

// Nodes that return wrong answers, stall, refuse or serve another network.

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// payee is the address of BIP-173's examples on regtest.
const payee chain.Address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"

func payeeScript() []byte {
	b, _ := hex.DecodeString("0014751e76e8199196d454941c45d1b3a323f1433bd6")
	return b
}

func mustCode(t *testing.T, what string, err, word error, code string) {
	t.Helper()

	if !errors.Is(err, word) || fault.Code(err) != code {
		t.Errorf("%s: %v (code %q), want %v (%s)", what, err, fault.Code(err), word, code)
	}

	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("%s: the error shows a secret: %v", what, err)
	}
}

func TestBlockIsReadWhole(t *testing.T) {
	f := newFake(t)

	bare := append(append([]byte{33}, append([]byte{2}, payeeScript()[2:]...)...), make([]byte, 12)...)
	bare = append(bare, 0xac) // pay to a bare public key: its owner's address was not paid
	tx := makeTx(
		7, wire.NewTxOut(0, payeeScript()), wire.NewTxOut(5_000, payeeScript()),
		wire.NewTxOut(1_000, []byte{0x6a, 1, 1}), wire.NewTxOut(1_000, bare),
		wire.NewTxOut(6_000, payeeScript()),
	)
	b := makeBlock(
		t, 9, makeReward(wire.NewTxOut(1, payeeScript())), tx,
		makeTx(3, wire.NewTxOut(2, payeeScript())),
	)
	b.Txs[1].In = []map[string]any{
		{"prevout": map[string]any{"scriptPubKey": map[string]any{"hex": hex.EncodeToString(payeeScript())}}},
	}
	serveBlock(f, b)

	blocks, err := newDriver(t, f.config()).Blocks(t.Context(), 9, 9)
	if err != nil {
		t.Fatal(err)
	}

	got := blocks[0]
	if got.Hash != b.Hash || got.Height != 9 || got.Parent != b.Parent ||
		!got.Time.Equal(time.Unix(b.Time, 0)) {
		t.Errorf("read %+v", got.Ref)
	}

	id := tx.TxHash().String()
	asset := bitcoin.Regtest.With().Assets[0].ID

	var ours []chain.Transfer

	for _, x := range got.Transfers {
		if x.TxHash == id {
			ours = append(ours, x)
		}
	}

	want := []chain.Transfer{
		{TxHash: id, Index: 1, From: payee, To: payee, AssetID: asset, Amount: chain.Units(5_000)},
		{TxHash: id, Index: 4, From: payee, To: payee, AssetID: asset, Amount: chain.Units(6_000)},
	}
	if len(ours) != 2 || ours[0] != want[0] || ours[1] != want[1] || len(got.Transfers) != 4 {
		t.Errorf("transfers %+v, want %+v", got.Transfers, want)
	}

	if len(got.Spent) != 2 || got.Spent[0].By != id || got.Spent[0].Outpoint.Vout != 7 {
		t.Errorf("spent %+v: what the reward spends is nothing", got.Spent)
	}
}

func serveBlock(f *fakeNode, b fakeBlock) {
	genesis := f.methods["getblockhash"]
	f.on("getblockhash", func(p params) any {
		if string(p[0]) == "0" {
			return genesis(p)
		}

		return b.Hash
	})
	f.on("getblock", func(params) any { return b })
}

func TestMalformedBlocksAreNotTaken(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	signed := makeTx(2, pay)
	signed.TxIn[0].Witness = wire.TxWitness{{1, 2, 3}}
	one, two, three := commitTo(makeReward(pay), signed, makeTx(3, pay)), signed, makeTx(3, pay)

	for name, c := range map[string]struct {
		spoil func(b *fakeBlock)
		want  string // what the error names
	}{
		"another header":           {func(b *fakeBlock) { b.Nonce++ }, "another hash"},
		"another parent":           {func(b *fakeBlock) { b.Parent = strings.Repeat("0", 64) }, "another hash"},
		"another Merkle root":      {func(b *fakeBlock) { b.MerkleRoot = b.Hash }, "another hash"},
		"a parent that is no hash": {func(b *fakeBlock) { b.Parent = strings.Repeat("x", 64) }, "no header"},
		"bits that are no number":  {func(b *fakeBlock) { b.Bits = "zz" }, "no header"},
		"another height":           {func(b *fakeBlock) { b.Height++ }, "another height"},
		"no transactions":          {func(b *fakeBlock) { b.Txs = nil }, "no transactions"},
		"a transaction left out":   {func(b *fakeBlock) { b.Txs = b.Txs[:2] }, "Merkle root"},
		"a transaction added": {
			func(b *fakeBlock) { b.Txs = append(b.Txs, fakeTx{Hex: hexOf(t, makeTx(4, pay))}) },
			"Merkle root",
		},
		"a transaction twice": { // the same Merkle root
			func(b *fakeBlock) { b.Txs = append(b.Txs, b.Txs[2]) },
			"twice",
		},
		"an amount changed": {
			func(b *fakeBlock) { b.Txs[1].Hex = strings.Replace(b.Txs[1].Hex, "e803", "e903", 1) },
			"Merkle root",
		},
		"a witness changed": {
			func(b *fakeBlock) { b.Txs[1].Hex = strings.Replace(b.Txs[1].Hex, "010203", "010204", 1) },
			"commits to",
		},
		"the witnesses stripped": {
			func(b *fakeBlock) { b.Txs[1].Hex = hexOf(t, makeTx(2, pay)) },
			"commits to",
		},
		"the reserved value left out": {
			func(b *fakeBlock) {
				bare := one.Copy()
				bare.TxIn[0].Witness = nil
				b.Txs[0].Hex = hexOf(t, bare)
			}, "reserved value",
		},
		"bytes that are no hex": {func(b *fakeBlock) { b.Txs[1].Hex = "zz" }, "no transaction"},
		"bytes cut short":       {func(b *fakeBlock) { b.Txs[1].Hex = b.Txs[1].Hex[:20] }, "no transaction"},
		"bytes behind":          {func(b *fakeBlock) { b.Txs[1].Hex += "00" }, "no transaction"},
		"transactions in another order": {
			func(b *fakeBlock) { b.Txs[1], b.Txs[2] = b.Txs[2], b.Txs[1] },
			"Merkle root",
		},
		"a length that would fill memory": {
			func(b *fakeBlock) { b.Txs[1].Hex = "02000000feffffffff" },
			"no transaction",
		},
	} {
		f := newFake(t)
		b := makeBlock(t, 9, one, two, three)
		good := b.Hash
		c.spoil(&b)
		serveBlock(f, b)
		f.on("getblockhash", func(p params) any {
			if string(p[0]) == "0" {
				return bitcoinGenesis
			}

			return good
		})

		d := newDriver(t, f.config())
		blocks, err := d.Blocks(t.Context(), 9, 9)
		mustCode(t, name, err, fault.Unavailable, "node_unavailable")

		if len(blocks) != 0 || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error that names %q", name, blocks, err, c.want)
		}

		// Another node is asked, and kept to.
		honest := newFake(t)
		serveBlock(honest, makeBlock(t, 9, one, two, three))

		config := f.config()
		config.RPCs = []string{honest.URL}
		d = newDriver(t, config)

		for range 2 {
			if blocks, err := d.Blocks(t.Context(), 9, 9); err != nil || blocks[0].Hash != good {
				t.Errorf("%s: beside an honest node: %+v, %v", name, blocks, err)
			}
		}

		if f.called("getblock") != 2 {
			t.Errorf("%s: the node was asked %d times", name, f.called("getblock"))
		}
	}
}

const bitcoinGenesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"

func TestNodesThatAreNotUsable(t *testing.T) {
	for name, c := range map[string]struct {
		raw  http.HandlerFunc
		code string
	}{
		"wrong credentials": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "node_unauthorized"},
		"not allowed":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "node_unauthorized"},
		"busy":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "node_unavailable"},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/secret", http.StatusFound)
			},
			"node_unavailable",
		},
		"a web page": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
			"node_unavailable",
		},
		"nothing": {func(http.ResponseWriter, *http.Request) {}, "node_unavailable"},
		"half an answer": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("["))
			},
			"node_unavailable",
		},
		"one answer for two": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`[{"id":0,"result":"x","error":null}]`))
			},
			"node_unavailable",
		},
		"one answer twice": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`[{"id":0,"result":"x"},{"id":0,"result":"x"}]`))
			},
			"node_unavailable",
		},
		"too much": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20+1)) },
			"node_unavailable",
		},
		"starting": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`[{"id":0,"error":{"code":-28,"message":"Loading block index…"}},{` +
					`"id":1,"error":{"code":-28,"message":"Loading"}},{"id":2,"error":{"code":-28,"message":""}}]`))
			},
			"node_syncing",
		},
		"stalled": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "node_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.raw = c.raw
			config := f.config()
			config.MaxResponse, config.Timeout = 1<<20, 300*time.Millisecond
			d := newDriver(t, config)
			_, err := d.Head(t.Context())
			mustCode(t, "Head", err, fault.Unavailable, c.code)
			mustCode(t, "Check", d.Check(t.Context()), fault.Unavailable, c.code)
		})
	}
}

func TestStalledConnectionEndsWithTheContext(t *testing.T) {
	f := newFake(t)
	f.raw = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	config := f.config()
	config.Timeout = time.Minute

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, err := newDriver(t, config).Head(ctx)
	if !errors.Is(err, context.DeadlineExceeded) ||
		!errors.Is(err, fault.Unavailable) {
		t.Errorf("Head: %v", err)
	}
}

func TestSyncingNodeIsNotAsked(t *testing.T) {
	f := newFake(t)
	syncing := true

	f.on("getblockchaininfo", func(params) any { return map[string]any{"initialblockdownload": syncing} })
	f.on("getbestblockhash", func(params) any { return bitcoinGenesis })
	f.on("getblockheader", func(p params) any {
		if string(p[1]) == "false" {
			return rawGenesisHeader
		}

		return map[string]any{"hash": bitcoinGenesis, "height": 0, "time": 1296688602, "confirmations": 1}
	})
	d := newDriver(t, f.config())
	_, err := d.Head(t.Context())
	mustCode(t, "Head", err, fault.Unavailable, "node_syncing")

	if f.called("getbestblockhash") != 0 {
		t.Error("a syncing node was asked for its tip")
	}

	syncing = false

	if head, err := d.Head(t.Context()); err != nil || head.Tip.Hash != bitcoinGenesis {
		t.Errorf("after it caught up: %+v, %v", head, err)
	}
}

func TestCookieFile(t *testing.T) {
	f := newFake(t)
	f.raw = func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "__cookie__" || password != "abc" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}

		body, _ := io.ReadAll(r.Body)
		f.answer(w, body)
	}
	serveTip(t, f, makeChain(t, 1))

	path := filepath.Join(t.TempDir(), ".cookie")
	d := newDriver(t, bitcoin.Config{Network: bitcoin.Regtest, RPC: f.URL, CookieFile: path, Attempts: 1})
	mustCode(t, "without a file", d.Check(t.Context()), fault.Unavailable, "node_unauthorized")

	for content, ok := range map[string]bool{"__cookie__:old": false, "__cookie__:abc\n": true} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		if err := d.Check(t.Context()); (err == nil) != ok {
			t.Errorf("with cookie %q: %v", content, err)
		}
	}
}

func TestOtherNodesTakeOver(t *testing.T) {
	broken, foreign, good := newFake(t), newFake(t), newFake(t)
	broken.raw = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }

	foreign.on("getblockhash", func(params) any { return strings.Repeat("0", 64) })
	good.on("getrawmempool", func(params) any { return []string{} })

	c := broken.config()
	c.RPCs = []string{foreign.URL, good.URL}

	d := newDriver(t, c)
	for range 2 {
		if _, err := d.Pool(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if good.called("getrawmempool") != 2 || foreign.called("getrawmempool") != 0 ||
		foreign.called("getblockhash") != 1 {
		t.Error("the node that answered is not kept to, or a node of another network was asked")
	}

	mustCode(t, "Check", d.Check(t.Context()), fault.Unavailable, "node_unavailable")
	_, err := newDriver(t, foreign.config()).Head(t.Context())
	mustCode(t, "Head of another network's node", err, fault.Stopped, "chain_id_mismatch")
}

func TestPoolIsReadOnce(t *testing.T) {
	f := newFake(t)
	txs := map[string]string{}

	var order []string

	add := func(salt byte) {
		tx := makeTx(salt, wire.NewTxOut(1_000, payeeScript()))
		txs[tx.TxHash().String()] = hexOf(t, tx)
		order = append(order, tx.TxHash().String())
	}
	for salt := byte(1); salt <= 5; salt++ {
		add(salt)
	}

	f.on("getrawmempool", func(params) any { return order })
	f.on("getrawtransaction", func(p params) any {
		if s, ok := txs[p.text(0)]; ok {
			return s
		}

		return &rpcError{-5, "No such mempool transaction"}
	})
	c := f.config()
	c.PoolLimit = 4
	d := newDriver(t, c)
	check := func(want, fetched int) {
		t.Helper()

		pool, err := d.Pool(t.Context())
		if err != nil || len(pool) != want || f.called("getrawtransaction") != fetched {
			t.Errorf(
				"%d transactions after %d fetches, %v; want %d after %d",
				len(pool), f.called("getrawtransaction"), err, want, fetched,
			)
		}
	}
	check(4, 4)
	check(4, 4)

	order = order[2:] // two were mined

	check(3, 5)
	delete(txs, order[0]) // known already
	order = append(order, strings.Repeat("ab", 32))

	check(3, 6) // one leaves between the two questions

	txs[order[3]] = txs[order[1]]
	_, err := d.Pool(t.Context())
	mustCode(t, "another transaction than asked for", err, fault.Unavailable, "node_unavailable")
}

func TestFeeRatesStayWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		estimate any
		pool     map[string]json.Number
		want     uint64 // satoshi per 1000 vB, for three P2WPKH inputs, P2WPKH output and change, three times
		word     error
	}{
		"estimate":               {map[string]any{"feerate": json.Number("0.00008000")}, nil, 8_000, nil},
		"without data":           {map[string]any{"errors": []string{"Insufficient data"}}, nil, 10_000, nil},
		"btcd":                   {&rpcError{-32601, "Method not found"}, nil, 10_000, nil},
		"-blocksonly":            {&rpcError{-32603, "Fee estimation disabled"}, nil, 10_000, nil},
		"below the minimum":      {map[string]any{"feerate": json.Number("1e-8")}, nil, 1_000, nil},
		"above what blocks paid": {map[string]any{"feerate": json.Number("0.1")}, nil, 10_000, nil},
		"the pool asks more": {
			map[string]any{"feerate": json.Number("0.00005")},
			map[string]json.Number{"mempoolminfee": "0.00009"},
			9_000,
			nil,
		},
		"the pool asks more than blocks paid": {
			map[string]any{"feerate": json.Number("0.0001")},
			map[string]json.Number{"mempoolminfee": "0.0003"},
			0,
			fault.Limited,
		},
		"the pool asks absurd": {
			map[string]any{"feerate": json.Number("0.0001")},
			map[string]json.Number{"mempoolminfee": "0.006"},
			0,
			fault.Limited,
		},
		"negative":             {map[string]any{"feerate": json.Number("-0.0001")}, nil, 0, fault.Unavailable},
		"zero":                 {map[string]any{"feerate": json.Number("0")}, nil, 0, fault.Unavailable},
		"huge":                 {map[string]any{"feerate": json.Number("1e999999999")}, nil, 0, fault.Unavailable},
		"more than a fraction": {map[string]any{"feerate": json.Number("0.000000001")}, nil, 0, fault.Unavailable},
		"no number":            {map[string]any{"feerate": "much"}, nil, 0, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)

			pool := map[string]json.Number{
				"mempoolminfee":       "0.00001",
				"minrelaytxfee":       "0.00001",
				"incrementalrelayfee": "0.00001",
			}
			for k, v := range c.pool {
				pool[k] = v
			}

			f.on("estimatesmartfee", func(params) any { return c.estimate })
			f.on("getmempoolinfo", func(params) any { return pool })
			d := newDriver(t, f.config())
			asset := d.Network().Assets[0].ID

			fee, err := d.EstimateFee(t.Context(), chain.Order{
				From:    chain.Party{Address: payee},
				Outputs: []chain.Output{{To: payee, AssetID: asset, Amount: chain.Units(50_000)}},
				Coins: []chain.Coin{
					{
						Outpoint: chain.Outpoint{TxHash: strings.Repeat("1", 64)},
						Owner:    chain.Party{Address: payee},
						Amount:   chain.Units(100_000_000),
						Height:   1,
					},
				},
			})
			if c.word != nil {
				if !errors.Is(err, c.word) || !fee.IsZero() {
					t.Errorf("%s, %v, want %v", fee, err, c.word)
				}

				return
			}
			// 141 virtual bytes. Weight 562: 42 for the empty transaction with its counts, 272 for the only coin
			// that is at hand, 124 for each of two outputs.
			if want := chain.Units((c.want*141 + 999) / 1000).Mul(3); err != nil || fee != want {
				t.Errorf("%s, %v, want %s", fee, err, want)
			}
		})
	}
}

func TestBroadcastVerdicts(t *testing.T) {
	tx := makeTx(1, wire.NewTxOut(1_000, payeeScript()))
	raw, _ := hex.DecodeString(hexOf(t, tx))

	signed := chain.Signed{TxHash: tx.TxHash().String(), Raw: raw, From: payee}
	for name, c := range map[string]struct {
		answer any
		word   error // nil: taken
	}{
		"taken":        {signed.TxHash, nil},
		"in a block":   {&rpcError{-27, "Transaction outputs already in utxo set"}, nil},
		"known":        {&rpcError{-26, "txn-already-known"}, nil},
		"another hash": {strings.Repeat("0", 64), fault.Unavailable},
		"undecodable":  {&rpcError{-22, "TX decode failed"}, fault.Invalid},
		"bad signature": {
			&rpcError{
				-26,
				"mandatory-script-verify-flag-failed (Signature must be zero for failed CHECK(MULTI)SIG operation)",
			},
			fault.Invalid,
		},
		"more out than in":   {&rpcError{-26, "bad-txns-in-belowout"}, fault.Invalid},
		"coins spent":        {&rpcError{-25, "bad-txns-inputs-missingorspent"}, fault.Unavailable},
		"coins spent, by 26": {&rpcError{-26, "bad-txns-inputs-missingorspent"}, fault.Unavailable},
		"reward too young":   {&rpcError{-26, "bad-txns-premature-spend-of-coinbase"}, fault.Unavailable},
		"lock time ahead":    {&rpcError{-26, "non-final"}, fault.Unavailable},
		"fee too low":        {&rpcError{-26, "min relay fee not met, 1 < 100"}, fault.Unavailable},
		"not enough more":    {&rpcError{-26, "insufficient fee, rejecting replacement"}, fault.Unavailable},
		"pool full":          {&rpcError{-26, "mempool full"}, fault.Unavailable},
	} {
		f := newFake(t)
		f.on("sendrawtransaction", func(params) any { return c.answer })

		err := newDriver(t, f.config()).Broadcast(t.Context(), signed)
		if c.word == nil && err != nil || c.word != nil && !errors.Is(err, c.word) {
			t.Errorf("%s: %v, want %v", name, err, c.word)
		}
	}
}

func FuzzAssemble(f *testing.F) {
	d, err := bitcoin.NewDriver(bitcoin.Config{Network: bitcoin.Regtest, RPC: "http://127.0.0.1:1"})
	if err != nil {
		f.Fatal(err)
	}

	f.Add([]byte("psbt\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		signed, err := d.Assemble(chain.Order{}, chain.Unsigned{Raw: raw}, nil, nil)
		if !errors.Is(err, fault.Invalid) {
			t.Fatalf("%+v, %v", signed, err)
		}
	})
}
