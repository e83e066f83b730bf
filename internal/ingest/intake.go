package ingest

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// ApplyTx applies a batch: transfers to our addresses become payments, payments follow their
// transactions through the chain, and invoices follow their payments. cursor is the network's as
// Batch.Advance returned it. The same batch twice changes nothing. It fails with invoice.ErrUnprepared when
// a price was not prepared.
func (s *Ingester) ApplyTx(ctx context.Context, tx invoice.Tx, p PreparedBatch, cursor scan.Cursor) error {
	in := &intake{
		ledger:  s.newLedger(tx, p.batch.Network.Slug, p.prices),
		p:       p,
		n:       p.batch.Network,
		cursor:  cursor,
		trusted: map[uint64]string{},
		seen:    map[string]bool{},
	}

	return in.run(ctx)
}

// intake is one run of ApplyTx.
type intake struct {
	*ledger
	p      PreparedBatch
	n      chain.Network
	cursor scan.Cursor
	// trusted are the hashes of canonical blocks by height, as far as cursor and batch show.
	trusted map[uint64]string
	// seen are the ids of payments that the batch shows.
	seen map[string]bool
}

// run applies the batch and writes what changed.
func (in *intake) run(ctx context.Context) error {
	for _, ref := range append([]chain.Ref{in.cursor.At}, in.cursor.Recent...) {
		in.trusted[ref.Height] = ref.Hash
	}

	for _, b := range in.p.batch.Blocks {
		in.trusted[b.Height] = b.Hash
	}

	lost, err := in.lostPayments(ctx)
	if err != nil {
		return err
	}

	if err := in.recordTransfers(ctx, lost); err != nil {
		return err
	}

	for _, p := range lost {
		if err := in.orphan(ctx, p); err != nil {
			return err
		}
	}

	if err := in.pool(ctx); err != nil {
		return err
	}

	if err := in.confirmations(ctx); err != nil {
		return err
	}

	return in.flush(ctx)
}

// lostPayments returns the payments whose blocks a fork took out of the chain, by id.
func (in *intake) lostPayments(ctx context.Context) (map[string]invoice.Payment, error) {
	if !in.p.batch.Rewound {
		return nil, nil
	}

	above, err := in.tx.PaymentsAbove(ctx, in.n.Slug, in.p.batch.ForkedFrom.Height)
	if err != nil {
		return nil, err
	}

	lost := map[string]invoice.Payment{}

	for _, p := range above {
		canonical := false
		for _, b := range in.p.batch.Blocks {
			canonical = canonical || b.Hash == p.Block.Hash
		}

		if !canonical && !p.Simulated && in.p.takes(p.TransferKey()) {
			lost[p.ID] = p
		}
	}

	return lost, nil
}

// recordTransfers records every transfer of the batch that is a payment to us.
func (in *intake) recordTransfers(ctx context.Context, lost map[string]invoice.Payment) error {
	matched, addresses, err := in.s.match(ctx, in.tx, in.n, in.p.transfers())
	if err != nil || len(matched) == 0 {
		return err
	}

	var (
		hashes []string
		keys   []invoice.TransferKey
	)
	for _, m := range matched {
		hashes, keys = append(hashes, m.TxHash), append(keys, m.key())
	}

	slices.Sort(hashes)

	own, err := in.tx.OwnTransactions(ctx, in.n.Slug, slices.Compact(hashes))
	if err != nil {
		return err
	}

	stored, err := paymentsByKey(ctx, in.tx, in.n.Slug, keys...)
	if err != nil {
		return err
	}

	known := map[invoice.TransferKey]invoice.Payment{}
	for _, p := range stored {
		known[p.TransferKey()] = p
	}

	for _, m := range matched {
		asset, enabled := in.n.AssetByID(m.AssetID)

		kind, ours := own[m.TxHash]
		if !enabled || ours && kind != wallet.Payout {
			continue // an asset that is not enabled, or our own top-up, fee, sweep or cancellation
		}

		if p, ok := known[m.key()]; ok {
			if err := in.recordKnown(ctx, p, m, lost); err != nil {
				return err
			}

			continue
		}

		if err := in.recordNew(ctx, m, addresses[m.To], asset); err != nil {
			return err
		}
	}

	return nil
}

// recordKnown moves a known payment to the block its transaction is in now. A payment that a fork moved to
// another block keeps its id and has no event, unless it had been confirmed and is not deep enough there.
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
	if _, gone := lost[p.ID]; gone {
		delete(lost, p.ID)

		switch {
		case p.Status == invoice.Confirmed && !m.at.IsZero() && in.final(p.Required, m.at):
			return in.move(
				a,
				p,
				func(p *invoice.Payment) ([]event.Type, error) { return nil, p.SetBlock(m.at) },
			)
		case p.Status == invoice.Confirmed:
			if err := in.move(
				a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.Orphan(in.now) },
			); err != nil {
				return err
			}
		case m.at.IsZero(): // detected in a block that is gone, and back in the pool
			return in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
				p.Block = chain.Ref{}
				return p.Observe(m.at)
			})
		}
	}

	if p.Status == invoice.Confirmed {
		return nil // in its block, or read again in a back-fill
	}

	return in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.Observe(m.at) })
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

	_, _, err = in.enter(ctx, p, to.OptionID, asset)

	return err
}

// orphan takes back a payment whose block left the chain.
func (in *intake) orphan(ctx context.Context, stored invoice.Payment) error {
	a, p, err := in.payment(ctx, stored)
	if err != nil {
		return err
	}

	return in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.Orphan(in.now) })
}
