package auditor

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file walks every address of ours for amounts without a record.

// addresses adds the dust of every address to the ledger.
func (a *auditor) addresses(ctx context.Context) error {
	after := chain.Address("")
	for {
		page, err := a.store.AddressesAfter(ctx, a.network.Space(), after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}

		if err := a.dust(ctx, page); err != nil {
			return err
		}

		if len(page) < pageSize {
			return nil
		}

		after = page[len(page)-1].Address
	}
}

// dust adds the dust at addresses to the ledger, as of the compared block.
func (a *auditor) dust(ctx context.Context, page []invoice.Address) error {
	addresses := make([]chain.Address, len(page))
	for i, address := range page {
		addresses[i] = address.Address
	}

	sums, err := a.store.DustOf(ctx, a.network.Slug, addresses)
	if err != nil {
		return err
	}

	for _, d := range sums {
		h := chain.Holding{Address: d.Address, AssetID: d.AssetID}
		a.ledger.balanceOf(h.Address, h.AssetID).add(
			audit.Record{Object: "dust", In: d.Amount.SubFloor(a.dustAbove[h])},
		)
	}

	return nil
}

// unexplained compares the addresses without records, page by page: every amount there is unexplained.
func (a *auditor) unexplained(
	ctx context.Context,
	read func(ctx context.Context, holdings []chain.Holding) ([]chain.Amount, error),
) error {
	after := chain.Address("")
	for {
		page, err := a.store.AddressesAfter(ctx, a.network.Space(), after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}

		var holdings []chain.Holding

		for _, address := range page {
			for _, asset := range a.network.Assets {
				h := chain.Holding{Address: address.Address, AssetID: asset.ID}
				if a.ledger.balances[h] == nil && address.Kind != invoice.ForWallet {
					holdings = append(holdings, h)
				}
			}
		}

		for part := range slices.Chunk(holdings, maxHoldings) {
			amounts, err := read(ctx, part)
			if err != nil {
				return err
			}

			for i, h := range part {
				if !amounts[i].IsZero() {
					a.compare(h, amounts[i], chain.Amount{})
				}
			}
		}

		a.out.Holdings += len(holdings)
		after = page[len(page)-1].Address
	}
}
