package tron

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/fault"
)

// What is in receipts is under no hash: logs, the sender of a token, internal transfers and fees are what a node says.
// Where several nodes are configured it is compared here.

// agreedBlocks returns blocks that a node showed as two nodes show them, as far as another one has them now. A
// transaction of which no two show the same is in Unread, and its block is read anew the next time.
//
// Of a block that no other node shows the first one's word counts, but for internal transfers: payments by them are
// not compared again before they confirm.
func (d *driver) agreedBlocks(
	ctx context.Context,
	first *endpoint,
	scanned []*scannedBlock,
) ([]chain.Block, error) {
	shown, err := d.shownBlocks(ctx, first, scanned)
	if err != nil {
		return nil, err
	}

	out := make([]chain.Block, len(shown))
	for i, words := range shown {
		block := agree.Merge(words)
		block.Transfers, block.Spent = slices.Clone(block.Transfers), slices.Clone(block.Spent)

		if d.hasSeveral() && len(words) == 1 {
			block.Transfers = agree.WithoutInternal(block.Transfers)
		}

		if len(block.Unread) > 0 {
			d.forget(block.Hash)
		}

		out[i] = block
	}

	return out, nil
}

// shownBlocks returns each block that a node showed, and what others show of it: as many as it takes until two show
// each transaction alike.
func (d *driver) shownBlocks(
	ctx context.Context,
	first *endpoint,
	scanned []*scannedBlock,
) ([][]chain.Block, error) {
	shown := make([][]chain.Block, len(scanned))
	for i, block := range scanned {
		shown[i] = []chain.Block{block.Block}
	}

	if !d.hasSeveral() || !slices.ContainsFunc(scanned, (*scannedBlock).hasTransactions) {
		return shown, nil
	}

	from, to := scanned[0].Height, scanned[len(scanned)-1].Height

	err := d.nodes.AskBeside(ctx, first, from, func(ctx context.Context, node *endpoint) (bool, error) {
		others, err := d.readBlocks(ctx, node, from, to)
		for i, other := range others {
			if other.Hash == scanned[i].Hash {
				shown[i] = append(shown[i], other.Block)
			}
		}

		return areAgreed(shown), err
	})

	return shown, err
}

// forget has a block read anew from every node.
func (d *driver) forget(id string) {
	for _, node := range d.nodes.Nodes {
		node.blocks.forget(id)
	}
}

// areAgreed reports whether two nodes show each transaction of each block alike.
func areAgreed(shown [][]chain.Block) bool {
	return !slices.ContainsFunc(shown, func(block []chain.Block) bool {
		return len(block) < 2 || len(agree.Merge(block).Unread) > 0
	})
}

// hasSeveral reports whether more than one node is configured.
func (d *driver) hasSeveral() bool { return len(d.nodes.Nodes) > 1 }

// hasTransactions reports whether a block may hold any. That it holds none is proven by its id.
func (b *scannedBlock) hasTransactions() bool {
	return b.Unverified != "" || len(b.Spent) > 0 || len(b.Transfers) > 0 || len(b.opaque) > 0
}

// AgreedBlock returns transactions of a block as two nodes show them, or the only one that is configured. One of which
// no two nodes show the same is in Unread and nowhere else, and Unverified is set. See chain.Agreed.
func (d *driver) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	if len(hashes) == 0 {
		if err := agree.Ref(ctx, d.nodes, d.attempts, at, false, refAt); err != nil {
			return chain.Block{}, err
		}

		return chain.Block{Ref: at}, nil
	}

	return agree.Block(
		ctx, d.nodes, d.attempts, at.Height, at,
		func(ctx context.Context, node *endpoint) (chain.Block, error) {
			return d.readAgain(ctx, node, at, hashes)
		},
	)
}

// readAgain reads transactions of a block from a node, whatever it showed before.
// Another block at that height is fault.NotFound (block_unknown).
func (d *driver) readAgain(
	ctx context.Context,
	node *endpoint,
	at chain.Ref,
	hashes []string,
) (chain.Block, error) {
	header, err := node.block(ctx, at.Height)
	if err != nil {
		return chain.Block{}, err
	}

	if header.BlockID != at.Hash {
		return chain.Block{}, fault.New(
			fault.NotFound, "block_unknown", "node %s of network %s has block %s at height %d, not %s",
			node.Host, d.network.Slug, header.BlockID, at.Height, at.Hash,
		)
	}

	linked, err := linkBlocks(ctx, node, []blockJSON{*header}, at.Height, at.Height)
	if err != nil {
		return chain.Block{}, err
	}

	scanned := linked[0]
	if err := d.readTransactions(ctx, node, header, scanned); err != nil {
		return chain.Block{}, err
	}

	node.blocks.put(scanned)

	block := scanned.Block
	block.Transfers = keepBy(block.Transfers, hashes, func(t chain.Transfer) string { return t.TxHash })
	block.Spent = keepBy(block.Spent, hashes, func(s chain.Spend) string { return s.By })

	return block, nil
}

// keepBy returns those of a list that belong to transactions.
func keepBy[T any](list []T, hashes []string, hashOf func(T) string) []T {
	return slices.DeleteFunc(
		slices.Clone(list),
		func(v T) bool { return !slices.Contains(hashes, hashOf(v)) },
	)
}
