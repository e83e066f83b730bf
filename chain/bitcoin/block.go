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

// Blocks returns canonical blocks from one height to another, at most Config.MaxBlocks. Transfer.From is for
// display only. It is set if the node reports previous outputs (Bitcoin Core from version 25 on) and all of
// them are of one address. It is not set if the answer with them is too large.
func (d *driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "blocks %d to %d are no range", from, to)
	}

	n := min(to-from, uint64(d.config.MaxBlocks-1)) + 1

	var blocks []chain.Block

	err := d.ask(ctx, func(ctx context.Context, node *endpoint) (err error) {
		blocks, err = d.readBlocks(ctx, node, from, n)
		return err
	})
	if err != nil {
		return nil, err
	}

	return blocks, nil
}

// readBlocks returns up to n verified blocks from a height on; fewer near the tip.
func (d *driver) readBlocks(ctx context.Context, node *endpoint, from, n uint64) ([]chain.Block, error) {
	if err := node.checkPruned(ctx, from); err != nil {
		return nil, err
	}

	hashes := make([]string, 0, n)
	for height := from; height < from+n; height++ {
		hash, err := node.hashAt(ctx, height)
		if errors.Is(err, fault.NotFound) && len(hashes) > 0 {
			break // the tip
		}

		if err != nil {
			return nil, err
		}

		hashes = append(hashes, hash)
	}

	blocks, headers := make([]chain.Block, len(hashes)), make([]wire.BlockHeader, len(hashes))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(d.config.Concurrency)

	for i, hash := range hashes {
		g.Go(func() (err error) {
			blocks[i], headers[i], err = d.readBlock(inner, node, from+uint64(i), hash)
			return err
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	for i := 1; i < len(blocks); i++ {
		if blocks[i].Parent != blocks[i-1].Hash {
			return nil, node.Garbled(
				"the chain moved between blocks %d and %d while they were read",
				blocks[i-1].Height, blocks[i].Height,
			)
		}
	}

	return blocks, d.checkTargets(ctx, node, from, headers)
}

// checkTargets checks that linked headers have the targets that follow from their parents; see targetProblem.
func (d *driver) checkTargets(
	ctx context.Context,
	node *endpoint,
	from uint64,
	headers []wire.BlockHeader,
) error {
	if from == 0 {
		from, headers = 1, headers[1:]
	}

	if len(headers) == 0 {
		return nil
	}

	parent, err := node.rawHeader(ctx, headers[0].PrevBlock.String())
	if err != nil {
		return err
	}

	for i := range headers {
		first, err := d.periodHeader(ctx, node, from+uint64(i))
		if err != nil {
			return err
		}

		problem := targetProblem(d.params, from+uint64(i), &headers[i], parent, first)
		if problem != "" {
			return node.Garbled("its block %s %s", headers[i].BlockHash(), problem)
		}

		parent = &headers[i]
	}

	return nil
}

// periodHeader returns the header at periodStart, which begins the period, after a check of its work; nil if
// there is none.
func (d *driver) periodHeader(ctx context.Context, node *endpoint, height uint64) (*wire.BlockHeader, error) {
	start, ok := periodStart(d.params, height)
	if !ok {
		return nil, nil
	}

	hash, err := node.hashAt(ctx, start)
	if err != nil {
		return nil, err
	}

	header, err := node.rawHeader(ctx, hash)
	if err != nil {
		return nil, err
	}

	if !meetsTarget(d.params, header) {
		return nil, node.Garbled("its block %s does not meet its target", node.Clean(hash))
	}

	return header, nil
}

// blockJSON is an answer of getblock with verbosity 3; verbosity 2 leaves out the previous outputs.
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
	RawTxs     []txJSON `json:"rawtx"` // btcd's name
}

// txJSON is a transaction of a block: its bytes, and the scripts of the outputs that it spends.
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

// readBlock returns the verified block with a hash, and its header. If the answer with previous outputs is
// too large or too slow, readBlock requests the block without them.
func (d *driver) readBlock(
	ctx context.Context,
	node *endpoint,
	height uint64,
	hash string,
) (chain.Block, wire.BlockHeader, error) {
	var block blockJSON

	err := node.call(ctx, &block, "getblock", hash, 3)
	if failover.RefusedWith(err, codeMisc) {
		if pruned := node.checkPruned(ctx, height); pruned != nil { // meanwhile
			return chain.Block{}, wire.BlockHeader{}, pruned
		}
	}

	// Previous outputs can make the answer many times as large as the block, and senders are only displayed.
	if isTooMuch(err) {
		raw, err := d.rawBlock(ctx, node, height, hash)
		if err != nil {
			return chain.Block{}, wire.BlockHeader{}, err
		}

		return d.scanned(blockRef(height, raw), raw, nil), raw.Header, nil
	}

	if err != nil {
		return chain.Block{}, wire.BlockHeader{}, err
	}

	return d.verifyBlock(node, height, hash, block)
}

// verifyBlock returns the block in an answer, verified against its hash; see blockProblem. Only the previous
// outputs are not verified.
func (d *driver) verifyBlock(
	node *endpoint,
	height uint64,
	hash string,
	block blockJSON,
) (chain.Block, wire.BlockHeader, error) {
	wrong := func(what string) (chain.Block, wire.BlockHeader, error) {
		return chain.Block{}, wire.BlockHeader{}, node.Garbled("its block %s %s", node.Clean(hash), what)
	}

	block.Txs = append(block.Txs, block.RawTxs...)

	header, err := block.wireHeader()
	if err != nil {
		return wrong("has no header")
	}

	if block.Height != height || len(block.Txs) == 0 {
		return wrong("has another height, or no transactions")
	}

	txs := make([]*wire.MsgTx, len(block.Txs))
	for i, answer := range block.Txs {
		if txs[i], err = decodeTx(answer.Hex); err != nil {
			return wrong("holds bytes that are no transaction")
		}
	}

	if problem := blockProblem(d.params, height, hash, &header, txs); problem != "" {
		return wrong(problem)
	}

	verified := &wire.MsgBlock{Header: header, Transactions: txs}

	return d.scanned(blockRef(height, verified), verified, block.Txs), header, nil
}

// scanned returns a verified block with its transfers and spends. answers are its transactions in the node's
// answer, with previous outputs; nil if those were not read.
func (d *driver) scanned(at chain.Ref, block *wire.MsgBlock, answers []txJSON) chain.Block {
	d.shows(at.Height, block.Transactions)

	out := chain.Block{Ref: at, Parent: block.Header.PrevBlock.String()}

	for i, tx := range block.Transactions {
		var from chain.Address
		if answers != nil {
			from = d.senderOf(answers[i])
		}

		id := tx.TxHash().String()

		transfers := d.transfers(tx, id, from)
		if i > 0 {
			out.Spent = append(out.Spent, spendsOf(tx, id)...)
		} else { // the coinbase transaction spends nothing
			for at := range transfers {
				transfers[at].Locked = coinbaseMaturity
			}
		}

		out.Transfers = append(out.Transfers, transfers...)
	}

	return out
}

// wireHeader returns the header of an answer, to be hashed.
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

// transfers returns the outputs of a transaction that pay an address, as transfers.
func (d *driver) transfers(tx *wire.MsgTx, id string, from chain.Address) []chain.Transfer {
	var out []chain.Transfer

	for i, output := range tx.TxOut {
		if output.Value <= 0 || output.Value > maxSatoshi {
			continue
		}

		if to := d.addressOf(output.PkScript); to != "" {
			out = append(out, chain.Transfer{
				TxHash:  id,
				Index:   uint32(i),
				From:    from,
				To:      to,
				AssetID: d.native.ID,
				Amount:  satoshiAmount(output.Value),
			})
		}
	}

	return out
}

// spendsOf returns the outputs that a transaction spends.
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

// senderOf returns the single address whose outputs a transaction spends; "" if it is unknown or there are
// several.
func (d *driver) senderOf(answer txJSON) chain.Address {
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
