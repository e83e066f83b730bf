package sim

// Driver methods that read blocks, pool, transactions and balances.

import (
	"context"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxBlocksPerCall is the largest number of blocks that Blocks returns.
const maxBlocksPerCall = 256

// nodeTip returns the height of the node's newest block. The caller holds mu.
func (c *Chain) nodeTip() uint64 { return c.tip() - min(c.lag, c.tip()) }

// finalHeight returns the height of the node's newest final block.
func (c *Chain) finalHeight() uint64 {
	tip := c.nodeTip()
	return min(c.final, tip-min(c.config.FinalDepth, tip))
}

// Check returns the injected fault, if any. The node always serves the right network.
func (c *Chain) Check(ctx context.Context) error { return c.call(ctx, MethodCheck) }

// Head returns the tip and, without Config.NoFinality, the safe and the final block.
func (c *Chain) Head(ctx context.Context) (chain.Head, error) {
	if err := c.call(ctx, MethodHead); err != nil {
		return chain.Head{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	tip := c.nodeTip()

	head := chain.Head{Tip: c.blocks[tip].ref}
	if !c.config.NoFinality {
		final := c.finalHeight()
		head.Final = c.blocks[final].ref
		head.Safe = c.blocks[max(final, tip-min(c.config.SafeDepth, tip))].ref
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

	if err := c.checkReadable(height); err != nil {
		return chain.Ref{}, err
	}

	return c.blocks[height].ref, nil
}

// checkReadable returns fault.NotFound for a height above the node's tip and fault.Stopped for a
// pruned one.
func (c *Chain) checkReadable(height uint64) error {
	if tip := c.nodeTip(); height > tip {
		return fault.New(
			fault.NotFound, "block_unknown", "network %s has no block %d yet: its tip is %d",
			c.network.Slug, height, tip,
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

// Blocks returns the blocks of a range of heights, at most 256 of them.
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

	if err := c.checkReadable(from); err != nil {
		return nil, err
	}

	to = min(to, c.nodeTip(), from+maxBlocksPerCall-1)

	blocks := make([]chain.Block, 0, to-from+1)
	for _, b := range c.blocks[from : to+1] {
		out := chain.Block{Ref: b.ref, Parent: b.parent}
		for _, included := range b.receipts {
			out.Spent = append(out.Spent, included.spend())
			out.Transfers = append(out.Transfers, included.transfers(false)...)
		}

		blocks = append(blocks, out)
	}

	return blocks, nil
}

// Pool returns the pooled transactions with visible transfers, by descending gas price. It omits those
// behind a nonce gap.
func (c *Chain) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	if err := c.call(ctx, MethodPool); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	var out []chain.PoolTx

	for _, entry := range c.pool.sorted(c.baseFee) {
		transfers := c.claimed(entry, false)
		if len(transfers) > 0 && c.executable(entry) {
			out = append(out, chain.PoolTx{
				TxHash:    entry.hash,
				Transfers: transfers,
				Spent:     []chain.Spend{entry.tx.nonceSpend(entry.hash)},
			})
		}
	}

	return out, nil
}

// spend returns the nonce that a transaction in a block used.
func (r *receipt) spend() chain.Spend {
	spend := r.tx.nonceSpend(r.hash)
	spend.Failed = r.reverted

	return spend
}

// nonceSpend returns the nonce that the transaction uses.
func (t *transaction) nonceSpend(hash string) chain.Spend {
	return chain.Spend{Sender: t.from.address(), Nonce: t.nonce, By: hash}
}

// Transaction returns a transaction of the chain or the pool by its hash, with its internal transfers.
// An unknown one is fault.NotFound.
func (c *Chain) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	if err := c.call(ctx, MethodTransaction); err != nil {
		return chain.FoundTx{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	hash = strings.ToLower(hash)
	if included := c.receipts[hash]; included != nil && included.height <= c.nodeTip() {
		return chain.FoundTx{
			TxHash:    hash,
			Block:     c.blocks[included.height].ref,
			Transfers: included.transfers(true),
			Failed:    included.reverted,
		}, nil
	}

	if entry := c.pool.byHash[hash]; entry != nil {
		return chain.FoundTx{TxHash: hash, Transfers: c.claimed(entry, true)}, nil
	}

	return chain.FoundTx{}, fault.New(
		fault.NotFound, "transaction_unknown", "network %s knows no transaction %q",
		c.network.Slug, hash,
	)
}

// Balances returns the balance of each holding after a block, in base units.
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

	if at.Height > c.nodeTip() || at.Height < c.pruned || c.blocks[at.Height].ref.Hash != at.Hash {
		return nil, fault.New(
			fault.Unavailable, "block_unknown", "the node of network %s does not have block %d %s",
			c.network.Slug, at.Height, at.Hash,
		)
	}

	amounts := make([]chain.Amount, 0, len(holdings))
	for _, holding := range holdings {
		if _, ok := c.network.AssetByID(holding.AssetID); !ok {
			return nil, fault.New(
				fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
				c.network.Slug, holding.AssetID,
			)
		}

		amounts = append(amounts, c.balances.at(holding, at.Height))
	}

	return amounts, nil
}

// Nonce returns an address' next nonce: the number of its transactions in the chain.
func (c *Chain) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	if err := c.call(ctx, MethodNonce); err != nil {
		return 0, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	return c.nonces.at(address, c.nodeTip()), nil
}
