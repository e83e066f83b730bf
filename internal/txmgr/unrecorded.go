package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

// maxAhead bounds the number of blocks that are read ahead of the follower.
const maxAhead = 64

// unrecordedAhead returns the transactions that are not on record in the blocks above the last one that was
// read, up to a height. It also reports whether these blocks follow that one. It reports false if there are
// more than maxAhead, or a fork removed that one. A network without blocks has none ahead, because its
// histories are read up to its cursor.
func (o *Manager) unrecordedAhead(
	ctx context.Context,
	driver chain.Driver,
	read chain.Ref,
	height uint64,
) (map[chain.Address][]string, bool, error) {
	scanner, ok := driver.(chain.BlockScanner)
	if !ok {
		return nil, true, nil
	}

	if height < read.Height || height > read.Height+maxAhead {
		return nil, false, nil
	}

	var spent []chain.PoolTx

	for from, last := read.Height, (chain.Ref{}); from <= height; from = last.Height + 1 {
		blocks, err := scanner.Blocks(ctx, from, height)
		if err != nil {
			return nil, false, err
		}

		if len(blocks) == 0 {
			return nil, false, nil
		}

		for _, b := range blocks {
			parent := last

			last = b.Ref
			if last.Height <= read.Height {
				if read.Hash != "" && last.Hash != read.Hash {
					return nil, false, nil
				}

				continue // its transactions are on record
			}

			if b.Parent != parent.Hash {
				return nil, false, nil
			}

			for _, s := range b.Spent {
				spent = append(spent, chain.PoolTx{TxHash: s.By, Spent: []chain.Spend{s}})
			}
		}
	}

	unrecorded, err := o.unrecordedIn(ctx, driver.Network().Slug, spent)

	return unrecorded, err == nil, err
}

// unrecordedIn returns the hashes of a pool's transactions that are not on record, by the address that they
// take from: senders, and owners of our coins.
func (o *Manager) unrecordedIn(
	ctx context.Context,
	network string,
	pool []chain.PoolTx,
) (map[chain.Address][]string, error) {
	var hashes, parents []string

	for _, t := range pool {
		hashes = append(hashes, t.TxHash)

		for _, spend := range t.Spent {
			if spend.Outpoint.TxHash != "" {
				parents = append(parents, spend.Outpoint.TxHash)
			}
		}
	}

	if len(hashes) == 0 {
		return nil, nil
	}

	own, err := o.db.OwnTransactions(ctx, network, sortedSet(hashes))
	if err != nil {
		return nil, &storeError{err}
	}

	owners := map[chain.Outpoint]chain.Address{}

	if len(parents) > 0 {
		coins, err := o.db.CoinsOf(ctx, network, sortedSet(parents))
		if err != nil {
			return nil, &storeError{err}
		}

		for _, c := range coins {
			owners[c.Outpoint] = c.Owner.Address
		}
	}

	unrecorded := map[chain.Address][]string{}

	for _, t := range pool {
		if _, recorded := own[t.TxHash]; recorded {
			continue
		}

		for _, spend := range t.Spent {
			from := spend.Sender
			if spend.Outpoint.TxHash != "" {
				from = owners[spend.Outpoint]
			}

			if from != "" {
				unrecorded[from] = append(unrecorded[from], t.TxHash)
			}
		}
	}

	return unrecorded, nil
}

// sortedSet returns the distinct strings of a list, in order.
func sortedSet(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)

	return slices.Compact(list)
}
