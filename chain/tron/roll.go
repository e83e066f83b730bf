package tron

import (
	"bytes"
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxBalanceDistance is the largest distance in blocks between the solidified block and that of a balance.
const maxBalanceDistance = 100

// rollBalances returns the balances at a block from those at the solidified one. The blocks in between must
// link the two. Those of holdings with a failure are 0.
func (d *driver) rollBalances(
	ctx context.Context,
	node *endpoint,
	solid, at chain.Ref,
	wanted []holding,
	balances []chain.Amount,
	failures []error,
) ([]chain.Amount, error) {
	if err := checkDistance(solid, at); err != nil {
		return nil, err
	}

	low, high := solid, at
	if at.Height < solid.Height {
		low, high = at, solid
	}

	blocks, err := d.blocksBetween(ctx, node, low, high, high == solid)
	if err != nil {
		return nil, err
	}

	out := make([]chain.Amount, len(wanted))
	for i, holding := range wanted {
		if failures[i] != nil {
			continue
		}

		in, gone, err := holding.change(blocks)
		if err != nil {
			return nil, err
		}

		plus, minus := in, gone
		if at.Height < solid.Height {
			plus, minus = gone, in
		}

		sum, ok := balances[i].AddOK(plus)
		if !ok || sum.Less(minus) {
			return nil, node.Garbled(
				"the balance of %s at block %d does not follow from that at block %d",
				canonical(holding.owner), at.Height, solid.Height,
			)
		}

		out[i] = sum.Sub(minus)
	}

	return out, nil
}

// checkDistance returns a fault while the balances at a block do not follow from those at the solidified one, as
// every node has it.
func checkDistance(solid, at chain.Ref) error {
	distance, code := at.Height-solid.Height, "block_too_new"
	if at.Height < solid.Height {
		distance, code = solid.Height-at.Height, "block_too_old"
	}

	if distance <= maxBalanceDistance {
		return nil
	}

	return fault.Wrap(
		failover.ErrNoState,
		fault.Unavailable,
		code,
		"balances at block %d cannot be told from those at the solidified block %d, which is more than %d blocks away",
		at.Height,
		solid.Height,
		maxBalanceDistance,
	)
}

// blocksBetween returns the blocks above low up to high, of which isFinal says that no fork undoes it. Blocks that the
// node showed are not read again.
func (d *driver) blocksBetween(
	ctx context.Context,
	node *endpoint,
	low, high chain.Ref,
	isFinal bool,
) ([]*scannedBlock, error) {
	known, ok := node.blocks.between(low, high)
	if ok && !isFinal {
		ref, err := node.refAt(ctx, high.Height)
		if err != nil {
			return nil, err
		}

		ok = ref.Hash == high.Hash
	}

	if ok {
		return known, nil
	}

	var blocks []*scannedBlock

	last := low
	for last.Height < high.Height {
		part, err := d.readBlocks(ctx, node, last.Height+1, min(high.Height, last.Height+uint64(d.maxBlocks)))
		if err != nil {
			return nil, err
		}

		for _, block := range part {
			if block.Parent != last.Hash {
				return nil, notCanonical(low, high)
			}

			blocks, last = append(blocks, block), block.Ref
		}
	}

	if last.Hash != high.Hash {
		return nil, notCanonical(low, high)
	}

	return blocks, nil
}

func notCanonical(low, high chain.Ref) error {
	return fault.New(
		fault.Unavailable, "block_unknown",
		"blocks %d (%s) and %d (%s) are not both in the node's chain",
		low.Height, low.Hash, high.Height, high.Hash,
	)
}

// change returns what a holding received and spent in blocks, in base units.
func (h holding) change(blocks []*scannedBlock) (in, out chain.Amount, err error) {
	for _, block := range blocks {
		for _, change := range block.changes {
			if change.assetID != h.asset.ID {
				continue
			}

			ok := true
			if change.to == h.owner && !change.burnt {
				in, ok = in.AddOK(change.amount)
			}

			if ok && change.from == h.owner {
				out, ok = out.AddOK(change.amount)
			}

			if !ok {
				return in, out, fault.New(
					fault.Unavailable, "balance_unreadable",
					"the movements of %s in block %d exceed 256 bits",
					canonical(h.owner), block.Height,
				)
			}
		}

		for _, tx := range block.opaque {
			if h.asset.Kind == chain.Native && bytes.Contains(tx.raw, h.owner[:]) {
				return in, out, fault.Wrap(
					failover.ErrNoState,
					fault.Unavailable,
					"balance_unreadable",
					"transaction %s in block %d names %s and may have changed its balance; it can be read "+
						"again once the block is solidified",
					tx.hash,
					block.Height,
					canonical(h.owner),
				)
			}
		}
	}

	return in, out, nil
}
