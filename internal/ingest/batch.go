package ingest

// This file prepares batches of the follower: their prices, and how they can be split.

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// PreparedBatch is a batch of the follower with the prices that applying it may need. It can be split by
// transfer (Keys, Only, Without), so that one transfer that cannot be stored does not block the others.
type PreparedBatch struct {
	batch  follow.Batch
	prices prices
	// replaced are payments whose transactions were replaced by others.
	replaced []invoice.TransferKey
	// observed are the transfers of the batch, net, each key once: a block outranks the pool.
	observed []observedTransfer
	// measured are the amounts that arrived by the transfers to our addresses in blocks.
	measured measured
	// unmeasured are those of them whose balances could not be read.
	unmeasured map[arrivalKey]bool
	// reread is what blocks hold that were read again, by hash.
	reread map[string]rereadBlock
	// partial is set when the blocks of the batch do not hold all their transfers.
	partial bool
	// only, when not nil, are the keys to take in; without those to leave out.
	only, without map[invoice.TransferKey]bool
	// known are the keys of payments that the batch may confirm or take back.
	known []invoice.TransferKey
	// detectedBy is how what is new was found.
	detectedBy invoice.Detection
	// retry is the row that is being tried again.
	retry string
}

// PrepareBatch reads what ApplyTx will need, outside of any transaction: which recipients are ours
// at present, and the prices of what they received and of what may confirm. ApplyTx matches again.
func (s *Ingester) PrepareBatch(ctx context.Context, b follow.Batch) (PreparedBatch, error) {
	p := PreparedBatch{batch: b, prices: prices{}, detectedBy: invoice.ByPoll, observed: observe(b)}
	s.recall(b.Network.Slug, p.prices)

	matched, addresses, err := s.match(ctx, s.db, b.Network, p.transfers())
	if err != nil {
		return PreparedBatch{}, err
	}

	known := map[invoice.TransferKey]bool{}
	for _, m := range matched {
		known[m.key()] = true
	}

	if err := s.wantForNew(ctx, p.prices, b.Network, matched, addresses); err != nil {
		return PreparedBatch{}, err
	}

	waiting, err := s.waiting(ctx, b)
	if err != nil {
		return PreparedBatch{}, err
	}

	for _, w := range waiting {
		if a, ok := b.Network.AssetByID(w.AssetID); ok {
			p.prices.wantUSD(a, b.Network)
		}

		known[invoicestate.PaymentKey(w)] = true
	}

	p.known = slices.SortedFunc(maps.Keys(known), invoicestate.Compare)
	p.replaced = s.replaced(b, matched)
	p.measured, p.unmeasured = s.measure(ctx, b.Network, b.Blocks, matched)

	if err := s.suspectDue(ctx, b, waiting, matched); err != nil {
		return PreparedBatch{}, err
	}

	p.reread = s.rereadBlocks(ctx, b.Network.Slug, blocksOf(b, waiting))

	return p, s.fill(ctx, p.prices)
}

// blocksOf returns the hashes of the blocks in which payments may confirm with a batch: its own, and those of
// payments that wait.
func blocksOf(b follow.Batch, waiting []invoice.Payment) map[string]bool {
	hashes := map[string]bool{}
	for _, block := range b.Blocks {
		hashes[block.Hash] = true
	}

	for _, p := range waiting {
		hashes[p.Block.Hash] = true
	}

	return hashes
}

// waiting returns the payments that a batch may confirm, take back or drop.
func (s *Ingester) waiting(ctx context.Context, b follow.Batch) ([]invoice.Payment, error) {
	network := b.Network.Slug

	waiting, err := s.unconfirmed(ctx, s.db, network, topHeight(b))
	if err != nil {
		return nil, err
	}

	if len(b.Blocks) > 0 {
		unmined, err := s.db.UnminedPayments(ctx, network)
		if err != nil {
			return nil, err
		}

		waiting = append(waiting, unmined...)
	}

	if b.Rewound {
		above, err := s.db.PaymentsAbove(ctx, network, b.ForkedFrom.Height)
		if err != nil {
			return nil, err
		}

		waiting = append(waiting, above...)
	}

	return waiting, nil
}

// topHeight returns the height up to which payments may confirm with the batch.
func topHeight(b follow.Batch) uint64 {
	height := b.Head.Tip.Height
	if n := len(b.Blocks); n > 0 {
		height = max(height, b.Blocks[n-1].Height)
	}

	return height
}

