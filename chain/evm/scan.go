package evm

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns the canonical blocks of a range with all transfers of enabled assets. The number
// of blocks follows the node's limits (Config.MaxBatch).
//
// Blocks are read by height, then their receipts by block hash. Both are checked against the header: its
// hash, the transactions root, the receipts root and the senders' signatures. A node whose block does not
// verify is demoted, and another one is asked. Parts that cannot be checked are listed in Block.Unverified.
// Where there are several nodes, one that can give a block that verifies is preferred. Coin that contracts
// transfer is included if the block verifies and logs all transfers of coin (EIP-7708). docs/verification.md
// has the details. Errors:
//
//   - fault.Invalid (range_invalid): the range is empty
//   - fault.NotFound (block_unknown): from is above the tip
//   - fault.Stopped (node_pruned): no node has the height any more
//   - fault.Unavailable: no node gave a consistent answer
func (d *driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range from %d to %d is empty", from, to)
	}

	var (
		out        []chain.Block
		unexpected bool
	)

	read := func(ctx context.Context, node *endpoint) (err error) {
		out, unexpected, err = d.readBlocks(ctx, node, from, to)
		return err
	}
	if err := d.ask(ctx, from, read); err != nil {
		return nil, unknownBlock(err, from)
	}

	if !unexpected || len(d.nodes.Nodes) == 1 {
		return out, nil
	}

	return d.secondOpinion(ctx, out)
}

// secondOpinion reads blocks again from another node, after they did not verify for an undeclared reason. An
// invented header field must not let a node escape verification. If no other node answers, the first answer
// stands. If neither answer verifies and they differ, the error is fault.Unavailable.
func (d *driver) secondOpinion(ctx context.Context, first []chain.Block) ([]chain.Block, error) {
	var (
		second     []chain.Block
		unexpected bool
		from, to   = first[0].Height, first[len(first)-1].Height
	)

	err := d.nodes.AskOthers(ctx, from, func(ctx context.Context, node *endpoint) (err error) {
		second, unexpected, err = d.readBlocks(ctx, node, from, to)
		return err
	})
	if ctx.Err() != nil {
		return nil, failover.Fault(d.network.Slug, ctx.Err())
	}

	if err != nil {
		return first, nil
	}

	if !unexpected {
		d.nodes.DemoteNode("its block did not verify, another node's did: " + first[0].Hash)
		return second, nil
	}

	for i := range min(len(first), len(second)) {
		a, b := first[i], second[i]
		if a.Hash != b.Hash || !slices.Equal(a.Transfers, b.Transfers) || !slices.Equal(a.Spent, b.Spent) {
			return nil, fault.New(
				fault.Unavailable, "nodes_disagree",
				"two nodes of network %s show block %d differently, and neither can be verified: %s",
				d.network.Slug, a.Height, a.Unverified,
			)
		}
	}

	return first, nil
}

// AgreedHead returns the newest block that two nodes have, and the lower of two nodes' safe and final blocks.
func (d *driver) AgreedHead(ctx context.Context) (chain.Head, error) {
	return agree.Head(ctx, d.nodes, agree.HeadReader[*endpoint]{
		Head:  d.readHead,
		At:    refAt,
		Depth: d.network.Confirmations,
	})
}

// AgreedBlock returns a block that two nodes have, verified as by Blocks. It is read from another node than
// the preferred one. Contents that cannot be verified must be the same at two nodes. See chain.Agreed.
func (d *driver) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return agree.VerifiedBlock(
		ctx, d.nodes, d.attempts, at, hashes, refAt,
		func(ctx context.Context, node *endpoint) (chain.Block, error) {
			blocks, _, err := d.readBlocks(ctx, node, at.Height, at.Height)
			if err != nil {
				return chain.Block{}, err
			}

			if blocks[0].Hash != at.Hash {
				return chain.Block{}, d.anotherBlock(node, at, blocks[0].Hash)
			}

			return blocks[0], nil
		},
	)
}

// Nodes returns the state of each configured node.
func (d *driver) Nodes() []chain.NodeState { return d.nodes.States() }

func refAt(ctx context.Context, node *endpoint, height uint64) (chain.Ref, error) {
	return node.refAt(ctx, height)
}

// anotherBlock returns fault.NotFound (block_unknown) for a node with a different block at a height.
func (d *driver) anotherBlock(node *endpoint, at chain.Ref, has string) error {
	return fault.New(
		fault.NotFound, "block_unknown", "node %s of network %s has block %s at height %d, not %s",
		node.Host, d.network.Slug, has, at.Height, at.Hash,
	)
}

