package solana

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Reread returns a block as two nodes show it, or the only one that is configured: no hash binds what its
// transactions did. A transaction of which no two nodes show the same is in Unread and nowhere else, and
// Unverified is set. Errors:
//   - fault.NotFound (block_unknown): a node has another block at that height, and no two have this one; or none is
//     that far;
//   - fault.Unavailable: fewer than two nodes show the block.
func (d *blockDriver) Reread(ctx context.Context, at chain.Ref, _ []string) (chain.Block, error) {
	return d.sharedBlock(ctx, at, d.readAt)
}

// Reread returns what Reread of a driver by block does, of the given transactions alone: each node is asked for these
// and for no whole block.
func (d *driver) Reread(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return d.sharedBlock(ctx, at, func(ctx context.Context, e *endpoint, at chain.Ref) (chain.Block, error) {
		return d.readSome(ctx, e, at, hashes)
	})
}

// sharedBlock returns what two nodes show alike of a block, each read by read, or the only one that is configured.
func (d *driver) sharedBlock(
	ctx context.Context,
	at chain.Ref,
	read func(ctx context.Context, e *endpoint, at chain.Ref) (chain.Block, error),
) (chain.Block, error) {
	var (
		shown []chain.Block // one for each node
		first *endpoint
		other error // of a node with another block
	)

	readFrom := func(ctx context.Context, e *endpoint) error {
		block, err := read(ctx, e, at)
		if err == nil {
			shown = append(shown, block)
		} else if errors.Is(err, fault.NotFound) {
			other, err = err, failover.ErrMissing // the next node may have it
		}

		return err
	}

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) error { first = e; return readFrom(ctx, e) })
	if err != nil {
		return chain.Block{}, cmp.Or(other, aboveTip(err, at.Height))
	}

	if len(d.nodes.Nodes) == 1 {
		return shown[0], nil
	}

	var block chain.Block

	err = d.nodes.AskBeside(ctx, first, 0, func(ctx context.Context, e *endpoint) (enough bool, err error) {
		if err := readFrom(ctx, e); err != nil {
			return false, err
		}

		block = agreedOf(shown)

		return len(block.Unread) == 0, nil
	})

	switch {
	case err != nil:
		return chain.Block{}, err
	case len(shown) > 1:
		return block, nil
	case other != nil:
		return chain.Block{}, other
	}

	return chain.Block{}, fault.New(
		fault.Unavailable, "node_unavailable",
		"network %s has no second node that shows what is in block %d", d.network.Slug, at.Height,
	)
}

// readAt reads a block from one node. Another block at its height is fault.NotFound (block_unknown). What Head has
// read of another node is not used.
func (d *driver) readAt(ctx context.Context, e *endpoint, at chain.Ref) (chain.Block, error) {
	h, err := d.headerOf(ctx, e, at)
	if err != nil {
		return chain.Block{}, err
	}

	h, err = e.block(ctx, h.slot, "accounts")

	switch {
	case err != nil:
		return chain.Block{}, e.blockError(ctx, at.Height, err)
	case h.Hash != at.Hash:
		return chain.Block{}, d.otherBlock(e, h, at)
	case h.Height != at.Height:
		return chain.Block{}, e.slotMismatch(h, at.Height)
	}

	block := chain.Block{Ref: h.ref(), Parent: h.Parent}

	return block, d.readTransactions(ctx, e, h, &block)
}

// headerOf reads the header of a block from one node. Another block at its height is fault.NotFound (block_unknown).
func (d *driver) headerOf(ctx context.Context, e *endpoint, at chain.Ref) (blockHeader, error) {
	h, err := d.headerAt(ctx, e, at.Height)
	if err == nil && h.Hash != at.Hash {
		err = d.otherBlock(e, h, at)
	}

	return h, err
}

// otherBlock is the error of a node that has another block at a height.
func (d *driver) otherBlock(e *endpoint, has blockHeader, at chain.Ref) error {
	return fault.New(
		fault.NotFound, "block_unknown", "node %s of network %s has block %s at height %d, not %s",
		e.Host, d.network.Slug, has.Hash, at.Height, at.Hash,
	)
}

