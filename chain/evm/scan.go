package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns the canonical blocks of a range with all transfers of enabled assets. The number
// of blocks follows what the node accepts (Config.MaxBatch).
//
// Blocks are read by height, then their receipts by block hash. Receipts must cover every
// transaction, belong to the block and explain its logs bloom. Nodes are known to serve empty
// receipts for new blocks and to lose logs. Errors:
//
//   - fault.Invalid (range_invalid): the range is empty
//   - fault.NotFound (block_unknown): from is above the tip
//   - fault.Stopped (node_pruned): no node has the height any more
//   - fault.Unavailable: no node gave a consistent answer
func (d *Driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range from %d to %d is empty", from, to)
	}

	var out []chain.Block

	err := d.ask(ctx, from, func(ctx context.Context, node *endpoint) (err error) {
		out, err = d.readBlocks(ctx, node, from, to)
		return err
	})
	if err != nil {
		return nil, unknownBlock(err, from)
	}

	return out, nil
}

// Reread returns a block as another node than the preferred one shows it, in rotation. Another
// block at that height is fault.NotFound (block_unknown).
func (d *Driver) Reread(ctx context.Context, at chain.Ref) (chain.Block, error) {
	var out chain.Block

	err := d.nodes.AskOthers(ctx, at.Height, func(ctx context.Context, node *endpoint) error {
		blocks, err := d.readBlocks(ctx, node, at.Height, at.Height)
		if err != nil {
			return err
		}

		if blocks[0].Hash != at.Hash {
			return fault.New(
				fault.NotFound, "block_unknown",
				"node %s of network %s has block %s at height %d, not %s",
				node.Host, d.network.Slug, blocks[0].Hash, at.Height, at.Hash,
			)
		}

		out = blocks[0]

		return nil
	})
	if err != nil {
		return chain.Block{}, unknownBlock(err, at.Height)
	}

	return out, nil
}

// readBlocks returns one node's blocks of a range, or a prefix of it.
func (d *Driver) readBlocks(ctx context.Context, node *endpoint, from, to uint64) ([]chain.Block, error) {
	blocks, err := node.fullBlocks(ctx, from, to)
	if err != nil {
		return nil, err
	}

	receipts, err := node.receipts(ctx, blocks)
	if err != nil {
		return nil, err
	}

	scanned := make([]chain.Block, len(blocks))
	for i := range blocks {
		block := &blocks[i]

		ref, err := block.ref(node)
		if err != nil {
			return nil, err
		}

		scanned[i] = chain.Block{Ref: ref, Parent: block.ParentHash.Hex()}
		if err := checkBloom(node, block, receipts[i]); err != nil {
			return nil, err
		}

		for j := range block.Transactions {
			transfers, err := d.transfersOf(node, &block.Transactions[j], receipts[i][j])
			if err != nil {
				return nil, err
			}

			scanned[i].Transfers = append(scanned[i].Transfers, transfers...)
			scanned[i].Spent = append(scanned[i].Spent, block.Transactions[j].nonceSpent()...)
		}
	}

	return scanned, nil
}

// fullBlocks returns blocks with their transactions, as many of the range as one request holds. It
// ends before the first block that is missing or does not follow its predecessor.
func (e *endpoint) fullBlocks(ctx context.Context, from, to uint64) ([]blockJSON, error) {
	count := min(to-from, uint64(e.currentBatchSize())-1) + 1

	calls := make([]*call, count)
	for i := range calls {
		calls[i] = newCall("eth_getBlockByNumber", hexutil.Uint64(from+uint64(i)), true)
	}

	if err := e.do(ctx, calls...); err != nil {
		return nil, err
	}

	var blocks []blockJSON

	for i, rpcCall := range calls {
		height := from + uint64(i)
		if rpcCall.isNull() || rpcCall.err != nil {
			if i == 0 {
				return nil, e.missingBlock(ctx, height, rpcCall)
			}

			return blocks, nil
		}

		var block blockJSON
		if err := rpcCall.decode(e, &block); err != nil {
			return nil, err
		}

		if _, err := block.check(e, height); err != nil {
			return nil, err
		}

		// A reorg while reading: the next call starts on the new branch.
		if i > 0 && *block.ParentHash != *blocks[i-1].Hash {
			return blocks, nil
		}

		blocks = append(blocks, block)
	}

	return blocks, nil
}

// receiptIndex holds the receipts of blocks by transaction hash, one map per block.
type receiptIndex []map[common.Hash]*receiptJSON

