package bitcoin_test

// What a node says that its blocks do not show.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/fault"
)

// A block whose hash is that of its own header, which no chain would take.
func TestBlocksOfNoChainAreNotTaken(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	witness := makeTx(2, pay)
	witness.TxIn[0].Witness = wire.TxWitness{{1}}

	again := func(b *fakeBlock) { // the hash of the changed header
		raw, err := hex.DecodeString(b.raw(t)[:160])
		if err != nil {
			t.Fatal(err)
		}

		b.Hash = chainhash.DoubleHashH(raw).String()
	}

	for name, c := range map[string]struct {
		txs   []*wire.MsgTx
		spoil func(b *fakeBlock)
		want  string
	}{
		"no work": {
			[]*wire.MsgTx{makeReward(pay)},
			func(b *fakeBlock) {
				for again(b); b.Hash < "8"; again(b) {
					b.Nonce++
				}
			},
			"proof of work",
		},
		"a target easier than any": {
			[]*wire.MsgTx{makeReward(pay)},
			func(b *fakeBlock) { b.Bits = "217fffff"; again(b) },
			"proof of work",
		},
		"a negative target": {
			[]*wire.MsgTx{makeReward(pay)},
			func(b *fakeBlock) {
				b.Bits = "20ffffff"
				for again(b); b.Hash >= "7f"; again(b) {
					b.Nonce++
				}
			},
			"proof of work",
		},
		"a target of 0": {
			[]*wire.MsgTx{makeReward(pay)},
			func(b *fakeBlock) { b.Bits = "20000000"; again(b) },
			"proof of work",
		},
		"a target without end": {
			[]*wire.MsgTx{makeReward(pay)},
			func(b *fakeBlock) { b.Bits = "ff7fffff"; again(b) },
			"proof of work",
		},
		"no coinbase":                   {[]*wire.MsgTx{makeTx(1, pay), makeTx(2, pay)}, nil, "coinbase"},
		"two coinbases":                 {[]*wire.MsgTx{makeReward(pay), makeReward(pay, pay)}, nil, "coinbase"},
		"witnesses that none commit to": {[]*wire.MsgTx{makeReward(pay), witness}, nil, "commits to none"},
	} {
		b := makeBlock(t, 9, c.txs...)
		if c.spoil != nil {
			c.spoil(&b)
		}

		f := newFake(t)
		serveBlock(f, b)

		blocks, err := newDriver(t, f.config()).Blocks(t.Context(), 9, 9)
		mustCode(t, name, err, fault.Unavailable, "node_unavailable")

		if len(blocks) != 0 || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error that names %q", name, blocks, err, c.want)
		}
	}
}

// A block that regtest takes has far too little work for the main network.
func TestTheTargetIsAtMostTheNetworks(t *testing.T) {
	raw, err := hex.DecodeString(makeBlock(t, 9, makeReward(wire.NewTxOut(1_000, payeeScript()))).raw(t))
	if err != nil {
		t.Fatal(err)
	}

	if problem := bitcoin.BlockProblem(raw); problem != "" {
		t.Errorf("on regtest it %s", problem)
	}

	problem := bitcoin.BlockProblemOn(&chaincfg.MainNetParams, raw)
	if !strings.Contains(problem, "proof of work") {
		t.Errorf("on the main network it %q", problem)
	}
}

// serveChain makes a node serve blocks from height 1 on.
func serveChain(t *testing.T, f *fakeNode, blocks ...fakeBlock) {
	t.Helper()
	f.on("getblockhash", func(p params) any {
		height, _ := strconv.Atoi(string(p[0]))

		switch {
		case height == 0:
			return bitcoinGenesis
		case height > len(blocks):
			return &rpcError{-8, "Block height out of range"}
		}

		return blocks[height-1].Hash
	})

	of := func(p params) (fakeBlock, bool) {
		i := slices.IndexFunc(blocks, func(b fakeBlock) bool { return b.Hash == p.text(0) })
		if i < 0 {
			return fakeBlock{}, false
		}

		return blocks[i], true
	}
	f.on("getblock", func(p params) any {
		b, ok := of(p)
		switch {
		case p.text(0) == bitcoinGenesis:
			return genesisBlock
		case !ok:
			return &rpcError{-5, "Block not found"}
		case string(p[1]) == "0":
			return b.raw(t)
		}

		return b
	})
	f.on("getblockheader", func(p params) any {
		b, ok := of(p)
		switch {
		case p.text(0) == bitcoinGenesis:
			return rawGenesisHeader
		case !ok:
			return &rpcError{-5, "Block not found"}
		case string(p[1]) == "false":
			return b.raw(t)[:160]
		}

		return map[string]any{
			"hash":          b.Hash,
			"height":        b.Height,
			"time":          b.Time,
			"confirmations": len(blocks) - int(b.Height) + 1,
		}
	})
}

