package ingest

// This file keeps transfers that are too small to be payments (decisions 11, "Dust").

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// maxDustPayments is how many transfers become payments at one address in one transaction, so that a flood
// of them delays nobody.
const maxDustPayments = 100

// recordDust stores the batch's transfers below chain.Asset.Dust. They become payments when their sum
// reaches it, or completes an open or underpaid invoice.
func (in *intake) recordDust(ctx context.Context) error {
	if !slices.ContainsFunc(in.n.Assets, func(a chain.Asset) bool { return !a.Dust.IsZero() }) {
		return nil
	}

	known, lost, err := in.knownDust(ctx)
	if err != nil {
		return err
	}

	sums, err := in.dustSums(ctx, lost)
	if err != nil {
		return err
	}

	before := maps.Clone(sums)

	// What a fork took is gone, unless the batch shows it again.
	for _, d := range lost {
		if err := in.removeDust(ctx, sums, d); err != nil {
			return err
		}
	}

	for _, m := range in.dust {
		if err := in.addDust(ctx, sums, known, m); err != nil {
			return err
		}
	}

	for _, h := range slices.SortedFunc(maps.Keys(sums), compareHoldings) {
		if err := in.promoteDust(ctx, sums, h); err != nil {
			return err
		}

		if d := sums[h]; d != before[h] {
			if err := in.tx.PutDust(ctx, &d); err != nil {
				return err
			}
		}
	}

	return nil
}

func compareHoldings(a, b chain.Holding) int {
	return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.AssetID, b.AssetID))
}

// knownDust returns the stored transfers that the batch shows again, by key, and those that a fork took.
func (in *intake) knownDust(
	ctx context.Context,
) (known map[invoice.TransferKey]invoice.DustTransfer, lost []invoice.DustTransfer, err error) {
	known = map[invoice.TransferKey]invoice.DustTransfer{}

	hashes := make([]string, len(in.dust))
	for i, m := range in.dust {
		hashes[i] = m.TxHash
	}

	stored, err := in.tx.DustByHash(ctx, in.n.Slug, hashes)
	if err != nil {
		return nil, nil, err
	}

	if in.p.batch.Rewound {
		if lost, err = in.tx.DustAbove(ctx, in.n.Slug, in.p.batch.ForkedFrom.Height); err != nil {
			return nil, nil, err
		}
	}

	gone := map[invoice.TransferKey]bool{}
	for _, d := range lost {
		gone[invoicestate.DustKey(d)] = true
	}

	for _, d := range stored {
		if !gone[invoicestate.DustKey(d)] {
			known[invoicestate.DustKey(d)] = d
		}
	}

	return known, lost, nil
}

// dustSums returns the sums at every address that the batch pays or that a fork took dust from.
func (in *intake) dustSums(
	ctx context.Context,
	lost []invoice.DustTransfer,
) (map[chain.Holding]invoice.Dust, error) {
	addresses := map[chain.Address]bool{}
	for address := range in.paid {
		addresses[address] = true
	}

	for _, d := range lost {
		addresses[d.Address] = true
	}

	stored, err := in.tx.DustOf(ctx, in.n.Slug, slices.Sorted(maps.Keys(addresses)))
	if err != nil {
		return nil, err
	}

	sums := make(map[chain.Holding]invoice.Dust, len(stored))
	for _, d := range stored {
		sums[chain.Holding{Address: d.Address, AssetID: d.AssetID}] = d
	}

	return sums, nil
}

// addDust stores a transfer that is not stored yet.
func (in *intake) addDust(
	ctx context.Context,
	sums map[chain.Holding]invoice.Dust,
	known map[invoice.TransferKey]invoice.DustTransfer,
	m observedTransfer,
) error {
	if _, stored := known[m.key()]; stored {
		return nil
	}

	h := chain.Holding{Address: m.To, AssetID: m.AssetID}
	sum := sums[h]
	sum.Network, sum.Address, sum.AssetID = in.n.Slug, m.To, m.AssetID
	sum.Amount, sum.Count = sum.Amount.Add(m.Amount), sum.Count+1
	sums[h] = sum

	d := invoice.DustTransfer{
		Network:     in.n.Slug,
		TxHash:      m.TxHash,
		TxIndex:     m.Index,
		Address:     m.To,
		AssetID:     m.AssetID,
		FromAddress: m.From,
		Amount:      m.Amount,
		Block:       m.at,
	}
	known[m.key()] = d

	return in.tx.PutDustTransfer(ctx, d)
}

