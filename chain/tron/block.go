package tron

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Blocks returns the canonical blocks of a range with every movement of an enabled asset, at most
// Config.MaxBlocks of them.
//
// Every transaction must hash to its id and have a receipt of its block; a block that the node
// serves without transactions though its header names some, and receipts that do not fit, are
// fault.Unavailable.
func (d *Driver) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if to < from {
		return nil, fault.New(fault.Invalid, "range_invalid", "the range from %d to %d is empty", from, to)
	}

	var out []chain.Block

	err := d.ask(ctx, from, func(ctx context.Context, e *endpoint) error {
		scanned, err := d.readBlocks(ctx, e, from, min(to, from+uint64(d.maxBlocks)-1))
		out = out[:0]

		for _, s := range scanned {
			b := s.Block
			b.Transfers = append([]chain.Transfer(nil), b.Transfers...)
			out = append(out, b)
		}

		return err
	})
	if err != nil {
		return nil, aboveTip(err, from)
	}

	return out, nil
}

// scannedBlock is a block with all that it did to balances.
type scannedBlock struct {
	chain.Block
	changes []balanceChange
	opaque  []blockTx // transactions that move coin in ways this package does not follow, or that cannot be read
}

type limitRequest struct {
	Start uint64 `json:"startNum"`
	End   uint64 `json:"endNum"` // exclusive
}

// readBlocks reads the blocks of a range of at most 100, up to the first that the node does not have or
// that does not follow the one before it.
func (d *Driver) readBlocks(ctx context.Context, e *endpoint, from, to uint64) ([]*scannedBlock, error) {
	var list struct {
		Blocks []blockJSON `json:"block"`
	}
	if _, err := e.post(ctx, full, "getblockbylimitnext", limitRequest{from, to + 1}, &list); err != nil {
		return nil, err
	}

	if len(list.Blocks) == 0 {
		return nil, e.missingBlock(ctx, from)
	}

	var out []*scannedBlock

	for i := range list.Blocks {
		b := &list.Blocks[i]

		ref, err := b.ref(e)
		if err != nil {
			return nil, err
		}

		switch next := from + uint64(i); {
		case i == 0 && ref.Height > from:
			return nil, e.missingBlock(ctx, from)
		case ref.Height != next || ref.Height > to:
			return nil, e.Garbled(
				"asked for blocks %d to %d, it answered block %d in place of %d",
				from, to, ref.Height, next,
			)
		// reorganised while reading: the next call starts on the new branch
		case i > 0 && b.Header.Raw.Parent != out[i-1].Hash:
			list.Blocks = list.Blocks[:i]
		}

		if i == len(list.Blocks) {
			break
		}

		out = append(out, &scannedBlock{Block: chain.Block{Ref: ref, Parent: b.Header.Raw.Parent}})
	}

	g, ctx := errgroup.WithContext(ctx)
	for i := range list.Blocks {
		g.Go(func() error {
			if known := d.blocks.get(out[i].Hash); known != nil {
				out[i] = known
				return nil
			}

			return d.readTransactions(ctx, e, &list.Blocks[i], out[i])
		})
	}

	if err := g.Wait(); err != nil {
		return nil, err
	}

	for _, b := range out {
		d.blocks.put(b)
	}

	return out, nil
}

// readTransactions reads a block's receipts and says what its transactions moved.
func (d *Driver) readTransactions(ctx context.Context, e *endpoint, b *blockJSON, out *scannedBlock) error {
	if len(b.Transactions) == 0 {
		if b.Header.Raw.TxRoot != emptyTxRoot {
			return e.Garbled("block %d has transactions that the node left out", out.Height)
		}

		return nil
	}

	infos, err := e.receipts(ctx, out.Height)
	if err != nil {
		return err
	}

	for k := range b.Transactions {
		tx, err := b.Transactions[k].parse(e)
		if err != nil {
			return err
		}

		info := infos[tx.hash]
		if info == nil || len(infos) != len(b.Transactions) {
			return e.Garbled(
				"block %d has %d transactions and %d receipts, or others' receipts",
				out.Height, len(b.Transactions), len(infos),
			)
		}

		if err := info.check(e, tx, out.Height); err != nil {
			return err
		}

		transfers, flows, err := d.transfersOf(e, tx, info)
		if err != nil {
			return err
		}

		out.Transfers, out.changes = append(out.Transfers, transfers...), append(out.changes, flows...)
		if tx.tx == nil {
			out.opaque = append(out.opaque, tx)
		}
	}

	return nil
}

// receipts reads the receipts of a block, by the ids of their transactions.
func (e *endpoint) receipts(ctx context.Context, height uint64) (map[string]*infoJSON, error) {
	var list []infoJSON
	if _, err := e.post(ctx, full, "gettransactioninfobyblocknum", numRequest{height}, &list); err != nil {
		return nil, err
	}

	infos := make(map[string]*infoJSON, len(list))
	for i := range list {
		infos[list[i].ID] = &list[i]
	}

	return infos, nil
}

// blockCacheSize is how many scanned blocks are kept: those above the solidified one are needed again
// for balances.
const blockCacheSize = 128

// blockCache remembers scanned blocks by their id, the newest ones only. What it holds is true for ever.
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

func (c *blockCache) put(b *scannedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.byID[b.Hash] != nil {
		return
	}

	delete(c.byID, c.order[c.next])
	c.byID[b.Hash], c.order[c.next] = b, b.Hash
	c.next = (c.next + 1) % len(c.order)
}
