// Package regtest is a payer and miner for a Bitcoin node that has neither wallet nor miner, such as
// btcd. It pays from its own coins and makes blocks on request, over the node's JSON-RPC.
package regtest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcutil/v2"
	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// Caller makes JSON-RPC calls.
type Caller interface {
	Call(ctx context.Context, result any, method string, params ...any) error
}

// Payer owns every block reward of a chain that only it makes blocks for. It is not safe for concurrent use.
type Payer struct {
	rpc    Caller
	key    *btcec.PrivateKey
	script []byte // P2WPKH of key
	// chain are the canonical blocks, genesis first.
	chain []*wire.MsgBlock
	// coins are outputs of CoinValue, each for one payment.
	coins []wire.OutPoint
	// pending are transactions that the pool does not take; the next block includes them.
	pending []*wire.MsgTx
	// spent is how many block rewards were spent, the oldest first.
	spent int
	// extra makes every coinbase another.
	extra int64
}

const (
	// CoinValue is what each of a payer's coins holds, in satoshi: more than a test pays at once.
	CoinValue = 2 * btcutil.SatoshiPerBitcoin
	subsidy   = 50 * btcutil.SatoshiPerBitcoin // of the first 150 blocks
	maturity  = 100
	coinFee   = 2_000
)

var params = &chaincfg.RegressionNetParams

// New makes a payer with hundreds × 100 coins on an empty chain, and blocks on top that no fork of
// a test reaches below.
func New(ctx context.Context, rpc Caller, hundreds int) (*Payer, error) {
	key, err := btcec.NewPrivateKey()
	if err != nil {
		return nil, err
	}

	p := &Payer{rpc: rpc, key: key, chain: []*wire.MsgBlock{params.GenesisBlock}}
	if p.script, err = witnessScript(key); err != nil {
		return nil, err
	}

	const perSplit = 5 // block rewards
	if err := p.Mine(ctx, maturity+1+perSplit*hundreds); err != nil {
		return nil, err
	}

	for i := range hundreds {
		tx := wire.NewMsgTx(2)

		var values []int64

		for _, b := range p.chain[1+perSplit*i : 1+perSplit*(i+1)] {
			tx.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: b.Transactions[0].TxHash()}, nil, nil))

			values = append(values, subsidy)
		}

		for range 100 {
			tx.AddTxOut(wire.NewTxOut(CoinValue, p.script))
		}

		if err := p.sign(tx, values...); err != nil {
			return nil, err
		}

		hash := tx.TxHash()
		for n := range 100 {
			p.coins = append(p.coins, wire.OutPoint{Hash: hash, Index: uint32(n)})
		}

		p.pending = append(p.pending, tx)
		p.spent += perSplit
	}

	return p, p.Mine(ctx, 12)
}

func witnessScript(key *btcec.PrivateKey) ([]byte, error) {
	return txscript.NewScriptBuilder().
		AddOp(txscript.OP_0).
		AddData(address.Hash160(key.PubKey().SerializeCompressed())).
		Script()
}

// sign spends outputs of the payer.
func (p *Payer) sign(tx *wire.MsgTx, values ...int64) error {
	spent := map[wire.OutPoint]*wire.TxOut{}
	for i, in := range tx.TxIn {
		spent[in.PreviousOutPoint] = wire.NewTxOut(values[i], p.script)
	}

	hashes := txscript.NewTxSigHashes(tx, txscript.NewMultiPrevOutFetcher(spent))
	for i, in := range tx.TxIn {
		witness, err := txscript.WitnessSignature(
			tx, hashes, i, values[i], p.script, txscript.SigHashAll, p.key, true,
		)
		if err != nil {
			return err
		}

		in.Witness = witness
	}

	return nil
}

// NewAddress returns an address of nobody's.
func (p *Payer) NewAddress(context.Context) (chain.Address, error) {
	key, err := btcec.NewPrivateKey()
	if err != nil {
		return "", err
	}

	a, err := address.NewAddressWitnessPubKeyHash(address.Hash160(key.PubKey().SerializeCompressed()), params)
	if err != nil {
		return "", err
	}

	return chain.Address(a.EncodeAddress()), nil
}

// Settle returns at once: the node shows what it took.
func (p *Payer) Settle(context.Context) error { return nil }

// Fund pays an address and mines.
func (p *Payer) Fund(ctx context.Context, to chain.Address, asset chain.Asset, amount chain.Amount) error {
	if _, err := p.Pay(ctx, to, asset, amount); err != nil {
		return err
	}

	return p.Mine(ctx, 1)
}

// Pay spends a coin of its own and leaves the transaction in the pool.
func (p *Payer) Pay(
	ctx context.Context,
	to chain.Address,
	_ chain.Asset,
	amount chain.Amount,
) (string, error) {
	tx, err := p.payment(to, amount, coinFee)
	if err != nil {
		return "", err
	}

	return tx.TxHash().String(), p.broadcast(ctx, tx)
}

