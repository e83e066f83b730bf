package tron

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns canonical blocks with each transfer of an enabled asset, Config.MaxBlocks at most. Spent says
// which owner each transaction acts for, and whether it failed.
//
// They are verified: the header must have the block's id, the transactions with their signatures and results
// the header's transaction root, and each transaction a receipt with the same result. Other answers are
// fault.Unavailable. Unverified names a header or transaction with unknown fields whose id or root does not match
// without them.
//
// No hash binds the logs of a receipt. Where another node has the blocks too, what two nodes show alike is returned,
// and a transaction of which no two show the same is in Unread (agreedBlocks).
func (d *driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range from %d to %d is empty", from, to)
	}

	var (
		first   *endpoint
		scanned []*scannedBlock
	)

	err := d.ask(ctx, from, func(ctx context.Context, node *endpoint) (err error) {
		first = node
		scanned, err = d.readBlocks(ctx, node, from, min(to, from+uint64(d.maxBlocks)-1))

		return err
	})
	if err != nil {
		return nil, aboveTip(err, from)
	}

	return d.agreedBlocks(ctx, first, scanned)
}

// scannedBlock is a block with its balance changes.
type scannedBlock struct {
	chain.Block
	changes []balanceChange
	// opaque are transactions that cannot be read, or that change balances in ways that are not read.
	opaque []blockTx
}

type limitRequest struct {
	Start uint64 `json:"startNum"`
	End   uint64 `json:"endNum"` // exclusive
}

// readBlocks returns the blocks of a range of at most 100, up to the first that the node does not have or
// that does not follow the one before it. Where the answer is too large, it returns the lower half.
func (d *driver) readBlocks(ctx context.Context, node *endpoint, from, to uint64) ([]*scannedBlock, error) {
	var list struct {
		Blocks []blockJSON `json:"block"`
	}

	_, err := node.post(ctx, full, "getblockbylimitnext", limitRequest{from, to + 1}, &list)
	if failure, ok := errors.AsType[*failover.Failure](err); ok && failure.Kind == tooLarge && to > from {
		return d.readBlocks(ctx, node, from, from+(to-from)/2)
	}

	if err != nil {
		return nil, err
	}

	if len(list.Blocks) == 0 {
		return nil, node.missingBlock(ctx, from)
	}

	linked, err := linkBlocks(ctx, node, list.Blocks, from, to)
	if err != nil {
		return nil, err
	}

	g, ctx := errgroup.WithContext(ctx)
	for i := range linked {
		g.Go(func() error {
			if known := node.blocks.get(linked[i].Hash); known != nil {
				linked[i] = known
				return nil
			}

			return d.readTransactions(ctx, node, &list.Blocks[i], linked[i])
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	for _, block := range linked {
		node.blocks.put(block)
	}

	return linked, nil
}

// linkBlocks returns the blocks of an answer without their transactions, up to the first that does not follow
// its parent: the chain was reorganized meanwhile, and the next call reads the new branch.
func linkBlocks(
	ctx context.Context,
	node *endpoint,
	answer []blockJSON,
	from, to uint64,
) ([]*scannedBlock, error) {
	var linked []*scannedBlock

	for i := range answer {
		ref, err := answer[i].ref(node)
		if err != nil {
			return nil, err
		}

		parent, next := answer[i].Header.Raw.Parent, from+uint64(i)
		switch {
		case i == 0 && ref.Height > from:
			return nil, node.missingBlock(ctx, from)
		case ref.Height != next || ref.Height > to:
			return nil, node.Garbled(
				"asked for blocks %d to %d, it answered block %d in place of %d",
				from, to, ref.Height, next,
			)
		case i > 0 && parent != linked[i-1].Hash:
			return linked, nil
		}

		linked = append(linked, &scannedBlock{Block: chain.Block{Ref: ref, Parent: parent}})
	}

	return linked, nil
}

// readTransactions adds to a block its transfers, spends and balance changes, from its transactions and
// receipts.
func (d *driver) readTransactions(
	ctx context.Context,
	node *endpoint,
	block *blockJSON,
	out *scannedBlock,
) error {
	var err error
	if out.Unverified, err = block.verify(node); err != nil || len(block.Transactions) == 0 {
		return err
	}

	infos, err := node.receipts(ctx, out.Height, len(block.Transactions))
	if err != nil {
		return err
	}

	for k := range block.Transactions {
		tx, err := block.Transactions[k].parse(node)
		if err != nil {
			return err
		}

		info := infos[tx.hash]
		if err := info.check(node, tx, out.Height); err != nil {
			return err
		}

		transfers, flows, err := d.transfersOf(node, tx, info)
		if err != nil {
			return err
		}

		out.Spent = append(out.Spent, tx.spends(info.failed())...)
		out.Transfers, out.changes = append(out.Transfers, transfers...), append(out.changes, flows...)

		if tx.tx == nil {
			out.opaque = append(out.opaque, tx)
		}
	}

	return nil
}

// receipts returns the receipts of a block of count transactions, by transaction id.
func (e *endpoint) receipts(ctx context.Context, height uint64, count int) (map[string]*infoJSON, error) {
	var list []infoJSON
	if _, err := e.post(ctx, full, "gettransactioninfobyblocknum", numRequest{height}, &list); err != nil {
		return nil, err
	}

	infos := make(map[string]*infoJSON, len(list))
	for i := range list {
		infos[list[i].ID] = &list[i]
	}

	if len(list) != count || len(infos) != count {
		return nil, e.Garbled("block %d has %d transactions and %d receipts", height, count, len(list))
	}

	return infos, nil
}

// blockCacheSize is the number of scanned blocks in the cache: those above the solidified one are read again
// for balances.
const blockCacheSize = 128

// blockCache stores the newest blocks that one node showed, by id. Another node may show other receipts of the same
// block.
type blockCache struct {
	mu    sync.Mutex
	byID  map[string]*scannedBlock
	order []string
	next  int
}

func newBlockCache(size int) *blockCache {
	return &blockCache{byID: make(map[string]*scannedBlock, size), order: make([]string, size)}
}

func (c *blockCache) get(id string) *scannedBlock {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.byID[id]
}

func (c *blockCache) put(block *scannedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()

	known := c.byID[block.Hash] != nil
	if c.byID[block.Hash] = block; known {
		return
	}

	delete(c.byID, c.order[c.next])
	c.order[c.next] = block.Hash
	c.next = (c.next + 1) % len(c.order)
}

// between returns the blocks above low up to high, which is at least as high; ok is false where one is missing.
func (c *blockCache) between(low, high chain.Ref) (blocks []*scannedBlock, ok bool) {
	if high.Height < low.Height || high.Height-low.Height > uint64(len(c.order)) {
		return nil, false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	blocks = make([]*scannedBlock, high.Height-low.Height)
	id := high.Hash

	for i := range slices.Backward(blocks) {
		if blocks[i] = c.byID[id]; blocks[i] == nil {
			return nil, false
		}

		id = blocks[i].Parent
	}

	return blocks, id == low.Hash
}

// forget drops a block, which is then read anew.
func (c *blockCache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.byID, id)
}

// spends returns who signed the transaction.
func (tx *blockTx) spends(failed bool) []chain.Spend {
	out := make([]chain.Spend, len(tx.owners))
	for i, owner := range tx.owners {
		out[i] = chain.Spend{Sender: canonical(owner), By: tx.hash, Shared: true, Failed: failed}
	}

	return out
}