// readSome reads transactions of a block from one node. Another block at its height is fault.NotFound (block_unknown).
// One that the node says is elsewhere or nowhere is not in the block.
func (d *driver) readSome(
	ctx context.Context,
	e *endpoint,
	at chain.Ref,
	hashes []string,
) (chain.Block, error) {
	h, err := d.headerOf(ctx, e, at)
	if err != nil {
		return chain.Block{}, err
	}

	parts := make([]chain.Block, len(hashes))

	err = e.forEach(ctx, len(hashes), func(ctx context.Context, i int) (err error) {
		parts[i], err = d.readOne(ctx, e, h, hashes[i])
		return err
	})
	if err != nil {
		return chain.Block{}, err
	}

	block := chain.Block{Ref: h.ref(), Parent: h.Parent}
	for _, part := range parts {
		block.Transfers = append(block.Transfers, part.Transfers...)
		block.Spent = append(block.Spent, part.Spent...)
		block.Unread = append(block.Unread, part.Unread...)
	}

	return block, nil
}

// readOne reads what one transaction did in a block. That it is nowhere is said by a backend that has the block.
func (d *driver) readOne(
	ctx context.Context,
	e *endpoint,
	h blockHeader,
	hash string,
) (part chain.Block, err error) {
	tx, slot, err := d.fetchExecuted(ctx, e, hash)
	if errors.Is(err, failover.ErrMissing) {
		known, err := e.signatureStatus(ctx, hash, h.slot)
		if err == nil && known != nil {
			part.Unread = []chain.Unread{{Height: h.Height, TxHash: hash, Why: listedAndMissing}}
		}

		return part, err
	}

	unread, isUnread := unreadTx(err)

	switch {
	case isUnread:
		unread.Height, part.Unread = h.Height, []chain.Unread{unread}
		return part, nil
	case err != nil || slot != h.slot:
		return part, err
	}

	part.Spent = tx.spends()
	part.Transfers, err = d.transfers(tx)

	return part, err
}

// agreedOf returns of a block, as several nodes show it, what two of them show alike.
func agreedOf(shown []chain.Block) chain.Block {
	block := chain.Block{Ref: shown[0].Ref, Parent: shown[0].Parent}
	words := make([]map[string]txWord, len(shown))

	var order []string // hashes

	for i, b := range shown {
		words[i] = wordsOf(b)

		for _, spend := range b.Spent {
			order = append(order, spend.By)
		}

		for _, unread := range b.Unread {
			order = append(order, unread.TxHash)
		}
	}

	decided := map[string]bool{}

	for _, hash := range order {
		if decided[hash] {
			continue
		}

		decided[hash] = true

		word, agreed := sharedWord(words, hash)
		if !agreed {
			block.Unverified = "no two nodes show the same of transaction " + hash
			block.Unread = append(block.Unread, chain.Unread{
				Height: block.Height,
				TxHash: hash,
				Why:    "no two nodes show the same of it",
			})
		}

		block.Transfers = append(block.Transfers, word.transfers...)
		block.Spent = append(block.Spent, word.spent...)
	}

	return block
}

// txWord is what one node shows of a transaction in a block; the zero value is that it is not there.
type txWord struct {
	transfers []chain.Transfer
	spent     []chain.Spend
	unread    bool // what it did, the node does not show
}

// wordsOf returns what a node shows of the transactions in a block, by hash.
func wordsOf(b chain.Block) map[string]txWord {
	words := make(map[string]txWord, len(b.Spent))

	for _, spend := range b.Spent {
		word := words[spend.By]
		word.spent = append(word.spent, spend)
		words[spend.By] = word
	}

	for _, moved := range b.Transfers {
		word := words[moved.TxHash]
		word.transfers = append(word.transfers, moved)
		words[moved.TxHash] = word
	}

	for _, unread := range b.Unread {
		word := words[unread.TxHash]
		word.unread = true
		words[unread.TxHash] = word
	}

	return words
}

// sharedWord returns what two nodes show alike of a transaction, which may be that it is not there.
func sharedWord(words []map[string]txWord, hash string) (word txWord, agreed bool) {
	for i, one := range words {
		for _, another := range words[i+1:] {
			a, b := one[hash], another[hash]
			if !a.unread && !b.unread && slices.Equal(a.spent, b.spent) &&
				slices.Equal(a.transfers, b.transfers) {
				return a, true
			}
		}
	}

	return txWord{}, false
}
