package sim

// Driver methods of Windows that read blocks, transactions and balances.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// finalHeight returns the height of the node's newest final block.
func (w *Windows) finalHeight() uint64 {
	tip := w.nodeTip()
	return min(w.final, tip-min(w.config.FinalDepth, tip))
}

// Head returns the tip and the final block, which is the safe one too.
func (w *Windows) Head(ctx context.Context) (chain.Head, error) {
	if err := w.call(ctx, MethodHead); err != nil {
		return chain.Head{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	final := w.headers[w.finalHeight()].Ref

	return chain.Head{Tip: w.headers[w.nodeTip()].Ref, Safe: final, Final: final}, nil
}

// AgreedHead returns what Head does, as far as the second node has it too; see LagSecond.
func (w *Windows) AgreedHead(ctx context.Context) (chain.Head, error) {
	if err := w.call(ctx, MethodAgreedHead); err != nil {
		return chain.Head{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	final := w.headers[min(w.finalHeight(), w.agreedTip())].Ref

	return chain.Head{Tip: w.headers[w.agreedTip()].Ref, Safe: final, Final: final}, nil
}

// AgreedBlock returns a block that the second node has too; see LagSecond.
func (w *Windows) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return w.agreedBlock(ctx, at, hashes, w.block)
}

// Blocks returns the blocks of a range of heights, at most 256 of them. A spend names the sender of a
// transaction, and excludes no other.
func (w *Windows) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if err := w.call(ctx, MethodBlocks); err != nil {
		return nil, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	to, err := w.checkRange(from, to)
	if err != nil {
		return nil, err
	}

	blocks := make([]chain.Block, 0, to-from+1)
	for height := from; height <= to; height++ {
		blocks = append(blocks, w.block(height))
	}

	return blocks, nil
}

// block returns the block at a height.
func (w *Windows) block(height uint64) chain.Block {
	out := chain.Block{Ref: w.headers[height].Ref, Parent: w.headers[height].parent}
	for _, included := range w.blocks[height] {
		out.Transfers = append(out.Transfers, w.transfers(included)...)
		out.Spent = append(out.Spent, signed(included.tx, included.hash, included.reverted))
	}

	return out
}

// signed returns that the sender signed a transaction, which excludes no other one.
func signed(tx *transaction, hash string, failed bool) chain.Spend {
	return chain.Spend{Sender: tx.from.address(), By: hash, Shared: true, Failed: failed}
}

// transfers returns what a transaction moved; nothing when it failed.
func (w *Windows) transfers(included *receipt) []chain.Transfer {
	if included.reverted {
		return nil
	}

	return included.transfers(true)
}

// Transaction returns a transaction of the chain or the pool by its hash. An unknown one is
// fault.NotFound.
func (w *Windows) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	if err := w.call(ctx, MethodTransaction); err != nil {
		return chain.FoundTx{}, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	hash = strings.ToLower(hash)
	if included := w.receipts[hash]; included != nil && included.height <= w.nodeTip() {
		return chain.FoundTx{
			TxHash:    hash,
			Block:     w.headers[included.height].Ref,
			Transfers: w.transfers(included),
			Failed:    included.reverted,
			Spent:     []chain.Spend{signed(included.tx, hash, included.reverted)},
		}, nil
	}

	if entry := w.pool[hash]; entry != nil {
		return chain.FoundTx{
			TxHash:    hash,
			Transfers: w.ledger.claimed(entry, true),
			Spent:     []chain.Spend{signed(entry.tx, hash, false)},
		}, nil
	}

	return chain.FoundTx{}, fault.New(
		fault.NotFound, "transaction_unknown", "network %s knows no transaction %q",
		w.network.Slug, hash[:min(len(hash), 64)],
	)
}

// Waiting returns the transactions that wait for a block, in the order of their arrival.
func (w *Windows) Waiting() []chain.PoolTx {
	w.mu.Lock()
	defer w.mu.Unlock()

	entries := slices.Collect(maps.Values(w.pool))
	slices.SortFunc(entries, func(a, b *poolEntry) int { return cmp.Compare(a.arrival, b.arrival) })

	waiting := make([]chain.PoolTx, len(entries))
	for i, entry := range entries {
		waiting[i] = chain.PoolTx{
			TxHash:    entry.hash,
			Transfers: w.ledger.claimed(entry, true),
			Spent:     []chain.Spend{signed(entry.tx, entry.hash, false)},
		}
	}

	return waiting
}

// Balances returns the balances after a block that the node has.
func (w *Windows) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	if err := w.call(ctx, MethodBalances); err != nil {
		return nil, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if at.Height > w.nodeTip() || at.Height < w.pruned || w.headers[at.Height].Hash != at.Hash {
		return nil, fault.New(
			fault.Unavailable, "block_unknown", "the node of network %s does not have block %d %s",
			w.network.Slug, at.Height, at.Hash,
		)
	}

	amounts := make([]chain.Amount, 0, len(holdings))
	for _, holding := range holdings {
		if _, ok := w.network.AssetByID(holding.AssetID); !ok {
			return nil, fault.New(
				fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
				w.network.Slug, holding.AssetID,
			)
		}

		amounts = append(amounts, w.balance(holding.Address, holding.AssetID, at.Height))
	}

	return amounts, nil
}