// removeDust deletes a transfer.
func (in *intake) removeDust(
	ctx context.Context,
	sums map[chain.Holding]invoice.Dust,
	d invoice.DustTransfer,
) error {
	h := chain.Holding{Address: d.Address, AssetID: d.AssetID}
	sum := sums[h]
	sum.Amount, sum.Count = sum.Amount.SubFloor(d.Amount), sum.Count-1
	sums[h] = sum

	return in.tx.DeleteDustTransfer(ctx, in.n.Slug, invoicestate.DustKey(d))
}

// promoteDust makes payments of the transfers to an address, oldest first, when there is enough of them.
func (in *intake) promoteDust(
	ctx context.Context,
	sums map[chain.Holding]invoice.Dust,
	h chain.Holding,
) error { // spec D11.5
	asset, enabled := in.n.AssetByID(h.AssetID)

	to, paid := in.paid[h.Address]
	if !enabled || !paid || sums[h].Count == 0 {
		return nil
	}

	if sums[h].Amount.Less(asset.Dust) {
		completes, err := in.completes(ctx, to, asset, sums[h].Amount)
		if err != nil || !completes {
			return err
		}
	}

	rows, err := in.tx.DustTransfers(ctx, in.n.Slug, h.Address, h.AssetID, maxDustPayments)
	if err != nil {
		return err
	}

	for _, d := range rows {
		if err := in.removeDust(ctx, sums, d); err != nil {
			return err
		}

		m := observedTransfer{
			Transfer: chain.Transfer{
				TxHash:  d.TxHash,
				Index:   d.TxIndex,
				From:    d.FromAddress,
				To:      d.Address,
				AssetID: d.AssetID,
				Amount:  d.Amount,
			},
			at: d.Block,
		}
		if err := in.recordNew(ctx, m, to, asset); err != nil {
			return err
		}
	}

	return nil
}

// completes reports whether an amount in base units, beside the payments so far, completes the open or
// underpaid invoice of an address.
func (in *intake) completes(
	ctx context.Context,
	to invoice.Address,
	asset chain.Asset,
	amount chain.Amount,
) (bool, error) {
	if to.InvoiceID == "" {
		return false, nil
	}

	a, err := in.invoiceEntry(ctx, to.InvoiceID)
	if err != nil || a.invoice.Status != invoice.Open && a.invoice.Status != invoice.Underpaid {
		return false, err
	}

	p := invoice.Payment{
		Status:     invoice.Detected,
		Network:    in.n.Slug,
		AssetID:    asset.ID,
		Decimals:   asset.Decimals,
		Amount:     amount,
		DetectedAt: in.now,
	}
	if err := in.credit(a.invoice, &p, to.OptionID, asset); err != nil {
		return false, err
	}

	without, with := *a.invoice, *a.invoice
	without.Options, with.Options = slices.Clone(without.Options), slices.Clone(with.Options)
	without.Flags, with.Flags = slices.Clone(without.Flags), slices.Clone(with.Flags)

	without.Recompute(a.values(), in.now)
	with.Recompute(append(a.values(), p), in.now)

	return without.Status != invoice.Pending && with.Status == invoice.Pending, nil
}

// dustOf returns the sums, by asset and in base units, of the dust that is in blocks up to the check's.
func (c *balanceCheck) dustOf(
	ctx context.Context,
	r invoice.Reader,
	address invoice.Address,
) (map[string]chain.Amount, error) {
	sums, err := r.DustOf(ctx, c.network.Slug, []chain.Address{address.Address})
	if err != nil || len(sums) == 0 {
		return nil, err
	}

	out := map[string]chain.Amount{}
	for _, d := range sums {
		out[d.AssetID] = d.Amount
	}

	above, err := r.DustAbove(ctx, c.network.Slug, c.at.Height)
	if err != nil {
		return nil, err
	}

	for _, d := range above {
		if d.Address == address.Address {
			out[d.AssetID] = out[d.AssetID].SubFloor(d.Amount)
		}
	}

	return out, nil
}
