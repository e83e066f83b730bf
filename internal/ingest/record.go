package ingest

import (
	"context"
	"log/slog"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// record records one transfer: as the payment that it is known as, or as a new one. The pool adds none
// beside a payment in a block that is the same transfer of the same transaction.
func (in *intake) record(
	ctx context.Context,
	m observedTransfer,
	known []invoice.Payment,
	to invoice.Address,
	asset chain.Asset,
	lost map[string]invoice.Payment,
) error {
	for _, p := range known {
		if invoicestate.PaymentKey(p) == m.key() {
			return in.recordKnown(ctx, p, m, lost)
		}
	}

	for _, p := range known {
		if m.at.IsZero() && p.TxHash == m.TxHash && p.TxIndex == m.Index && p.Status != invoice.Dropped {
			return nil
		}
	}

	if m.Amount.Less(asset.Dust) {
		if !m.at.IsZero() { // what waits in the pool is published to nobody
			in.dust = append(in.dust, m)
		}

		return nil
	}

	return in.recordNew(ctx, m, to, asset)
}

// recordKnown brings a known payment in line with the block that its transaction is in now. A payment that a
// fork moved to another block keeps its id and has no event, unless it had been confirmed and is not deep
// enough there, or another amount arrived there.
func (in *intake) recordKnown(
	ctx context.Context,
	stored invoice.Payment,
	m observedTransfer,
	lost map[string]invoice.Payment,
) error {
	a, p, err := in.payment(ctx, stored)
	if err != nil {
		return err
	}

	in.seen[p.ID] = true

	_, moved := lost[p.ID]
	if !moved && p.Block.IsZero() {
		if counted, err := in.dropCounted(ctx, a, p, m); counted || err != nil {
			return err
		}
	}

	delete(lost, p.ID)

	_, unmeasured := in.unmeasured[m.key()]
	differs := p.Amount != m.Amount || unmeasured

	switch {
	case moved && p.Status == invoice.Confirmed && !differs && !m.at.IsZero() && in.final(p.Required, m.at):
		return in.move(
			a,
			p,
			func(p *invoice.Payment) ([]event.Type, error) { return nil, invoicestate.SetBlock(p, m.at) },
		)
	case moved && p.Status == invoice.Confirmed:
		if err := in.move(
			a, p, func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Orphan(p, in.now) },
		); err != nil {
			return err
		}
	case p.Status == invoice.Confirmed:
		in.reportContradiction(ctx, p, m)
		return nil // in its block, or read again in a back-fill
	}

	return in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		switch {
		case moved && m.at.IsZero(): // detected in a block that is gone, and back in the pool
			p.Block = chain.Ref{}
		case m.at.IsZero() && !p.Block.IsZero(): // a pool that is older than the block
			return invoicestate.Observe(p, m.at)
		}

		corrected, err := invoicestate.Correct(p, m.Transfer)
		if err != nil {
			return nil, err
		}

		detected, err := invoicestate.Observe(p, m.at)

		return append(corrected, detected...), err
	})
}

// reportContradiction logs that the block of a confirmed payment shows another amount than it was read with.
func (in *intake) reportContradiction(ctx context.Context, p *invoice.Payment, m observedTransfer) {
	if p.Amount == m.Amount || m.at.Hash != p.Block.Hash {
		return
	}

	in.s.log.LogAttrs(
		ctx, slog.LevelError, "the block of a confirmed payment was read again and shows another amount",
		slog.String("payment", p.ID), slog.String("network", p.Network), slog.String("tx", p.TxHash),
		slog.String("amount", p.Amount.String()), slog.String("shown", m.Amount.String()),
	)
}

// recordNew adds a payment that was not known.
func (in *intake) recordNew(
	ctx context.Context,
	m observedTransfer,
	to invoice.Address,
	asset chain.Asset,
) error {
	attached, err := in.attach(ctx, m, to, asset)
	if err != nil || attached {
		return err
	}

	p := invoice.Payment{
		ID:               in.s.ids.Next(),
		Owner:            to.Owner,
		Status:           invoice.Detected,
		InvoiceID:        to.InvoiceID,
		DepositAddressID: to.DepositAddressID,
		Network:          in.n.Slug,
		Asset:            asset.Symbol,
		AssetID:          asset.ID,
		Contract:         asset.Contract,
		Decimals:         asset.Decimals,
		Address:          to.Address,
		Key:              to.Key,
		FromAddress:      m.From,
		TxHash:           m.TxHash,
		TxIndex:          m.Index,
		Amount:           m.Amount,
		Block:            m.at,
		Required:         in.n.Confirmations,
		DetectedBy:       in.p.detectedBy,
		DetectedAt:       in.now,
	}
	if p.DetectedBy == invoice.ByHint && p.Block.IsZero() {
		p.DueAt = in.now.Add(postponed) // no scan may ever show it: Step looks for its block
	}

	if _, _, err = in.enter(ctx, p, to.OptionID, asset); err != nil {
		return err
	}

	return checkSoon(ctx, in.tx, in.now, false, to)
}
