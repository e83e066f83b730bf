package ingest

// This file ends an intake: payments in no block, and payments deep enough in one.

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// pool follows the payments that wait in no block: one whose transaction was replaced is dropped, one whose
// transaction the pool does not have any more is lost.
func (in *intake) pool(ctx context.Context) error {
	if err := in.dropReplaced(ctx); err != nil || !in.p.batch.PoolRead {
		return err
	}

	for _, stored := range in.unmined {
		if stored.Status != invoice.Detected || stored.Simulated || stored.TxHash == "" ||
			in.seen[stored.ID] ||
			!in.p.takes(invoicestate.PaymentKey(stored)) {
			continue
		}

		a, p, err := in.payment(ctx, stored)
		if err != nil {
			return err
		}

		if p.Status != invoice.Detected || !p.Block.IsZero() {
			continue // this batch found it, or dropped it
		}

		if err := in.move(
			a,
			p,
			func(p *invoice.Payment) ([]event.Type, error) { return nil, invoicestate.MarkLost(p, in.now) },
		); err != nil {
			return err
		}
	}

	return nil
}

// dropReplaced drops the payments whose transactions were replaced, whether they wait in the pool
// or a fork took them out of the chain.
func (in *intake) dropReplaced(ctx context.Context) error {
	var keys []invoice.TransferKey

	for _, key := range in.p.replaced {
		if in.p.takes(key) {
			keys = append(keys, key)
		}
	}

	if len(keys) == 0 {
		return nil
	}

	stored, err := paymentsByKey(ctx, in.tx, in.n.Slug, keys...)
	if err != nil {
		return err
	}

	for _, q := range stored {
		a, p, err := in.payment(ctx, q)
		if err != nil {
			return err
		}

		if p.Status != invoice.Orphaned && (p.Status != invoice.Detected || !p.Block.IsZero()) {
			continue // it is in the chain, whatever a pool says
		}

		if err := in.move(
			a, p, func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Drop(p) },
		); err != nil {
			return err
		}
	}

	return nil
}

// confirmations confirms payments that are deep enough. A payment whose block is known not to be canonical,
// because the fork was not applied to it, is orphaned instead.
func (in *intake) confirmations(ctx context.Context) error {
	queued, err := in.openDue(ctx)
	if err != nil {
		return err
	}

	var unread error

	for _, id := range slices.Sorted(maps.Keys(in.entries)) {
		a := in.entries[id]
		if err := in.setRequired(a); err != nil {
			return err
		}

		for _, p := range a.payments {
			_, unmeasured := in.unmeasured[invoicestate.PaymentKey(*p)]
			if queued[invoicestate.PaymentKey(*p)] || unmeasured || !in.waitsInBlock(p) {
				continue
			}

			err := in.confirmOrOrphan(a, p)
			if errors.Is(err, invoice.ErrUnprepared) {
				unread = err // all blocks are named before the batch is prepared again
				continue
			}

			if err != nil {
				return err
			}
		}

		in.notifyNew(a)
	}

	return unread
}

// openDue opens the entries of payments that this batch may confirm, and returns the transfers that wait in
// retry rows.
func (in *intake) openDue(ctx context.Context) (queued map[invoice.TransferKey]bool, err error) {
	waiting, err := in.s.unconfirmed(ctx, in.tx, in.n.Slug, in.cursor.At.Height)
	if err != nil {
		return nil, err
	}

	if queued, err = in.retries(ctx, len(waiting) > 0); err != nil {
		return nil, err
	}

	waiting = slices.DeleteFunc(waiting, func(p invoice.Payment) bool {
		key := invoicestate.PaymentKey(p)

		return p.Simulated || !in.p.takes(key) || queued[key] || !in.near(p.Block) && !in.foreign(p.Block)
	})

	if err := in.openAll(ctx, invoicesOf(waiting)); err != nil {
		return nil, err
	}

	for _, stored := range waiting {
		if _, _, err := in.payment(ctx, stored); err != nil {
			return nil, err
		}
	}

	return queued, nil
}

// waitsInBlock reports whether the batch may confirm a payment.
func (in *intake) waitsInBlock(p *invoice.Payment) bool {
	return p.Network == in.n.Slug && p.Status == invoice.Detected && !p.Block.IsZero() &&
		!p.Simulated && in.p.takes(invoicestate.PaymentKey(*p))
}

// confirmOrOrphan confirms a payment that is deep enough, or orphans one whose block left the chain.
func (in *intake) confirmOrOrphan(a *entry, p *invoice.Payment) error { // spec D3.1
	switch {
	case in.foreign(p.Block):
		return in.move(
			a,
			p,
			func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Orphan(p, in.now) },
		)
	case in.final(p.Required, p.Block):
		return in.confirmRead(a, p)
	}

	return nil
}

// near reports whether a block is deep enough for the lowest confirmation count of the network.
func (in *intake) near(block chain.Ref) bool {
	least := in.n.Confirmations
	for _, tier := range in.n.Tiers {
		least = min(least, tier.Confirmations)
	}

	return in.final(least, block)
}

// foreign reports whether a block is known not to be in the chain.
func (in *intake) foreign(block chain.Ref) bool {
	hash, known := in.trusted[block.Height]
	return known && hash != block.Hash
}

// final reports whether a block is final by the network's rule; see scanstate.FinalHeight.
func (in *intake) final(required uint64, block chain.Ref) bool {
	return scanstate.IsFinal(in.cursor, in.n, required, block)
}

// retries returns the transfers that wait in retry rows: batches skip them.
func (in *intake) retries(ctx context.Context, any bool) (map[invoice.TransferKey]bool, error) {
	if !any {
		return nil, nil
	}

	rows, err := AllRetries(ctx, in.tx, in.n.Slug, in.now)
	if err != nil {
		return nil, err
	}

	queued := map[invoice.TransferKey]bool{}

	for _, r := range rows {
		if r.ID != in.p.retry {
			queued[invoicestate.KeyOf(r.Transfer)] = true
		}
	}

	return queued, nil
}
