//go:build unix

package bitcoin_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// withPreviousOutputs is an answer of getblock with verbosity 3: the scripts that the block spends make it large.
func withPreviousOutputs(block fakeBlock, inputs, scriptBytes int) map[string]any {
	spent := map[string]any{
		"prevout": map[string]any{"scriptPubKey": map[string]any{"hex": strings.Repeat("51", scriptBytes)}},
	}
	answer := map[string]any{
		"hash":              block.Hash,
		"height":            block.Height,
		"version":           block.Version,
		"previousblockhash": block.Parent,
		"merkleroot":        block.MerkleRoot,
		"time":              block.Time,
		"bits":              block.Bits,
		"nonce":             block.Nonce,
	}

	var txs []map[string]any

	for _, tx := range block.Txs {
		in := make([]any, inputs)
		for i := range in {
			in[i] = spent
		}

		txs = append(txs, map[string]any{"hex": tx.Hex, "vin": in})
	}

	answer["tx"] = txs

	return answer
}

// A small block can spend scripts that make the answer with them many times as large as Config.MaxResponse, or too
// slow. It is read without them: only the sender, which is for display, is unknown then.
func TestBlockOfALargeAnswerIsReadWithoutPreviousOutputs(t *testing.T) {
	block := makeBlock(
		t, 1, makeReward(wire.NewTxOut(5_000, payeeScript())), makeTx(1, wire.NewTxOut(700, payeeScript())),
	)

	for name, answer := range map[string]func(context.Context) any{
		"too large": func(context.Context) any { return withPreviousOutputs(block, 2_450, 1_000) },
		"too slow": func(ctx context.Context) any {
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			serveChain(t, f, block)

			small, ctx := f.methods["getblock"], t.Context()
			f.on("getblock", func(p params) any {
				if string(p[1]) != "3" {
					return small(p)
				}

				return answer(ctx)
			})

			config := f.config()
			config.MaxResponse = 1 << 20

			got, err := newDriver(t, config).Blocks(ctx, 1, 1)
			if err != nil || len(got) != 1 || got[0].Hash != block.Hash {
				t.Fatalf("%+v, %v", got, err)
			}

			if len(got[0].Transfers) != 2 || got[0].Transfers[1].Amount != chain.Units(700) ||
				got[0].Transfers[0].Locked == 0 || len(got[0].Spent) != 1 {
				t.Errorf("the block is %+v", got[0])
			}
		})
	}
}

// A batch whose answer is too large is asked for in halves.
func TestBatchOfALargeAnswerIsReadInParts(t *testing.T) {
	f, txs := newFake(t), map[string]*wire.MsgTx{}

	var hashes []string

	for i := range 100 {
		script := append([]byte{txscript.OP_RETURN}, bytes.Repeat([]byte{byte(i)}, 9_000)...)
		tx := makeTx(byte(i), wire.NewTxOut(700, payeeScript()), wire.NewTxOut(0, script))
		txs[tx.TxHash().String()] = tx
		hashes = append(hashes, tx.TxHash().String())
	}

	f.on("getrawmempool", func(params) any { return hashes })
	f.on("getrawtransaction", func(p params) any { return hexOf(t, txs[p.text(0)]) })

	config := f.config()
	config.MaxResponse = 1 << 20

	pool, err := newDriver(t, config).Pool(t.Context())
	if err != nil || len(pool) != len(hashes) {
		t.Errorf("%d of %d transactions, %v", len(pool), len(hashes), err)
	}
}

// A block of 100 kB spends 2,450 outputs with scripts of 10 kB: bitcoind's answer with previous outputs has about
// 140 MiB.
func TestBlockThatSpendsLargeScriptsIsRead(t *testing.T) {
	const (
		outputs, perTx = 2_450, 98
		matured        = 100
	)

	n := testenv.Bitcoind(t, testenv.BitcoindOptions{NoTxIndex: true})
	ctx := t.Context()

	call := func(result any, method string, params ...any) {
		t.Helper()

		if err := n.Call(ctx, result, method, params...); err != nil {
			t.Fatal(err)
		}
	}

	mine := func(txs ...*wire.MsgTx) string {
		t.Helper()

		raw := make([]string, len(txs))
		for i, tx := range txs {
			raw[i] = hexOf(t, tx)
		}

		var mined struct{ Hash string }

		call(&mined, "generateblock", "raw(51)", raw)

		return mined.Hash
	}

	call(nil, "generatetodescriptor", matured+1, "raw(51)")

	var first struct {
		Tx []string `json:"tx"`
	}

	var hash string

	call(&hash, "getblockhash", 1)
	call(&first, "getblock", hash, 1)

	reward, err := chainhash.NewHashFromStr(first.Tx[0])
	if err != nil {
		t.Fatal(err)
	}

	// Each output's script drops its data and succeeds.
	script := txscript.NewScriptBuilder()
	for range 19 {
		script.AddData(bytes.Repeat([]byte{1}, 520)).AddOp(txscript.OP_DROP)
	}

	heavy, err := script.AddOp(txscript.OP_1).Script()
	if err != nil {
		t.Fatal(err)
	}

	spends, rest, from := wire.NewMsgTx(2), int64(5_000_000_000), *wire.NewOutPoint(reward, 0)
	for range outputs / perTx {
		tx := wire.NewMsgTx(2)
		tx.AddTxIn(wire.NewTxIn(&from, nil, nil))

		rest -= perTx * 1_000
		tx.AddTxOut(wire.NewTxOut(rest, []byte{txscript.OP_1}))

		for range perTx {
			tx.AddTxOut(wire.NewTxOut(1_000, heavy))
		}

		mine(tx)

		id := tx.TxHash()
		from = *wire.NewOutPoint(&id, 0)

		for i := range perTx {
			spends.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&id, uint32(i+1)), nil, nil))
		}
	}

	spends.AddTxOut(wire.NewTxOut(outputs*1_000, payeeScript()))
	holding := mine(spends)

	d := newDriver(t, bitcoin.Config{
		Network:  bitcoin.Regtest,
		RPC:      "http://" + n.User + ":" + n.Password + "@" + n.Addr,
		Attempts: 1,
	})

	height := uint64(matured + 2 + outputs/perTx)

	blocks, err := d.Blocks(ctx, height, height)
	if err != nil || len(blocks) != 1 || blocks[0].Hash != holding || len(blocks[0].Spent) != outputs {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}

	last := blocks[0].Transfers[len(blocks[0].Transfers)-1]
	if last.To != payee || last.Amount != chain.Units(outputs*1_000) {
		t.Errorf("the block pays %+v", last)
	}
}