func TestUnlinkedBlocksAreNotTaken(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	first := makeBlock(t, 1, makeReward(pay))
	child := mineBlock(t, 2, first.Hash, makeReward(pay))
	stranger := mineBlock(t, 2, strings.Repeat("1", 64), makeReward(pay))

	liar, honest := newFake(t), newFake(t)
	serveChain(t, liar, first, stranger)
	serveChain(t, honest, first, child)

	_, err := newDriver(t, liar.config()).Blocks(t.Context(), 1, 2)
	mustCode(t, "a block of another parent", err, fault.Unavailable, "node_unavailable")

	config := liar.config()
	config.RPCs = []string{honest.URL}

	blocks, err := newDriver(t, config).Blocks(t.Context(), 1, 2)
	if err != nil || len(blocks) != 2 || blocks[1].Hash != child.Hash {
		t.Errorf("beside an honest node: %+v, %v", blocks, err)
	}
}

func TestABlockIsConfirmedByAnotherNode(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	first := makeBlock(t, 1, makeReward(pay))
	other := makeBlock(t, 1, makeReward(pay, pay))

	for name, c := range map[string]struct {
		second []fakeBlock
		want   error
		code   string
	}{
		"the same":      {[]fakeBlock{first}, nil, ""},
		"another block": {[]fakeBlock{other}, fault.Unavailable, "nodes_disagree"},
		"not that far":  {nil, fault.Unavailable, "nodes_missing"},
	} {
		one, two := newFake(t), newFake(t)
		serveChain(t, one, first)
		serveChain(t, two, c.second...)

		at := chain.Ref{Height: 1, Hash: first.Hash}
		if _, err := newDriver(t, one.config()).AgreedBlock(t.Context(), at, nil); err != nil {
			t.Errorf("one node alone: %v", err)
		}

		config := one.config()
		config.RPCs = []string{two.URL}

		_, err := newDriver(t, config).AgreedBlock(t.Context(), at, nil)
		if c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if c.want != nil {
			mustCode(t, name, err, c.want, c.code)
		}
	}
}

// Where the other node is gone, what blocks show waits; after Alone the one that is left shows it, and is named.
func TestOneNodeGoesOnAlone(t *testing.T) {
	first := makeBlock(t, 1, makeReward(wire.NewTxOut(1_000, payeeScript())))
	at := chain.Ref{Height: 1, Hash: first.Hash}

	for _, alone := range []time.Duration{0, time.Nanosecond} {
		node := newFake(t)
		serveChain(t, node, first)

		config := node.config()
		config.RPCs, config.Alone, config.Attempts = []string{"http://127.0.0.1:1"}, alone, 1
		d := newDriver(t, config)

		_, err := d.AgreedBlock(t.Context(), at, nil)
		if alone == 0 {
			mustCode(t, "without Alone", err, fault.Unavailable, "nodes_missing")
		} else if err != nil {
			t.Errorf("with Alone: %v", err)
		}

		nodes := d.Nodes()
		if nodes[0].Alone != (alone > 0) || nodes[1].Trouble != chain.NodeSilent || nodes[1].Alone {
			t.Errorf("Alone %s: the nodes are %+v", alone, nodes)
		}
	}

	config := newFake(t).config()
	config.Alone = -1

	if _, err := bitcoin.New(config); fault.Code(err) != "config_invalid" {
		t.Errorf("a negative time: %v", err)
	}
}

