package auditor

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file audits UTXO networks. It compares the records with the UTXO index, which is made from blocks
// alone, and the index with the node's own set of unspent outputs.

// spentBy returns the coins that the included transactions of a page spend, by output.
func (a *auditor) spentBy(
	ctx context.Context,
	page []wallet.Transaction,
) (map[chain.Outpoint]chain.Coin, error) {
	var hashes []string

	for _, t := range page {
		for _, attempt := range t.Attempts {
			for _, in := range attempt.Signed.Inputs {
				hashes = append(hashes, in.TxHash)
			}
		}
	}

	return a.coinsByHash(ctx, hashes)
}

// coinsByHash returns the outputs of transactions that are our coins, spent ones included.
func (a *auditor) coinsByHash(ctx context.Context, hashes []string) (map[chain.Outpoint]chain.Coin, error) {
	hashes = slices.DeleteFunc(hashes, func(hash string) bool { return hash == "" })
	if len(hashes) == 0 {
		return nil, nil
	}

	slices.Sort(hashes)
	found, err := a.store.CoinsOf(ctx, a.network.Slug, slices.Compact(hashes))

	coins := make(map[chain.Outpoint]chain.Coin, len(found))
	for _, c := range found {
		coins[c.Outpoint] = c.Coin
	}

	return coins, err
}

// coins compares every address of ours with the UTXO index, and the index with the node.
func (a *auditor) coins(
	ctx context.Context,
	reader chain.CoinReader,
	reserved map[chain.Holding]chain.Amount,
) error {
	spentAbove := map[chain.Address][]wallet.Coin{} // coins spent by blocks above the compared one

	above, err := a.store.CoinsAbove(ctx, a.network.Slug, a.out.At.Height)
	if err != nil {
		return err
	}

	for _, c := range above {
		if c.SpentBy != "" {
			spentAbove[c.Owner.Address] = append(spentAbove[c.Owner.Address], c)
		}
	}

	for _, h := range a.ledger.close() {
		sum, err := a.indexed(ctx, reader, h.Address, spentAbove[h.Address])
		if err != nil {
			return err
		}

		a.compare(h, sum, reserved[h])

		a.out.Holdings++
	}

	return a.unexplained(ctx, func(ctx context.Context, holdings []chain.Holding) ([]chain.Amount, error) {
		sums := make([]chain.Amount, len(holdings))

		for i, h := range holdings {
			if sums[i], err = a.indexed(ctx, reader, h.Address, spentAbove[h.Address]); err != nil {
				return nil, err
			}
		}

		return sums, nil
	})
}

// indexed returns the amount in the UTXO index at an address at the compared block, in base units, and
// compares its coins with the node. spentAbove are the coins that later blocks spent.
func (a *auditor) indexed(
	ctx context.Context,
	reader chain.CoinReader,
	address chain.Address,
	spentAbove []wallet.Coin,
) (chain.Amount, error) {
	var sum chain.Amount

	unspent, err := a.store.Coins(ctx, a.network.Slug, address)
	if err != nil {
		return sum, err
	}

	for _, c := range append(unspent, spentAbove...) {
		if c.Height > 0 && c.Height <= a.out.At.Height {
			sum = sum.Add(c.Amount)
		}
	}

	mined := slices.DeleteFunc(unspent, func(c wallet.Coin) bool { return c.Height == 0 })
	for part := range slices.Chunk(mined, maxHoldings) {
		if err := a.checkUnspent(ctx, reader, part); err != nil {
			return sum, err
		}
	}

	return sum, nil
}

// checkUnspent reports coins that are unspent in the UTXO index but not on the node. A coin that was spent,
// or reorged out, after the last block that was read is not a difference.
func (a *auditor) checkUnspent(ctx context.Context, reader chain.CoinReader, coins []wallet.Coin) error {
	outpoints := make([]chain.Outpoint, len(coins))
	for i, c := range coins {
		outpoints[i] = c.Outpoint
	}

	at, amounts, err := reader.Unspent(ctx, outpoints)
	if err != nil {
		return err
	}

	if len(amounts) != len(coins) {
		return fault.New(
			fault.Unavailable, "coins_incomplete", "the driver answered %d of %d outputs",
			len(amounts), len(coins),
		)
	}

	for i, c := range coins {
		if amounts[i] == c.Amount {
			continue
		}

		cursor, _, err := a.store.Cursor(ctx, a.network.Slug)
		if err != nil {
			return err
		}

		now, err := a.store.CoinsOf(ctx, a.network.Slug, []string{c.Outpoint.TxHash})
		if err != nil {
			return err
		}

		same := slices.ContainsFunc(
			now,
			func(other wallet.Coin) bool { return other.Outpoint == c.Outpoint && other.Version == c.Version },
		)
		if cursor.At.Hash != at.Hash || !same {
			continue
		}

		a.report(audit.Difference{
			Kind:     audit.MoneyMissing,
			Address:  c.Owner.Address,
			AssetID:  a.ledger.native,
			Expected: c.Amount,
			Found:    amounts[i],
			Message: fmt.Sprintf(
				"output %s:%d of %s is unspent on record and not on the node: compare the node with others",
				c.Outpoint.TxHash, c.Outpoint.Vout, c.Owner.Address,
			),
		})
	}

	return nil
}
