package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
)

// This file walks every address of ours: what it holds without a record, and what left it without one.

// addresses adds the dust of every address to the ledger, reports transactions of theirs that are not on
// record, and notes the holdings to compare: all assets of every address that was shown to payers.
func (a *auditor) addresses(ctx context.Context) error {
	after := chain.Address("")
	for {
		page, err := a.config.Store.AddressesAfter(ctx, a.network.Space(), after, auditPage)
		if err != nil || len(page) == 0 {
			return err
		}

		if err := a.dust(ctx, page); err != nil {
			return err
		}

		for _, address := range page {
			if err := a.outgoing(ctx, address.Address); err != nil {
				return err
			}
		}

		if len(page) < auditPage {
			return nil
		}

		after = page[len(page)-1].Address
	}
}

// dust adds the dust at addresses to the ledger, as of the block that is compared.
func (a *auditor) dust(ctx context.Context, page []invoice.Address) error {
	addresses := make([]chain.Address, len(page))
	for i, address := range page {
		addresses[i] = address.Address
	}

	sums, err := a.config.Store.DustOf(ctx, a.network.Slug, addresses)
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

// outgoing reports what blocks took from an address by transactions that are neither on record nor
// acknowledged by a person.
func (a *auditor) outgoing(ctx context.Context, address chain.Address) error {
	from := uint64(0)

	for {
		rows, err := a.config.Store.OutgoingOf(ctx, a.network.Slug, address, from, auditPage)
		if err != nil || len(rows) == 0 {
			return err
		}

		hashes := make([]string, len(rows))
		for i, row := range rows {
			hashes[i] = row.TxHash
		}

		own, err := a.config.Store.OwnTransactions(ctx, a.network.Slug, hashes)
		if err != nil {
			return err
		}

		for _, row := range rows {
			if _, ours := own[row.TxHash]; !ours {
				a.foreign(row)
			}
		}

		// Rows of one block may be on two pages: the second one begins with that block again.
		last := rows[len(rows)-1].Block.Height
		if len(rows) < auditPage {
			return nil
		}

		from = max(last, from+1)
	}
}

// foreign reports a transaction that is not on record, once, unless it was acknowledged.
func (a *auditor) foreign(row wallet.Outgoing) {
	if a.named[row.Key] {
		return
	}

	a.named[row.Key] = true
	if row.Acknowledged != "" || row.Block.Height > a.out.At.Height {
		return
	}

	a.report(audit.Difference{
		Kind:    audit.ForeignTransaction,
		Address: row.Address,
		Message: fmt.Sprintf(
			"transaction %s in block %d took from %s and is not on record: somebody else has its key",
			row.TxHash, row.Block.Height, row.Address,
		),
		Records: append(
			[]audit.Record{{Object: "transaction", TxHash: row.TxHash, Height: row.Block.Height}},
			a.ledger.recordsOf(row.Address)...,
		),
	})
}

// unrecorded compares the addresses that no record is about, page by page: whatever is there is unexplained.
func (a *auditor) unrecorded(
	ctx context.Context,
	read func(ctx context.Context, holdings []chain.Holding) ([]chain.Amount, error),
) error {
	after := chain.Address("")
	for {
		page, err := a.config.Store.AddressesAfter(ctx, a.network.Space(), after, auditPage)
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

		for part := range slices.Chunk(holdings, auditHoldings) {
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
