package txmgr

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// measureWithin is how long a transaction is tried to be measured, while no node answers for the balances at its block.
// After that what the logs say counts, and the audit compares what a sweep brought. One whose block is too old for
// every node does not wait.
const measureWithin = 10 * time.Minute

// measured returns the transfers of a sweep or a payout in the block of its row. For a token that takes a fee without a
// log, or moves nothing, it adds a transfer of what the receiver's balance lacks after the block. ok is false while
// that cannot be read.
func (d *walletWorker) measured(
	ctx context.Context,
	t wallet.Transaction,
	row wallet.Outgoing,
	transfers []chain.Transfer,
) (out []chain.Transfer, ok bool, err error) {
	balancer, can := d.driver.(chain.Balancer)
	if t.Kind != wallet.Sweep && t.Kind != wallet.Payout || !can {
		return transfers, true, nil
	}

	var tokens []chain.Output

	for _, output := range t.Order.Outputs {
		asset, known := d.network.AssetByID(output.AssetID)
		if known && asset.Kind == chain.Token && output.To != t.Order.From.Address {
			tokens = append(tokens, output)
		}
	}

	if len(tokens) == 0 {
		return transfers, true, nil
	}

	blocks, err := d.driver.(chain.BlockScanner).Blocks(ctx, row.Block.Height, row.Block.Height)
	if err != nil || len(blocks) != 1 || blocks[0].Hash != row.Block.Hash {
		return nil, false, err
	}

	for _, output := range tokens {
		holding := chain.Holding{Address: output.To, AssetID: output.AssetID}

		missing, err := shortfall(ctx, balancer, blocks[0], holding)
		if err != nil {
			unreadable := (*chain.UnreadableError)(nil)
			if errors.As(err, &unreadable) && !isDisputed(err) ||
				fault.Code(err) == "block_too_old" || d.stopsMeasuring(row.TxHash) {
				continue
			}

			return nil, false, err
		}

		if cut := cutOf(blocks[0], holding, row.TxHash, missing); !cut.IsZero() {
			asset, _ := d.network.AssetByID(output.AssetID)
			transfers = append(transfers[:len(transfers):len(transfers)], chain.Transfer{
				TxHash:  row.TxHash,
				From:    output.To,
				To:      asset.Contract,
				AssetID: output.AssetID,
				Amount:  cut,
			})
		}
	}

	d.measures.Delete(row.TxHash)

	return transfers, true, nil
}

// stopsMeasuring reports whether this process has tried to measure a transaction for measureWithin.
func (d *walletWorker) stopsMeasuring(hash string) bool {
	began, _ := d.measures.LoadOrStore(hash, d.now())

	return d.now().Sub(began.(time.Time)) > measureWithin
}

// MeasuredSweep returns the transfers of a transaction that is not on record. It adds the amounts that a
// token took without a log from the master wallets that received it.
//
// Errors: fault.Unavailable while the balances at its block cannot be read.
func (o *Manager) MeasuredSweep(
	ctx context.Context,
	row wallet.Outgoing,
	transfers []chain.Transfer,
	masters []chain.Address,
) ([]chain.Transfer, error) {
	driver, err := o.registry.Driver(row.Network)
	if err != nil {
		return nil, err
	}

	sweep := wallet.Transaction{Kind: wallet.Sweep}
	sweep.Order.From.Address = row.Address

	for _, t := range transfers {
		output := chain.Output{To: t.To, AssetID: t.AssetID}
		if slices.Contains(masters, t.To) && !slices.Contains(sweep.Order.Outputs, output) {
			sweep.Order.Outputs = append(sweep.Order.Outputs, output)
		}
	}

	d := &walletWorker{Manager: o, network: driver.Network(), driver: driver, party: sweep.Order.From}

	measured, ok, err := d.measured(ctx, sweep, row, transfers)
	if err == nil && !ok {
		err = fault.New(
			fault.Unavailable,
			"balance_unreadable",
			"what transaction %s brought could not be measured: call again",
			row.TxHash,
		)
	}

	return measured, err
}

// shortfall returns the amount, in base units, by which a holding after a block is below its balance before
// the block plus the transfers in the block's logs.
func shortfall(
	ctx context.Context,
	balancer chain.Balancer,
	block chain.Block,
	holding chain.Holding,
) (missing chain.Amount, err error) {
	if block.Parent == "" || block.Height == 0 {
		return chain.Amount{}, nil
	}

	before, err := balancer.Balances(
		ctx, chain.Ref{Height: block.Height - 1, Hash: block.Parent}, []chain.Holding{holding},
	)
	if err != nil {
		return chain.Amount{}, err
	}

	after, err := balancer.Balances(ctx, block.Ref, []chain.Holding{holding})
	if err != nil {
		return chain.Amount{}, err
	}

	if len(before) != 1 || len(after) != 1 {
		return chain.Amount{}, nil
	}

	var (
		sum  = before[0]
		gone chain.Amount
		ok   bool
	)

	for _, m := range block.Transfers {
		if m.AssetID == holding.AssetID && m.To == holding.Address {
			if sum, ok = sum.AddOK(m.Amount); !ok {
				return chain.Amount{}, nil // no balance can be that high: the logs do not add up
			}
		}

		if m.AssetID == holding.AssetID && m.From == holding.Address {
			if gone, ok = gone.AddOK(m.Amount); !ok {
				return chain.Amount{}, nil
			}
		}
	}

	return sum.SubFloor(gone).SubFloor(after[0]), nil
}

// cutOf returns a transaction's part of the amount that a holding lacks after a block, in base units. Each
// transfer to the holding bears a part by its amount, rounded down, and the largest bears the remainder. A
// token's fee is rounded for each transfer, so that a small one may bear none.
func cutOf(block chain.Block, holding chain.Holding, txHash string, missing chain.Amount) (cut chain.Amount) {
	if missing.IsZero() {
		return chain.Amount{} // also where the logs do not add up
	}

	var (
		brought []chain.Transfer
		sum     chain.Amount
	)

	for _, m := range block.Transfers {
		if m.To == holding.Address && m.AssetID == holding.AssetID && !m.Amount.IsZero() {
			brought, sum = append(brought, m), sum.Add(m.Amount)
		}
	}

	missing = chaindata.Min(missing, sum)
	remainder := missing

	for _, m := range brought {
		remainder = remainder.Sub(missing.Share(m.Amount, sum))
	}

	slices.SortStableFunc(brought, func(a, b chain.Transfer) int { return b.Amount.Cmp(a.Amount) })

	for _, m := range brought {
		part := missing.Share(m.Amount, sum)
		more := chaindata.Min(remainder, m.Amount.Sub(part))
		remainder = remainder.Sub(more)

		if m.TxHash == txHash {
			cut = cut.Add(part).Add(more)
		}
	}

	return cut
}