// wantForNew adds to p the prices at which new payments are credited and valued.
func (s *Ingester) wantForNew(
	ctx context.Context,
	p prices,
	n chain.Network,
	matched []observedTransfer,
	addresses map[chain.Address]invoice.Address,
) error {
	var ids []string

	for _, m := range matched {
		if id := addresses[m.To].InvoiceID; id != "" {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)

	invoices := map[string]invoice.Invoice{}

	if ids = slices.Compact(ids); len(ids) > 0 {
		list, err := s.db.InvoicesByID(ctx, ids)
		if err != nil {
			return err
		}

		for _, inv := range list {
			invoices[inv.ID] = inv
		}
	}

	for _, m := range matched {
		asset, ok := n.AssetByID(m.AssetID)
		if !ok {
			continue
		}

		p.wantUSD(asset, n)

		a := addresses[m.To]

		inv, ok := invoices[a.InvoiceID]
		if !ok || inv.Kind != invoice.Fiat {
			continue
		}

		if o := inv.Option(a.OptionID); o != nil && madeAt(s.now(), m.at).After(o.QuoteExpiresAt) {
			p.want(chaindata.PriceSymbol(asset), inv.Currency)
		}
	}

	return nil
}

// madeAt returns when a payment counts as made: min(first seen, block time).
func madeAt(firstSeen time.Time, at chain.Ref) time.Time { // spec D2.2.14
	if !at.IsZero() && !at.Time.IsZero() && at.Time.Before(firstSeen) {
		return at.Time
	}

	return firstSeen
}

// String names the batch in errors.
func (p PreparedBatch) String() string {
	return fmt.Sprintf("batch of %s up to block %d", p.batch.Network.Slug, topHeight(p.batch))
}

// match returns the transfers that could be payments to us, with our addresses: one indexed query.
// Transfers of nothing, and of more than chain.MaxTransfer, are omitted.
func (s *Ingester) match(
	ctx context.Context,
	r invoice.Reader,
	n chain.Network,
	all []observedTransfer,
) ([]observedTransfer, map[chain.Address]invoice.Address, error) { // spec D3.8
	if len(all) == 0 {
		return nil, nil, nil
	}

	recipients := make(map[chain.Address]bool, len(all))
	for _, t := range all {
		if !t.Amount.IsZero() {
			recipients[t.To] = true
		}
	}

	list, err := r.MatchAddresses(ctx, n.Space(), slices.Sorted(maps.Keys(recipients)))
	if err != nil {
		return nil, nil, err
	}

	ours := make(map[chain.Address]invoice.Address, len(list))
	for _, a := range list {
		if a.Kind != invoice.ForWallet {
			ours[a.Address] = a
		}
	}

	var out []observedTransfer

	for _, t := range all {
		if _, ok := ours[t.To]; !ok || t.Amount.IsZero() {
			continue
		}

		if chain.MaxTransfer.Less(t.Amount) {
			s.log.LogAttrs(
				ctx, slog.LevelError,
				"a transfer to an address of ours is larger than any is taken in; it was ignored",
				slog.String("network", n.Slug), slog.String("tx", t.TxHash),
				slog.Any("index", t.Index), slog.String("amount", t.Amount.String()),
			)

			continue
		}

		out = append(out, t)
	}

	return out, ours, nil
}

// unconfirmed returns every payment in a block up to height that waits for its confirmation.
func (s *Ingester) unconfirmed(
	ctx context.Context,
	r invoice.Reader,
	network string,
	height uint64,
) ([]invoice.Payment, error) {
	for limit := 1000; ; limit *= 4 {
		page, err := r.UnconfirmedPayments(ctx, network, height, limit)
		if err != nil || len(page) < limit {
			return page, err
		}
	}
}

// paymentsByKey returns the payments of a network with these keys.
func paymentsByKey(
	ctx context.Context,
	r invoice.Reader,
	network string,
	keys ...invoice.TransferKey,
) ([]invoice.Payment, error) {
	hashes := make([]string, len(keys))
	wanted := make(map[invoice.TransferKey]bool, len(keys))

	for i, key := range keys {
		hashes[i], wanted[key] = key.TxHash, true
	}

	found, err := r.PaymentsByHash(ctx, network, hashes)

	return slices.DeleteFunc(
		found,
		func(p invoice.Payment) bool { return !wanted[invoicestate.PaymentKey(p)] },
	), err
}
