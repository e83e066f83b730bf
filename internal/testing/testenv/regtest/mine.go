package regtest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
)

// easiest is the target of every block on regtest.
const easiest = 0x207fffff

// Mine makes blocks, the first of which includes what waits in the pool and beside it.
func (p *Payer) Mine(ctx context.Context, blocks int) error {
	for i := range blocks {
		var txs []*wire.MsgTx

		if i == 0 {
			var err error
			if txs, err = p.all(ctx); err != nil {
				return err
			}
		}

		if err := p.extend(ctx, txs); err != nil {
			return err
		}
	}

	return nil
}

// MineEmpty makes blocks that leave the pool alone.
func (p *Payer) MineEmpty(ctx context.Context, blocks int) error {
	for range blocks {
		if err := p.extend(ctx, nil); err != nil {
			return err
		}
	}

	return nil
}

// all takes what waits, parents before children.
func (p *Payer) all(ctx context.Context) ([]*wire.MsgTx, error) {
	var hashes []string
	if err := p.rpc.Call(ctx, &hashes, "getrawmempool"); err != nil {
		return nil, err
	}

	waiting := p.pending

	p.pending = nil
	for _, h := range hashes {
		tx, err := p.waiting(ctx, h)
		if err != nil {
			return nil, err
		}

		waiting = append(waiting, tx)
	}

	return ordered(waiting), nil
}

// ordered puts parents before children.
func ordered(txs []*wire.MsgTx) (out []*wire.MsgTx) {
	byHash := map[chainhash.Hash]*wire.MsgTx{}
	for _, tx := range txs {
		byHash[tx.TxHash()] = tx
	}

	var add func(tx *wire.MsgTx)

	add = func(tx *wire.MsgTx) {
		hash := tx.TxHash()
		if byHash[hash] == nil {
			return
		}

		delete(byHash, hash)

		for _, in := range tx.TxIn {
			if parent := byHash[in.PreviousOutPoint.Hash]; parent != nil {
				add(parent)
			}
		}

		out = append(out, tx)
	}
	for _, tx := range txs {
		add(tx)
	}

	return out
}

// Fork replaces the newest blocks by as many and one more, the first of which includes the
// transactions to keep.
func (p *Payer) Fork(ctx context.Context, depth int, keep ...string) error {
	old := slices.Clone(p.chain[len(p.chain)-depth:])

	var kept []*wire.MsgTx

	for _, hash := range keep {
		tx, err := p.transaction(ctx, hash, old)
		if err != nil {
			return err
		}

		kept = append(kept, tx)
	}

	p.chain = p.chain[:len(p.chain)-depth]
	for i := range depth + 1 {
		if i > 0 {
			kept = nil
		}

		if err := p.extend(ctx, ordered(kept)); err != nil {
			return err
		}
	}

	var best string
	if err := p.rpc.Call(ctx, &best, "getbestblockhash"); err != nil {
		return err
	}

	if want := p.chain[len(p.chain)-1].BlockHash().String(); best != want {
		return fmt.Errorf("after a fork the node's newest block is %s, not %s", best, want)
	}

	return nil
}

// extend makes one block on the newest one and hands it to the node.
func (p *Payer) extend(ctx context.Context, txs []*wire.MsgTx) error {
	b, err := p.assemble(txs)
	if err != nil {
		return err
	}

	var raw bytes.Buffer
	if err := b.Serialize(&raw); err != nil {
		return err
	}

	var refused *string
	if err := p.rpc.Call(ctx, &refused, "submitblock", hex.EncodeToString(raw.Bytes())); err != nil {
		return err
	}

	if refused != nil {
		return errors.New("the node refuses a block: " + *refused)
	}

	p.chain = append(p.chain, b)

	return nil
}

// assemble makes a valid block. Sources: BIP-34 (the height in the coinbase), BIP-141 (its
// commitment to witnesses).
func (p *Payer) assemble(txs []*wire.MsgTx) (*wire.MsgBlock, error) {
	parent := p.chain[len(p.chain)-1]
	p.extra++

	script, err := txscript.NewScriptBuilder().
		AddInt64(int64(len(p.chain))).
		AddInt64(p.extra + 1<<20).
		Script()
	if err != nil {
		return nil, err
	}

	coinbase := wire.NewMsgTx(2)
	coinbase.AddTxIn(wire.NewTxIn(wire.NewOutPoint(&chainhash.Hash{}, wire.MaxPrevOutIndex), script, nil))
	coinbase.AddTxOut(wire.NewTxOut(int64(subsidy)>>(len(p.chain)/150), p.script))

	reserved := make([]byte, 32)
	coinbase.TxIn[0].Witness = wire.TxWitness{reserved}

	witnesses := []chainhash.Hash{{}} // the coinbase counts as 0
	for _, tx := range txs {
		witnesses = append(witnesses, tx.WitnessHash())
	}

	root := merkleRoot(witnesses)
	commitment := chainhash.DoubleHashB(append(root[:], reserved...))
	coinbase.AddTxOut(
		wire.NewTxOut(0, append([]byte{txscript.OP_RETURN, 36, 0xaa, 0x21, 0xa9, 0xed}, commitment...)),
	)

	b := &wire.MsgBlock{Transactions: append([]*wire.MsgTx{coinbase}, txs...)}

	ids := make([]chainhash.Hash, len(b.Transactions))
	for i, tx := range b.Transactions {
		ids[i] = tx.TxHash()
	}

	b.Header = wire.BlockHeader{
		Version:    0x20000000,
		PrevBlock:  parent.BlockHash(),
		MerkleRoot: merkleRoot(ids),
		Bits:       easiest,
		Timestamp:  laterOf(time.Now().Truncate(time.Second), parent.Header.Timestamp.Add(time.Second)),
	}

	target := new(big.Int).Lsh(big.NewInt(0x7fffff), 8*(0x20-3))
	for !solves(b.Header, target) {
		b.Header.Nonce++
	}

	return b, nil
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}

	return a
}

func solves(h wire.BlockHeader, target *big.Int) bool {
	hash := h.BlockHash()
	slices.Reverse(hash[:])

	return new(big.Int).SetBytes(hash[:]).Cmp(target) <= 0
}

func merkleRoot(level []chainhash.Hash) chainhash.Hash {
	level = slices.Clone(level)
	for len(level) > 1 {
		if len(level)%2 == 1 {
			level = append(level, level[len(level)-1])
		}

		for i := range len(level) / 2 {
			level[i] = chainhash.DoubleHashH(append(level[2*i][:], level[2*i+1][:]...))
		}

		level = level[:len(level)/2]
	}

	return level[0]
}
