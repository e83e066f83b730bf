package sim

// The driver's reading half.

import (
	"context"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// blocksAtOnce bounds how many blocks one call of Blocks returns.
const blocksAtOnce = 256

// view is the height up to which the node knows the chain; the caller holds mu.
func (c *Chain) view() uint64 { return c.tip() - min(c.lag, c.tip()) }

// finalHeight is the newest final block that the node knows of.
func (c *Chain) finalHeight() uint64 {
	view := c.view()
	return min(c.final, view-min(c.config.FinalDepth, view))
}

// Check succeeds unless a fault was asked for: the node is the network.
func (c *Chain) Check(ctx context.Context) error { return c.call(ctx, MethodCheck) }

// Head returns the tip, and safe and final blocks unless Config.NoFinality.
func (c *Chain) Head(ctx context.Context) (chain.Head, error) {
	if err := c.call(ctx, MethodHead); err != nil {
		return chain.Head{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	view := c.view()

	head := chain.Head{Tip: c.blocks[view].ref}
	if !c.config.NoFinality {
		final := c.finalHeight()
		head.Final = c.blocks[final].ref
		head.Safe = c.blocks[max(final, view-min(c.config.SafeDepth, view))].ref
	}

	return head, nil
}

// RefAt returns the block at a height.
func (c *Chain) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	if err := c.call(ctx, MethodRefAt); err != nil {
		return chain.Ref{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if err := c.readable(height); err != nil {
		return chain.Ref{}, err
	}

	return c.blocks[height].ref, nil
}

func (c *Chain) readable(height uint64) error {
	if view := c.view(); height > view {
		return fault.New(
			fault.NotFound, "block_unknown", "network %s has no block %d yet: its tip is %d",
			c.network.Slug, height, view,
		)
	}

	if height < c.pruned {
		return fault.New(
			fault.Stopped,
			"node_pruned",
			"the node of network %s no longer has block %d: its oldest is %d; use a node with the full history",
			c.network.Slug,
			height,
			c.pruned,
		)
	}

	return nil
}

// Blocks returns up to 256 blocks.
func (c *Chain) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if err := c.call(ctx, MethodBlocks); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if from > to {
		return nil, fault.New(
			fault.Invalid, "range_invalid", "the range of blocks %d to %d is empty",
			from, to,
		)
	}

	if err := c.readable(from); err != nil {
		return nil, err
	}

	to = min(to, c.view(), from+blocksAtOnce-1)

	blocks := make([]chain.Block, 0, to-from+1)
	for _, b := range c.blocks[from : to+1] {
		out := chain.Block{Ref: b.ref, Parent: b.parent}
		for _, done := range b.txs {
			out.Spent = append(out.Spent, done.tx.spent(done.hash))
			if !done.reverted {
				out.Transfers = append(out.Transfers, c.transfers(done.tx, done.hash, false)...)
			}
		}

		blocks = append(blocks, out)
	}

	return blocks, nil
}

// Pool returns the waiting transactions that move an asset in sight, the best payer first. One whose nonce
// cannot be reached yet is left out.
func (c *Chain) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	if err := c.call(ctx, MethodPool); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var out []chain.PoolTx

	for _, entry := range c.waiting.sorted(c.baseFee) {
		transfers := c.transfers(entry.tx, entry.hash, false)
		if len(transfers) > 0 && c.reachable(entry) {
			out = append(
				out,
				chain.PoolTx{
					TxHash:    entry.hash,
					Transfers: transfers,
					Spent:     []chain.Spend{entry.tx.spent(entry.hash)},
				},
			)
		}
	}

	return out, nil
}

// spent is the nonce that the transaction uses up.
func (t *transaction) spent(hash string) chain.Spend {
	return chain.Spend{Sender: t.from.address(), Nonce: t.nonce, By: hash}
}

// Transaction looks a transaction up in chain and pool, internal transfers included.
func (c *Chain) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	if err := c.call(ctx, MethodTransaction); err != nil {
		return chain.Found{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	hash = strings.ToLower(hash)
	if done := c.included[hash]; done != nil && done.height <= c.view() {
		found := chain.Found{TxHash: hash, Block: c.blocks[done.height].ref, Failed: done.reverted}
		if !done.reverted {
			found.Transfers = c.transfers(done.tx, hash, true)
		}

		return found, nil
	}

	if entry := c.waiting.byHash[hash]; entry != nil {
		return chain.Found{TxHash: hash, Transfers: c.transfers(entry.tx, hash, true)}, nil
	}

	return chain.Found{}, fault.New(
		fault.NotFound, "transaction_unknown", "network %s knows no transaction %q",
		c.network.Slug, hash,
	)
}

// Balances returns what each holding has after a block.
func (c *Chain) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	if err := c.call(ctx, MethodBalances); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if at.Height > c.view() || at.Height < c.pruned || c.blocks[at.Height].ref.Hash != at.Hash {
		return nil, fault.New(
			fault.Unavailable, "block_unknown", "the node of network %s does not have block %d %s",
			c.network.Slug, at.Height, at.Hash,
		)
	}

	out := make([]chain.Amount, 0, len(holdings))
	for _, h := range holdings {
		if _, ok := c.network.AssetByID(h.AssetID); !ok {
			return nil, fault.New(
				fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
				c.network.Slug, h.AssetID,
			)
		}

		out = append(out, c.balances.at(h, at.Height))
	}

	return out, nil
}

// Nonce returns how many transactions of an address are in the chain.
func (c *Chain) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	if err := c.call(ctx, MethodNonce); err != nil {
		return 0, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.nonces.at(address, c.view()), nil
}
