package bitcoin

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns canonical blocks, Config.MaxBlocks at most. Transfer.From is set where the node tells the
// outputs that were spent (Bitcoin Core from version 25 on) and all were of one address; nothing but a
// name for people depends on it.
func (d *Driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "blocks %d to %d are no range", from, to)
	}

	n := min(to-from, uint64(d.config.MaxBlocks-1)) + 1

	var blocks []chain.Block

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		blocks, err = d.readBlocks(ctx, e, from, n)
		return err
	})
	if err != nil {
		return nil, err
	}

	return blocks, nil
}

func (d *Driver) readBlocks(ctx context.Context, e *endpoint, from, n uint64) ([]chain.Block, error) {
	if err := e.checkPruned(ctx, from); err != nil {
		return nil, err
	}

	hashes := make([]string, 0, n)
	for height := from; height < from+n; height++ {
		hash, err := e.hashAt(ctx, height)
		if errors.Is(err, fault.NotFound) && len(hashes) > 0 {
			break // the part of the range that there is
		}

		if err != nil {
			return nil, err
		}

		hashes = append(hashes, hash)
	}

	blocks := make([]chain.Block, len(hashes))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(d.config.Concurrency)

	for i, hash := range hashes {
		g.Go(func() (err error) {
			blocks[i], err = d.readBlock(inner, e, from+uint64(i), hash)
			return err
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	for i := 1; i < len(blocks); i++ {
		if blocks[i].Parent != blocks[i-1].Hash {
			return nil, e.Garbled(
				"the chain moved between blocks %d and %d while they were read",
				blocks[i-1].Height, blocks[i].Height,
			)
		}
	}

	return blocks, nil
}

// blockJSON is what getblock answers with verbosity 3; with 2 the previous outputs are missing.
type blockJSON struct {
	Hash       string   `json:"hash"`
	Height     uint64   `json:"height"`
	Version    int32    `json:"version"`
	Parent     string   `json:"previousblockhash"`
	MerkleRoot string   `json:"merkleroot"`
	Time       int64    `json:"time"`
	Bits       string   `json:"bits"`
	Nonce      uint32   `json:"nonce"`
	Txs        []txJSON `json:"tx"`
	RawTxs     []txJSON `json:"rawtx"` // what btcd calls them
}

// txJSON is the part of a transaction that is read: its bytes, and what they do not hold.
type txJSON struct {
	Hex string `json:"hex"`
	In  []struct {
		Spent *struct {
			Script struct {
				Hex string `json:"hex"`
			} `json:"scriptPubKey"`
		} `json:"prevout"`
	} `json:"vin"`
}

func (d *Driver) readBlock(ctx context.Context, e *endpoint, height uint64, hash string) (chain.Block, error) {
	var block blockJSON

	err := e.call(ctx, &block, "getblock", hash, 3)
	if failover.RefusedWith(err, codeMisc) {
		if pruned := e.checkPruned(ctx, height); pruned != nil { // meanwhile
			return chain.Block{}, pruned
		}
	}

	if err != nil {
		return chain.Block{}, err
	}

	return d.verifyBlock(e, height, hash, block)
}

// verifyBlock checks that an answer is the block of a hash, and reads it. Only the previous outputs
// are taken on trust.
func (d *Driver) verifyBlock(e *endpoint, height uint64, hash string, block blockJSON) (chain.Block, error) {
	wrong := func(what string) (chain.Block, error) {
		return chain.Block{}, e.Garbled("its block %s %s", e.Clean(hash), what)
	}

	block.Txs = append(block.Txs, block.RawTxs...)

	header, err := block.wireHeader()
	if err != nil || header.BlockHash().String() != hash {
		return wrong("has another hash")
	}

	if block.Height != height || len(block.Txs) == 0 {
		return wrong("has another height, or no transactions")
	}

	out := chain.Block{
		Ref:    chain.Ref{Height: height, Hash: hash, Time: header.Timestamp.UTC()},
		Parent: header.PrevBlock.String(),
	}
	ids := make([]chainhash.Hash, len(block.Txs))

	seen := make(map[chainhash.Hash]bool, len(block.Txs))
	for i, answer := range block.Txs {
		tx, err := decodeTx(answer.Hex)
		if err != nil {
			return wrong("holds bytes that are no transaction")
		}

		ids[i] = tx.TxHash()
		if seen[ids[i]] {
			return wrong("holds a transaction twice") // which a Merkle root alone does not show
		}

		seen[ids[i]] = true
		id := ids[i].String()

		out.Transfers = append(out.Transfers, d.transfers(tx, id, d.senderOf(answer))...)
		if i > 0 { // the first one, which makes the block's reward, spends nothing
			out.Spent = append(out.Spent, spendsOf(tx, id)...)
		}
	}

	if merkleRoot(ids) != header.MerkleRoot {
		return wrong("has transactions that are not those of its header")
	}

	return out, nil
}

// wireHeader puts the header together again.
func (b blockJSON) wireHeader() (wire.BlockHeader, error) {
	parent := new(chainhash.Hash)

	if b.Parent != "" { // the genesis block has none
		var err error
		if parent, err = chainhash.NewHashFromStr(b.Parent); err != nil {
			return wire.BlockHeader{}, err
		}
	}

	root, err := chainhash.NewHashFromStr(b.MerkleRoot)
	if err != nil {
		return wire.BlockHeader{}, err
	}

	bits, err := strconv.ParseUint(b.Bits, 16, 32)
	if err != nil {
		return wire.BlockHeader{}, err
	}

	return wire.BlockHeader{
		Version:    b.Version,
		PrevBlock:  *parent,
		MerkleRoot: *root,
		Timestamp:  time.Unix(b.Time, 0),
		Bits:       uint32(bits),
		Nonce:      b.Nonce,
	}, nil
}

// merkleRoot folds the ids of a block's transactions into its Merkle root: pairs are hashed together, an odd
// one with itself. ids is overwritten.
func merkleRoot(ids []chainhash.Hash) chainhash.Hash {
	var pair [2 * chainhash.HashSize]byte

	for len(ids) > 1 {
		if len(ids)%2 == 1 {
			ids = append(ids, ids[len(ids)-1])
		}

		for i := 0; i < len(ids); i += 2 {
			copy(pair[:], ids[i][:])
			copy(pair[chainhash.HashSize:], ids[i+1][:])
			ids[i/2] = chainhash.DoubleHashH(pair[:])
		}

		ids = ids[:len(ids)/2]
	}

	return ids[0]
}

// decodeTx reads the bytes of one transaction, all of them.
func decodeTx(s string) (*wire.MsgTx, error) {
	raw, err := hex.DecodeString(s)
	if err != nil {
		return nil, err
	}

	return decodeRawTx(raw)
}

// transfers returns every output of a transaction that pays an address.
func (d *Driver) transfers(tx *wire.MsgTx, id string, from chain.Address) []chain.Transfer {
	var out []chain.Transfer

	for i, output := range tx.TxOut {
		if output.Value <= 0 || output.Value > maxSatoshi {
			continue
		}

		if to := d.addressOf(output.PkScript); to != "" {
			out = append(
				out,
				chain.Transfer{
					TxHash:  id,
					Index:   uint32(i),
					From:    from,
					To:      to,
					AssetID: d.native.ID,
					Amount:  chain.Units(uint64(output.Value)),
				},
			)
		}
	}

	return out
}

// spendsOf returns what a transaction spends.
func spendsOf(tx *wire.MsgTx, id string) []chain.Spend {
	out := make([]chain.Spend, len(tx.TxIn))
	for i, in := range tx.TxIn {
		out[i] = chain.Spend{Outpoint: outpointOf(in.PreviousOutPoint), By: id}
	}

	return out
}

func outpointOf(o wire.OutPoint) chain.Outpoint {
	return chain.Outpoint{TxHash: o.Hash.String(), Vout: o.Index}
}

// senderOf is the one address whose outputs a transaction spends; "" when it is not known or there are several.
func (d *Driver) senderOf(answer txJSON) chain.Address {
	var from chain.Address

	for i, in := range answer.In {
		if in.Spent == nil {
			return ""
		}

		script, err := hex.DecodeString(in.Spent.Script.Hex)
		if err != nil {
			return ""
		}

		a := d.addressOf(script)
		if a == "" || (i > 0 && a != from) {
			return ""
		}

		from = a
	}

	return from
}
