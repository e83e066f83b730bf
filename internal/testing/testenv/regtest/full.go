package regtest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcutil/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// each is what a coin of a split reward holds, in satoshi.
const each = btcutil.SatoshiPerBitcoin / 100

// Split makes blocks that split rewards, one for each full block that is to come, into a coin for
// each of its transactions.
func (p *Payer) Split(ctx context.Context, blocks, transactions int) ([]*wire.MsgTx, error) {
	splits := make([]*wire.MsgTx, blocks)
	for i := range splits {
		splits[i] = wire.NewMsgTx(2)
		reward := p.chain[p.spent+1+i].Transactions[0].TxHash()
		splits[i].AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: reward}, nil, nil))

		for range transactions {
			splits[i].AddTxOut(wire.NewTxOut(each, p.script))
		}

		if err := p.sign(splits[i], subsidy); err != nil {
			return nil, err
		}

		if err := p.extend(ctx, splits[i:i+1]); err != nil {
			return nil, err
		}
	}

	p.spent += blocks

	return splits, nil
}

// MineFull makes a block for each split reward, of as many transactions as it has coins, each with
// one input and two outputs. Of every block some outputs go to the addresses given, one each, and
// the rest to nobody's.
func (p *Payer) MineFull(ctx context.Context, splits []*wire.MsgTx, to []chain.Address) error {
	scripts := make([][]byte, len(to))
	for i, a := range to {
		decoded, err := address.DecodeAddress(string(a), params)
		if err != nil {
			return err
		}

		if scripts[i], err = txscript.PayToAddrScript(decoded); err != nil {
			return err
		}
	}

	for i, split := range splits {
		hash := split.TxHash()

		txs := make([]*wire.MsgTx, len(split.TxOut))
		for n := range txs {
			script := nobody(i, n)
			if n < len(scripts) {
				script = scripts[n]
			}

			txs[n] = wire.NewMsgTx(2)
			txs[n].AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: hash, Index: uint32(n)}, nil, nil))
			txs[n].AddTxOut(wire.NewTxOut(each/2, script))
			txs[n].AddTxOut(wire.NewTxOut(each/2-coinFee, nobody(i, n+len(txs))))

			if err := p.sign(txs[n], each); err != nil {
				return err
			}
		}

		if err := p.extend(ctx, txs); err != nil {
			return err
		}
	}

	return nil
}

// nobody is the script of an address without a key.
func nobody(block, n int) []byte {
	seed := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(block)), uint64(n))
	hash := sha256.Sum256(seed)

	return append([]byte{txscript.OP_0, 20}, hash[:20]...)
}