// Replace spends the coin of a waiting payment of the payer's to another address, at a higher fee.
func (p *Payer) Replace(
	ctx context.Context,
	hash string,
	to chain.Address,
	amount chain.Amount,
) (string, error) {
	old, err := p.waiting(ctx, hash)
	if err != nil {
		return "", err
	}

	p.coins = append([]wire.OutPoint{old.TxIn[0].PreviousOutPoint}, p.coins...)

	tx, err := p.payment(to, amount, 5*coinFee)
	if err != nil {
		return "", err
	}

	return tx.TxHash().String(), p.broadcast(ctx, tx)
}

// PayZero is against the pool's rules, not against the chain's.
func (p *Payer) PayZero(_ context.Context, to chain.Address, _ chain.Asset) (string, error) {
	tx, err := p.payment(to, chain.Amount{}, coinFee)
	if err != nil {
		return "", err
	}

	p.pending = append(p.pending, tx)

	return tx.TxHash().String(), nil
}

func (p *Payer) payment(to chain.Address, amount chain.Amount, fee int64) (*wire.MsgTx, error) {
	if len(p.coins) == 0 {
		return nil, errors.New("the test pays more often than there are coins: make the payer richer")
	}

	a, err := address.DecodeAddress(string(to), params)
	if err != nil {
		return nil, err
	}

	script, err := txscript.PayToAddrScript(a)
	if err != nil {
		return nil, err
	}

	value := amount.Big().Int64()
	tx := wire.NewMsgTx(2)
	tx.AddTxIn(wire.NewTxIn(&p.coins[0], nil, nil))
	tx.TxIn[0].Sequence = wire.MaxTxInSequenceNum - 2 // replaceable
	tx.AddTxOut(wire.NewTxOut(value, script))
	tx.AddTxOut(wire.NewTxOut(CoinValue-value-fee, p.script))
	p.coins = p.coins[1:]

	return tx, p.sign(tx, CoinValue)
}

func (p *Payer) broadcast(ctx context.Context, tx *wire.MsgTx) error {
	var raw bytes.Buffer
	if err := tx.Serialize(&raw); err != nil {
		return err
	}

	return p.rpc.Call(ctx, nil, "sendrawtransaction", hex.EncodeToString(raw.Bytes()), 0)
}

// waiting reads a transaction of the pool.
func (p *Payer) waiting(ctx context.Context, hash string) (*wire.MsgTx, error) {
	var text string
	if err := p.rpc.Call(ctx, &text, "getrawtransaction", hash, 0); err != nil {
		return nil, err
	}

	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}

	tx := new(wire.MsgTx)

	return tx, tx.Deserialize(bytes.NewReader(raw))
}

// Coins lists the outputs of an address that no block spends.
func (p *Payer) Coins(_ context.Context, owner chain.Party) ([]chain.Coin, error) {
	a, err := address.DecodeAddress(string(owner.Address), params)
	if err != nil {
		return nil, err
	}

	script, err := txscript.PayToAddrScript(a)
	if err != nil {
		return nil, err
	}

	unspent := map[wire.OutPoint]chain.Coin{}

	var order []wire.OutPoint

	for height, b := range p.chain {
		for _, tx := range b.Transactions {
			for _, in := range tx.TxIn {
				delete(unspent, in.PreviousOutPoint)
			}

			for i, out := range tx.TxOut {
				if bytes.Equal(out.PkScript, script) && out.Value > 0 {
					at := wire.OutPoint{Hash: tx.TxHash(), Index: uint32(i)}
					unspent[at] = chain.Coin{
						Outpoint: chain.Outpoint{TxHash: at.Hash.String(), Vout: at.Index},
						Owner:    owner,
						Amount:   chain.Units(uint64(out.Value)),
						Height:   uint64(height),
					}
					order = append(order, at)
				}
			}
		}
	}

	var out []chain.Coin

	for _, at := range order {
		if c, ok := unspent[at]; ok {
			out = append(out, c)
		}
	}

	return out, nil
}

// Tip is the height of the newest block.
func (p *Payer) Tip() uint64 { return uint64(len(p.chain) - 1) }

// transaction finds a transaction in the pool or in blocks that were made.
func (p *Payer) transaction(ctx context.Context, hash string, blocks []*wire.MsgBlock) (*wire.MsgTx, error) {
	want, err := chainhash.NewHashFromStr(hash)
	if err != nil {
		return nil, err
	}

	for _, b := range blocks {
		for _, tx := range b.Transactions {
			if tx.TxHash() == *want {
				return tx, nil
			}
		}
	}

	tx, err := p.waiting(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("transaction %s: %w", hash, err)
	}

	return tx, nil
}
