package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns the canonical blocks of a range with every movement of an enabled asset. How many it
// returns at once follows what the node takes (Config.MaxBatch).
//
// Blocks are looked up by height, then their receipts by hash. Receipts must cover every transaction,
// belong to the block and explain every bit of its logs bloom, else the node's answer is fault.Unavailable:
// nodes are known to serve empty receipts for a block just made, and to lose logs silently.
func (d *Driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range from %d to %d is empty", from, to)
	}

	var out []chain.Block

	err := d.ask(ctx, from, func(ctx context.Context, e *endpoint) (err error) {
		out, err = d.scan(ctx, e, from, to)
		return err
	})
	if err != nil {
		return nil, aboveTip(err, from)
	}

	return out, nil
}

// Reread reads a block again from another endpoint than the one that is preferred now, a different
// one each time.
func (d *Driver) Reread(ctx context.Context, at chain.Ref) (chain.Block, error) {
	var out chain.Block

	err := d.nodes.AskOthers(ctx, at.Height, func(ctx context.Context, e *endpoint) error {
		blocks, err := d.scan(ctx, e, at.Height, at.Height)
		if err != nil {
			return err
		}

		if blocks[0].Hash != at.Hash {
			return fault.New(
				fault.NotFound, "block_unknown",
				"node %s of network %s has block %s at height %d, not %s",
				e.Host, d.network.Slug, blocks[0].Hash, at.Height, at.Hash,
			)
		}

		out = blocks[0]

		return nil
	})
	if err != nil {
		return chain.Block{}, aboveTip(err, at.Height)
	}

	return out, nil
}

func (d *Driver) scan(ctx context.Context, e *endpoint, from, to uint64) ([]chain.Block, error) {
	blocks, err := e.fullBlocks(ctx, from, to)
	if err != nil {
		return nil, err
	}

	receipts, err := e.receipts(ctx, blocks)
	if err != nil {
		return nil, err
	}

	out := make([]chain.Block, len(blocks))
	for i := range blocks {
		b := &blocks[i]

		ref, err := b.ref(e)
		if err != nil {
			return nil, err
		}

		out[i] = chain.Block{Ref: ref, Parent: b.ParentHash.Hex()}
		if err := explained(e, b, receipts[i]); err != nil {
			return nil, err
		}

		for k := range b.Transactions {
			transfers, err := d.moved(e, &b.Transactions[k], receipts[i][k])
			if err != nil {
				return nil, err
			}

			out[i].Transfers = append(out[i].Transfers, transfers...)
			out[i].Spent = append(out[i].Spent, b.Transactions[k].spent()...)
		}
	}

	return out, nil
}

// fullBlocks reads blocks with their transactions: as many of the range as one request takes, up to the
// first that the node does not have or that does not follow the one before it.
func (e *endpoint) fullBlocks(ctx context.Context, from, to uint64) ([]blockJSON, error) {
	n := min(to-from, uint64(e.batchSize())-1) + 1

	calls := make([]*call, n)
	for i := range calls {
		calls[i] = newCall("eth_getBlockByNumber", hexutil.Uint64(from+uint64(i)), true)
	}

	if err := e.do(ctx, calls...); err != nil {
		return nil, err
	}

	var blocks []blockJSON

	for i, c := range calls {
		height := from + uint64(i)
		if c.null() || c.err != nil {
			if i == 0 {
				return nil, e.absent(ctx, height, c)
			}

			return blocks, nil
		}

		var b blockJSON
		if err := c.decode(e, &b); err != nil {
			return nil, err
		}

		if _, err := b.check(e, height); err != nil {
			return nil, err
		}
		// reorganised while reading: the next call starts on the new branch
		if i > 0 && *b.ParentHash != *blocks[i-1].Hash {
			return blocks, nil
		}

		blocks = append(blocks, b)
	}

	return blocks, nil
}

// receipts returns, for each block, the receipts of its transactions in their order: by
// eth_getBlockReceipts, and one by one what that leaves out (not every node has the method, and Bor nodes
// leave out the receipt of a state-sync transaction).
func (e *endpoint) receipts(ctx context.Context, blocks []blockJSON) ([][]*receiptJSON, error) {
	found := make([]map[common.Hash]*receiptJSON, len(blocks))
	if err := e.blockReceipts(ctx, blocks, found); err != nil {
		return nil, err
	}

	if err := e.missingReceipts(ctx, blocks, found); err != nil {
		return nil, err
	}

	out := make([][]*receiptJSON, len(blocks))
	for i := range blocks {
		for k := range blocks[i].Transactions {
			hash := *blocks[i].Transactions[k].Hash

			r := found[i][hash]
			if err := r.check(e, hash, *blocks[i].Hash); err != nil {
				return nil, err
			}

			out[i] = append(out[i], r)
		}
	}

	return out, nil
}

func (e *endpoint) blockReceipts(
	ctx context.Context,
	blocks []blockJSON,
	found []map[common.Hash]*receiptJSON,
) error {
	var (
		calls []*call
		at    []int
	)

	for i := range blocks {
		found[i] = make(map[common.Hash]*receiptJSON, len(blocks[i].Transactions))
		if len(blocks[i].Transactions) > 0 {
			calls, at = append(calls, newCall("eth_getBlockReceipts", blocks[i].Hash)), append(at, i)
		}
	}

	e.mu.Lock()
	unsupported := e.noBlockReceipts
	e.mu.Unlock()

	if len(calls) == 0 || unsupported {
		return nil
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	for n, c := range calls {
		b := &blocks[at[n]]

		if noMethod(c.err) {
			e.mu.Lock()
			e.noBlockReceipts = true
			e.mu.Unlock()

			return nil
		}

		if c.null() || c.err != nil {
			return e.absent(ctx, uint64(*b.Number), c)
		}

		var list []receiptJSON
		if err := c.decode(e, &list); err != nil {
			return err
		}

		for k := range list {
			if list[k].TransactionHash != nil {
				found[at[n]][*list[k].TransactionHash] = &list[k]
			}
		}
	}

	return nil
}

func (e *endpoint) missingReceipts(
	ctx context.Context,
	blocks []blockJSON,
	found []map[common.Hash]*receiptJSON,
) error {
	var (
		calls []*call
		at    []int
	)

	for i := range blocks {
		for k := range blocks[i].Transactions {
			if hash := *blocks[i].Transactions[k].Hash; found[i][hash] == nil {
				calls, at = append(calls, newCall("eth_getTransactionReceipt", hash)), append(at, i)
			}
		}
	}

	if len(calls) == 0 {
		return nil
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	for n, c := range calls {
		if c.null() || c.err != nil {
			return e.absent(ctx, uint64(*blocks[at[n]].Number), c)
		}

		r := new(receiptJSON)
		if err := c.decode(e, r); err != nil {
			return err
		}

		found[at[n]][c.args[0].(common.Hash)] = r
	}

	return nil
}

// explained checks that the receipts' logs set every bit of the block's bloom: a missing bit is a log that
// the node lost. Bits beyond it are allowed, since Bor keeps state-sync logs out of the header.
func explained(e *endpoint, b *blockJSON, receipts []*receiptJSON) error {
	var bloom types.Bloom

	for _, r := range receipts {
		for k := range r.Logs {
			bloom.Add(r.Logs[k].Address[:])

			for _, topic := range r.Logs[k].Topics {
				bloom.Add(topic[:])
			}
		}
	}

	for i, bits := range b.LogsBloom {
		if bits&^bloom[i] != 0 {
			return e.Garbled("block %d has logs that its receipts leave out", uint64(*b.Number))
		}
	}

	return nil
}
