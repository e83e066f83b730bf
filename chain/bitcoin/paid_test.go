package bitcoin_test

import (
	"encoding/json"
	"testing"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// A transaction that a person acknowledges comes without its bytes. Its fee is what it spends beyond its outputs: by
// the transactions that made its coins, or as a node without an index of them says.
func TestFeeOfATransactionWithoutItsBytes(t *testing.T) {
	made := makeTx(1, wire.NewTxOut(700, payeeScript()), wire.NewTxOut(2_500, payeeScript()))
	hash := made.TxHash()

	paid := wire.NewMsgTx(2)
	paid.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&hash, 1), []byte{1}, nil))
	paid.AddTxOut(wire.NewTxOut(1_000, payeeScript()))
	paid.AddTxOut(wire.NewTxOut(1_300, payeeScript()))

	signed := chain.Signed{
		TxHash: paid.TxHash().String(),
		From:   payee,
		Inputs: []chain.Outpoint{{TxHash: hash.String(), Vout: 1}},
	}

	for name, c := range map[string]struct {
		indexed bool
		named   string // what the block names as spent
		fee     uint64
	}{
		"an index of transactions":      {indexed: true, named: "0.00009999", fee: 200},
		"the block names what is spent": {named: "0.00002501", fee: 201},
		"nothing names it":              {},
	} {
		t.Run(name, func(t *testing.T) {
			below := makeBlock(t, 1, makeReward(wire.NewTxOut(1, payeeScript())), made)
			holding := mineBlock(t, 2, below.Hash, makeReward(wire.NewTxOut(1, payeeScript())), paid)

			f := newFake(t)
			serveChain(t, f, below, holding)
			f.on("gettxout", func(params) any { return nil })
			f.on("getrawtransaction", func(p params) any {
				if !c.indexed || p.text(0) != hash.String() {
					return &rpcError{-5, "No such mempool or blockchain transaction"}
				}

				return map[string]any{"hex": hexOf(t, made), "blockhash": below.Hash, "confirmations": 2}
			})

			rawBlock := f.methods["getblock"]
			f.on("getblock", func(p params) any {
				if c.named == "" || string(p[1]) != "3" {
					return rawBlock(p)
				}

				in := map[string]any{"prevout": map[string]any{"value": json.Number(c.named)}}

				return map[string]any{
					"tx": []map[string]any{{"txid": "other"}, {"txid": signed.TxHash, "vin": []any{in}}},
				}
			})

			status, err := newDriver(t, f.config()).Status(t.Context(), signed)
			if err != nil || status.State != chain.TxIncluded || status.Fee != chain.Units(c.fee) {
				t.Errorf("%+v, %v; want a fee of %d", status, err, c.fee)
			}
		})
	}
}

// A coin that is worth less than the transaction pays is no answer.
func TestFeeIsNeverNegative(t *testing.T) {
	made := makeTx(1, wire.NewTxOut(700, payeeScript()))
	hash := made.TxHash()

	paid := wire.NewMsgTx(2)
	paid.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&hash, 0), []byte{1}, nil))
	paid.AddTxOut(wire.NewTxOut(701, payeeScript()))

	block := makeBlock(t, 1, makeReward(wire.NewTxOut(1, payeeScript())), made, paid)
	f := newFake(t)
	serveChain(t, f, block)
	f.on("getrawtransaction", func(p params) any {
		tx := made
		if p.text(0) != hash.String() {
			tx = paid
		}

		return map[string]any{"hex": hexOf(t, tx), "blockhash": block.Hash, "confirmations": 1}
	})

	signed := chain.Signed{TxHash: paid.TxHash().String(), From: payee}
	if status, err := newDriver(t, f.config()).Status(t.Context(), signed); err == nil {
		t.Errorf("it is %+v", status)
	}
}
