package sim

// Driver methods that read blocks, pool, transactions and balances.

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxBlocksPerCall is the largest number of blocks that Blocks returns.
const maxBlocksPerCall = 256

// Check asks every node. One of another network is fault.Stopped with code chain_id_mismatch.
func (c *Chain) Check(ctx context.Context) error {
	_, injected, err := c.call(ctx, MethodCheck, c.preferredFirst)
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.preferred != 0 {
		injected = c.nextFault(MethodCheck)
	}

	if injected != nil {
		return injected
	}

	for _, n := range c.nodes {
		if err := n.begin(); err != nil {
			return err
		}
	}

	return nil
}

// Head returns the tip and, without Config.NoFinality, the safe and the final block.
func (c *Chain) Head(ctx context.Context) (chain.Head, error) {
	return ask(ctx, c, MethodHead, (*node).head)
}

// head returns the node's newest, safe and final blocks.
func (n *node) head() (chain.Head, error) {
	head := chain.Head{Tip: n.ref(n.tip)}
	if !n.c.config.NoFinality {
		head.Safe, head.Final = n.ref(n.safe()), n.ref(n.final())
	}

	return head, nil
}

// RefAt returns the block at a height.
func (c *Chain) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	return ask(ctx, c, MethodRefAt, func(n *node) (chain.Ref, error) {
		if err := n.checkReadable(height); err != nil {
			return chain.Ref{}, err
		}

		return n.ref(height), nil
	})
}

// Blocks returns the blocks of a range of heights, at most 256 of them. It ends before one that does
// not link or, where the driver verifies blocks, contradicts its header.
func (c *Chain) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	return ask(ctx, c, MethodBlocks, func(n *node) ([]chain.Block, error) {
		if from > to {
			return nil, fault.New(
				fault.Invalid, "range_invalid", "the range of blocks %d to %d is empty",
				from, to,
			)
		}

		if err := n.checkReadable(from); err != nil {
			return nil, err
		}

		last := min(to, n.tip, from+maxBlocksPerCall-1)
		blocks := make([]chain.Block, 0, last-from+1)

		for height := from; height <= last; height++ {
			b, err := n.block(height)
			if err != nil && height == from {
				return nil, err
			}

			if err != nil || height > from && b.Parent != blocks[len(blocks)-1].Hash {
				break
			}

			blocks = append(blocks, b)
		}

		return blocks, nil
	})
}

// shown returns the block with the transfers that blocks show.
func (b *block) shown() chain.Block {
	out := chain.Block{Ref: b.ref, Parent: b.parent}
	for _, included := range b.receipts {
		out.Spent = append(out.Spent, included.spend())
		out.Transfers = append(out.Transfers, included.transfers(false)...)
	}

	return out
}

// Pool returns the pooled transactions with visible transfers, by descending gas price. It omits those
// behind a nonce gap. What they transfer is what their senders claim.
func (c *Chain) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	return ask(ctx, c, MethodPool, func(n *node) ([]chain.PoolTx, error) {
		var out []chain.PoolTx

		for _, entry := range c.pool.sorted(c.baseFee) {
			transfers := c.claimed(entry, false)
			if len(transfers) > 0 && c.executable(entry) && !slices.Contains(n.faults.Denies, entry.hash) {
				out = append(out, chain.PoolTx{
					TxHash:    entry.hash,
					Transfers: transfers,
					Spent:     []chain.Spend{entry.tx.nonceSpend(entry.hash)},
				})
			}
		}

		return out, nil
	})
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
	return ask(ctx, c, MethodTransaction, func(n *node) (chain.FoundTx, error) {
		return n.transaction(strings.ToLower(hash))
	})
}

// Balances returns the balance of each holding after a block, in base units. Where no second one of several nodes has
// the block, they are provisional.
func (c *Chain) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	amounts, err := c.balancesAt(ctx, at, holdings)
	if err != nil || len(c.nodes) == 1 || len(holdings) == 0 {
		return amounts, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	with := 0

	for _, n := range c.nodes {
		if n.begin() == nil && n.checkReadable(at.Height) == nil && n.ref(at.Height).Hash == at.Hash {
			with++
		}
	}

	if with > 1 {
		return amounts, nil
	}

	alone := &chain.UnreadableError{Network: c.network.Slug}
	for i, holding := range holdings {
		alone.Holdings = append(alone.Holdings, chain.UnreadableHolding{
			Holding:     holding,
			Index:       i,
			Provisional: true,
			Err: c.notAgreed(
				"nodes_missing",
				"network %s has no second node that confirms %s",
				"a balance",
			),
		})
	}

	return amounts, alone
}

// balancesAt returns what one node says of balances.
func (c *Chain) balancesAt(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	return ask(ctx, c, MethodBalances, func(n *node) ([]chain.Amount, error) {
		if n.checkReadable(at.Height) != nil || n.ref(at.Height).Hash != at.Hash {
			return nil, fault.New(
				fault.Unavailable, "block_unknown",
				"the node of network %s does not have block %d %s",
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
	})
}

// Nonce returns an address' next nonce: the number of its transactions in the chain.
func (c *Chain) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	return ask(ctx, c, MethodNonce, func(n *node) (uint64, error) {
		return n.count(address, n.tip), nil
	})
}

// count returns how many transactions of an address the node counts up to a height.
func (n *node) count(address chain.Address, height uint64) uint64 {
	if count, wrong := n.faults.Counts[address]; wrong {
		return count
	}

	return n.c.nonces.at(address, height)
}