// receipts returns the receipts of each block's transactions, in their order. What
// eth_getBlockReceipts leaves out is read singly: not every node has the method, and Bor nodes
// leave out state-sync transactions.
func (e *endpoint) receipts(ctx context.Context, blocks []blockJSON) ([][]*receiptJSON, error) {
	found := make(receiptIndex, len(blocks))
	for i := range blocks {
		found[i] = make(map[common.Hash]*receiptJSON, len(blocks[i].Transactions))
	}

	if err := e.blockReceipts(ctx, blocks, found); err != nil {
		return nil, err
	}

	if err := e.missingReceipts(ctx, blocks, found); err != nil {
		return nil, err
	}

	out := make([][]*receiptJSON, len(blocks))
	for i := range blocks {
		for j := range blocks[i].Transactions {
			hash := *blocks[i].Transactions[j].Hash

			receipt := found[i][hash]
			if err := receipt.check(e, hash, *blocks[i].Hash); err != nil {
				return nil, err
			}

			out[i] = append(out[i], receipt)
		}
	}

	return out, nil
}

// blockReceipts adds to found what eth_getBlockReceipts returns, unless the node lacks the method.
func (e *endpoint) blockReceipts(ctx context.Context, blocks []blockJSON, found receiptIndex) error {
	var (
		calls   []*call
		blockOf []int // index of each call's block
	)

	for i := range blocks {
		if len(blocks[i].Transactions) > 0 {
			calls = append(calls, newCall("eth_getBlockReceipts", blocks[i].Hash))
			blockOf = append(blockOf, i)
		}
	}

	if len(calls) == 0 || !e.hasBlockReceipts() {
		return nil
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	for i, rpcCall := range calls {
		if isNoMethod(rpcCall.err) {
			e.disableBlockReceipts()
			return nil
		}

		if rpcCall.isNull() || rpcCall.err != nil {
			return e.missingBlock(ctx, uint64(*blocks[blockOf[i]].Number), rpcCall)
		}

		var receipts []receiptJSON
		if err := rpcCall.decode(e, &receipts); err != nil {
			return err
		}

		for j := range receipts {
			if hash := receipts[j].TransactionHash; hash != nil {
				found[blockOf[i]][*hash] = &receipts[j]
			}
		}
	}

	return nil
}

// hasBlockReceipts reports whether the node may know eth_getBlockReceipts.
func (e *endpoint) hasBlockReceipts() bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	return !e.noBlockReceipts
}

// disableBlockReceipts stores that the node does not know eth_getBlockReceipts.
func (e *endpoint) disableBlockReceipts() {
	e.mu.Lock()
	defer e.mu.Unlock()

	e.noBlockReceipts = true
}

// missingReceipts adds to found the receipts that it lacks, by eth_getTransactionReceipt.
func (e *endpoint) missingReceipts(ctx context.Context, blocks []blockJSON, found receiptIndex) error {
	var (
		calls   []*call
		blockOf []int // index of each call's block
	)

	for i := range blocks {
		for j := range blocks[i].Transactions {
			if hash := *blocks[i].Transactions[j].Hash; found[i][hash] == nil {
				calls = append(calls, newCall("eth_getTransactionReceipt", hash))
				blockOf = append(blockOf, i)
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
		if rpcCall.isNull() || rpcCall.err != nil {
			return e.missingBlock(ctx, uint64(*blocks[blockOf[i]].Number), rpcCall)
		}

		receipt := new(receiptJSON)
		if err := rpcCall.decode(e, receipt); err != nil {
			return err
		}

		found[blockOf[i]][rpcCall.args[0].(common.Hash)] = receipt
	}

	return nil
}

// checkBloom checks that the receipts' logs set every bit of the block's bloom; a missing bit is a
// lost log. More bits are allowed: Bor keeps state-sync logs out of the header.
func checkBloom(node *endpoint, block *blockJSON, receipts []*receiptJSON) error {
	var bloom types.Bloom

	for _, receipt := range receipts {
		for i := range receipt.Logs {
			bloom.Add(receipt.Logs[i].Address[:])

			for _, topic := range receipt.Logs[i].Topics {
				bloom.Add(topic[:])
			}
		}
	}

	for i, bits := range block.LogsBloom {
		if bits&^bloom[i] != 0 {
			return node.Garbled("block %d has logs that its receipts leave out", uint64(*block.Number))
		}
	}

	return nil
}