// readBlocks returns one node's blocks of a range, or a prefix of it. unexpected is set if a block could not
// be verified for a reason that the network's format does not declare.
func (d *driver) readBlocks(
	ctx context.Context,
	node *endpoint,
	from, to uint64,
) (blocks []chain.Block, unexpected bool, err error) {
	verified, err := d.readVerified(ctx, node, from, to)
	if err != nil {
		return nil, false, err
	}

	for i := range verified {
		block, err := d.scanned(node, &verified[i])
		if err != nil {
			return nil, false, err
		}

		blocks = append(blocks, block)
		unexpected = unexpected || verified[i].unexpected
	}

	return blocks, unexpected, nil
}

// scanned returns a block with its transfers and spends.
func (d *driver) scanned(node *endpoint, block *verifiedBlock) (chain.Block, error) {
	out := chain.Block{Ref: block.ref, Parent: block.json.ParentHash.Hex(), Unverified: block.unverified}
	coinLogs := block.logsCoin()

	for i := range block.json.Transactions {
		tx, receipt := &block.json.Transactions[i], block.receipts[i]

		transfers, err := d.transfersOf(node, tx, receipt, coinLogs)
		if err != nil {
			return out, err
		}

		out.Transfers = append(out.Transfers, transfers...)
		out.Spent = append(out.Spent, tx.spend(*receipt.Status == 0))
	}

	return out, nil
}

// readVerified returns one node's blocks of a range, or a prefix of it, each checked against its header.
func (d *driver) readVerified(ctx context.Context, node *endpoint, from, to uint64) ([]verifiedBlock, error) {
	blocks, beside, err := node.fullBlocks(ctx, from, to)
	if err != nil {
		return nil, err
	}

	receipts, err := node.receipts(ctx, blocks, beside)
	if err != nil {
		return nil, err
	}

	if err := node.rawTransactions(ctx, blocks, d.format); err != nil {
		return nil, err
	}

	verified := make([]verifiedBlock, len(blocks))
	for i := range blocks {
		if verified[i], err = d.verifyBlock(ctx, node, &blocks[i], receipts[i]); err != nil {
			return nil, err
		}
	}

	return verified, nil
}

// rawTransactions requests the bytes of the transactions whose JSON leaves fields out. A transaction whose
// bytes the node does not give stays without them.
func (e *endpoint) rawTransactions(ctx context.Context, blocks []blockJSON, format *format) error {
	var (
		calls []*call
		txs   []*txJSON
	)

	for i := range blocks {
		for j := range blocks[i].Transactions {
			tx := &blocks[i].Transactions[j]

			kind, err := tx.kind(e)
			if err != nil {
				return err
			}

			if slices.Contains(format.opaque, kind) || !format.knows(kind) {
				calls, txs = append(calls, newCall("eth_getRawTransactionByHash", *tx.Hash)), append(txs, tx)
			}
		}
	}

	if len(calls) == 0 {
		return nil
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	for i, rpcCall := range calls {
		if rpcCall.refusal() != nil {
			continue
		}

		if err := rpcCall.decode(e, &txs[i].encoded); err != nil {
			return err
		}
	}

	return nil
}

// fullBlocks returns blocks with their transactions, as many of the range as one request holds, and the calls
// for their receipts if they were in the same request. It ends before the first block that is missing or does
// not follow its predecessor.
func (e *endpoint) fullBlocks(
	ctx context.Context,
	from, to uint64,
) (blocks []blockJSON, beside []*call, err error) {
	count := min(to-from, uint64(e.currentBatchSize())-1) + 1

	calls := make([]*call, count)
	for i := range calls {
		calls[i] = newCall("eth_getBlockByNumber", hexutil.Uint64(from+uint64(i)), true)
	}

	if beside, err = e.doWithReceipts(ctx, calls); err != nil {
		return nil, nil, err
	}

	for i, rpcCall := range calls {
		height := from + uint64(i)
		if rpcCall.isNull() || rpcCall.err != nil {
			if i == 0 {
				return nil, nil, e.missingBlock(ctx, height, rpcCall)
			}

			break
		}

		var block blockJSON
		if err := rpcCall.decode(e, &block); err != nil {
			return nil, nil, err
		}

		if _, err := block.check(e, height); err != nil {
			return nil, nil, err
		}

		// A reorg while reading: the next call starts on the new branch.
		if i > 0 && *block.ParentHash != *blocks[i-1].Hash {
			break
		}

		blocks = append(blocks, block)
	}

	return blocks, beside, nil
}
