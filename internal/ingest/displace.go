package ingest

// This file drops payments whose transactions stand in blocks that do not hold them.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// displace drops the payments whose transactions stand in blocks of the batch that do not hold them: they
// failed there, or pay somebody or something else.
func (in *intake) displace(ctx context.Context, lost map[string]invoice.Payment) error {
	candidates := slices.Clone(in.unmined)
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		candidates = append(candidates, lost[id])
	}

	if len(candidates) == 0 {
		return nil // nothing asks what the blocks hold
	}

	mined := in.minedHashes()

	for _, stored := range candidates {
		failed, found := mined[stored.TxHash]
		if !found || stored.TxIndex >= chaindata.InternalIndex && !failed || stored.Simulated ||
			in.seen[stored.ID] || !in.p.takes(invoicestate.PaymentKey(stored)) {
			continue // blocks do not show the internal transfers of a transaction
		}

		a, p, err := in.payment(ctx, stored)
		if err != nil {
			return err
		}

		delete(lost, p.ID)

		if err := in.move(
			a, p, func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Displace(p, in.now) },
		); err != nil {
			return err
		}
	}

	return nil
}

// minedHashes returns the transactions that the blocks of the batch are known to hold with all that they
// moved, and whether each failed.
func (in *intake) minedHashes() map[string]bool {
	mined := map[string]bool{}
	if in.p.partial {
		return mined
	}

	driver, err := in.s.registry.Driver(in.n.Slug)
	_, whole := driver.(chain.BlockScanner)

	for _, block := range in.p.batch.Blocks {
		for _, t := range block.Transfers {
			if whole && err == nil { // by address, a block shows what was asked for
				mined[t.TxHash] = false
			}
		}

		for _, spend := range block.Spent {
			mined[spend.By] = spend.Failed
		}

		for _, unread := range block.Unread {
			delete(mined, unread.TxHash)
		}
	}

	return mined
}