// What a node says about a hash is a hint: only a block shows what it includes.
func TestANodesWordOnAHash(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	ours := makeTx(7, pay)
	rival := makeTx(7, pay, pay) // spends the same coin
	raw, _ := hex.DecodeString(hexOf(t, ours))
	signed := chain.Signed{TxHash: ours.TxHash().String(), Raw: raw, From: payee, MaxFee: chain.Units(5)}

	empty := makeBlock(t, 1, makeReward(pay))
	holding := mineBlock(t, 2, empty.Hash, makeReward(pay), ours)
	rivals := mineBlock(t, 2, empty.Hash, makeReward(pay), rival)

	spent := func(params) any { return nil }
	unspent := func(params) any { return map[string]any{"value": json.Number("0.1")} }
	denial := func(params) any { return &rpcError{-5, "No such mempool or blockchain transaction"} }
	inBlock := func(hash string) func(params) any {
		return func(params) any {
			return map[string]any{"hex": hexOf(t, ours), "blockhash": hash, "confirmations": 9}
		}
	}

	for name, c := range map[string]struct {
		blocks []fakeBlock
		byHash func(params) any
		coin   func(params) any
		status chain.TxState // "": unavailable
		lookUp error         // of Transaction; nil: found
	}{
		"named and held":        {[]fakeBlock{empty, holding}, inBlock(holding.Hash), spent, chain.TxIncluded, nil},
		"named, in no block":    {[]fakeBlock{empty}, inBlock(holding.Hash), spent, "", fault.Unavailable},
		"named in another":      {[]fakeBlock{empty, holding}, inBlock(empty.Hash), spent, "", fault.Unavailable},
		"named in nothing":      {[]fakeBlock{empty, holding}, inBlock("x"), spent, "", fault.Unavailable},
		"denied and held":       {[]fakeBlock{empty, holding}, denial, spent, chain.TxIncluded, fault.NotFound},
		"denied, coin and all":  {[]fakeBlock{empty, holding}, denial, unspent, chain.TxUnknown, fault.NotFound},
		"denied, coin is spent": {[]fakeBlock{empty}, denial, spent, chain.TxUnknown, fault.NotFound},
		"spent by another": {
			[]fakeBlock{empty, rivals, mineBlock(t, 3, rivals.Hash, makeReward(pay))},
			denial,
			spent,
			chain.TxUnknown,
			fault.NotFound,
		},
	} {
		f := newFake(t)
		serveChain(t, f, c.blocks...)
		f.on("getrawtransaction", c.byHash)
		f.on("gettxout", c.coin)
		f.on("getindexinfo", func(params) any {
			return map[string]any{"txindex": map[string]any{"synced": true}}
		})

		d := newDriver(t, f.config())

		for range 2 {
			status, err := d.Status(t.Context(), signed)
			if status.State != c.status || (c.status == "") != errors.Is(err, fault.Unavailable) {
				t.Errorf("%s: %+v, %v; want %q", name, status, err, c.status)
			}

			if c.status == chain.TxIncluded &&
				(status.Block.Hash != holding.Hash || status.Block.Height != 2 || len(status.Transfers) != 1) {
				t.Errorf("%s: %+v", name, status)
			}
		}

		found, err := d.Transaction(t.Context(), signed.TxHash)
		if c.lookUp != nil && !errors.Is(err, c.lookUp) ||
			c.lookUp == nil && (err != nil || found.Block.Hash != holding.Hash) {
			t.Errorf("%s: found %+v, %v; want %v", name, found, err, c.lookUp)
		}

		// Another node has it.
		honest := newFake(t)
		serveChain(t, honest, empty, holding)
		honest.on("getrawtransaction", inBlock(holding.Hash))

		config := f.config()
		config.RPCs = []string{honest.URL}

		found, err = newDriver(t, config).Transaction(t.Context(), signed.TxHash)
		if err != nil || found.Block.Hash != holding.Hash {
			t.Errorf("%s, beside an honest node: found %+v, %v", name, found, err)
		}
	}
}

// Our transaction is more than a day of blocks away, at a node without an index.
func TestSearchGoesOnFromCallToCall(t *testing.T) {
	pay := wire.NewTxOut(1_000, payeeScript())
	ours := makeTx(7, pay)
	raw, _ := hex.DecodeString(hexOf(t, ours))
	signed := chain.Signed{TxHash: ours.TxHash().String(), Raw: raw, From: payee}

	blocks := []fakeBlock{makeBlock(t, 1, makeReward(pay))}
	for height := uint64(2); height < 150; height++ {
		blocks = append(blocks, mineBlock(t, height, blocks[height-2].Hash, makeReward(pay)))
	}

	blocks = append(blocks, mineBlock(t, 150, blocks[148].Hash, makeReward(pay), ours))

	f := newFake(t)
	serveChain(t, f, blocks...)
	f.on("getrawtransaction", func(params) any { return &rpcError{-5, "No such mempool transaction"} })
	f.on("gettxout", func(params) any { return nil })

	d := newDriver(t, f.config())
	for i, want := range []chain.TxState{chain.TxUnknown, chain.TxIncluded, chain.TxIncluded} {
		if status, err := d.Status(t.Context(), signed); err != nil || status.State != want {
			t.Errorf("call %d: %+v, %v; want %s", i+1, status, err, want)
		}
	}

	if f.called("getblock") != 151 { // with the genesis block
		t.Errorf("%d blocks were read", f.called("getblock"))
	}
}

// FuzzBlock: bytes that pass the checks are a block whose transactions its header names.
func FuzzBlock(f *testing.F) {
	pay := wire.NewTxOut(1_000, payeeScript())
	signed := makeTx(2, pay)
	signed.TxIn[0].Witness = wire.TxWitness{{1, 2, 3}}

	for _, text := range []string{
		genesisBlock,
		makeBlock(&testing.T{}, 9, makeReward(pay), makeTx(3, pay)).raw(&testing.T{}),
		makeBlock(&testing.T{}, 9, commitTo(makeReward(pay), signed), signed).raw(&testing.T{}),
	} {
		raw, err := hex.DecodeString(text)
		if err != nil || bitcoin.BlockProblem(raw) != "" {
			f.Fatal(err, bitcoin.BlockProblem(raw))
		}

		f.Add(raw)
	}

	f.Fuzz(func(t *testing.T, raw []byte) {
		if bitcoin.BlockProblem(raw) != "" {
			return
		}

		block := new(wire.MsgBlock)
		if err := block.Deserialize(bytes.NewReader(raw)); err != nil {
			t.Fatal(err)
		}

		ids, err := block.TxHashes()
		if err != nil || rootOf(ids) != block.Header.MerkleRoot {
			t.Errorf("%x passes with another Merkle root, %v", raw, err)
		}
	})
}

// genesisBlock is the first block of regtest.
const genesisBlock = "" +
	"0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e" +
	"67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000000000" +
	"000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63" +
	"656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000" +
	"434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7" +
	"ba0b8d578a4c702b6bf11d5fac00000000"
