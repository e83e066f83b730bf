package ingest

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// attach gives a transfer to the payment that it explains and that was known from the balance
// alone: one read at the transfer's block or later. If it explains only a part, the remainder stays
// a payment without a transaction. One that a fork takes back was another branch's balance and gets no transfer.
// It reports whether there was such a payment.
func (in *intake) attach(
	ctx context.Context,
	m observedTransfer,
	to invoice.Address,
	asset chain.Asset,
) (bool, error) { // spec D3.10
	if m.at.IsZero() {
		return false, nil
	}

	a, err := in.balanceEntry(ctx, to, asset)
	if err != nil || a == nil {
		return false, err
	}

	p := in.explainedBy(a, m, to, asset)
	if p == nil {
		return false, nil
	}

	if p.Status == invoice.Confirmed && p.Amount != m.Amount {
		in.s.log.LogAttrs(
			ctx,
			slog.LevelWarn,
			"a transfer explains a part of a confirmed payment that was known from the balance; it is "+
				"counted already",
			slog.String("payment", p.ID),
			slog.String("tx", m.TxHash),
			slog.Any("index", m.Index),
		)

		return true, nil
	}

	return true, in.attachTo(a, p, m)
}

// explainedBy returns the payment without a transaction whose balance holds a transfer: the first one read at the
// transfer's block or later, as each later one holds only what came after it. It returns nil when there is none.
func (in *intake) explainedBy(
	a *entry,
	m observedTransfer,
	to invoice.Address,
	asset chain.Asset,
) (first *invoice.Payment) {
	for _, p := range a.payments { // includes the remainder of one that this batch attached
		here := p.Network == in.n.Slug && p.Address == to.Address && p.AssetID == asset.ID

		_, lost := in.lost[p.ID]
		if !here || lost || p.TxHash != "" || p.Block.IsZero() || p.Block.Height < m.at.Height {
			continue
		}

		if first == nil || p.Block.Height < first.Block.Height {
			first = p
		}
	}

	return first
}

// dropCounted drops a payment in no block whose transfer is found after all, when the balance of its address has
// been confirmed as a payment without a transaction meanwhile: that one has its money. counted reports whether
// it did.
func (in *intake) dropCounted(
	ctx context.Context,
	a *entry,
	p *invoice.Payment,
	m observedTransfer,
) (counted bool, err error) {
	if m.at.IsZero() || p.Status != invoice.Orphaned && p.Status != invoice.Detected {
		return false, nil
	}

	all, err := in.balancePayments(ctx, p.Address, p.AssetID)
	if err != nil {
		return false, err
	}

	for _, q := range all {
		if q.TxHash != "" || q.Status != invoice.Confirmed || q.Block.Height < m.at.Height ||
			q.Amount.Less(m.Amount) {
			continue
		}

		in.s.log.LogAttrs(
			ctx, slog.LevelWarn, "a transfer is found whose money a payment without a transaction has",
			slog.String("payment", q.ID), slog.String("tx", m.TxHash), slog.Any("index", m.Index),
		)

		return true, in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
			if p.Status == invoice.Orphaned {
				return invoicestate.Drop(p)
			}

			return invoicestate.Displace(p, in.now)
		})
	}

	return false, nil
}

// balancePayments returns the stored payments to an address in an asset that are not dropped, oldest first. It asks for
// those of an address once: flush writes at the end.
func (in *intake) balancePayments(
	ctx context.Context,
	address chain.Address,
	assetID string,
) ([]invoice.Payment, error) {
	if err := in.readBalances(ctx, []chain.Address{address}); err != nil {
		return nil, err
	}

	return slices.DeleteFunc(
		slices.Clone(in.stored[address]), func(p invoice.Payment) bool { return p.AssetID != assetID },
	), nil
}

// readBalances reads the payments to those of some addresses whose payments were not read yet.
func (in *intake) readBalances(ctx context.Context, addresses []chain.Address) error {
	addresses = slices.DeleteFunc(
		slices.Compact(slices.Sorted(slices.Values(addresses))),
		func(address chain.Address) bool {
			_, read := in.stored[address]
			return read
		},
	)
	if len(addresses) == 0 {
		return nil
	}

	all, err := in.tx.BalancePayments(ctx, in.n.Slug, addresses)
	if err != nil {
		return err
	}

	for _, address := range addresses {
		in.stored[address] = nil
	}

	slices.SortFunc(all, func(a, b invoice.Payment) int { return cmp.Compare(a.ID, b.ID) })

	for _, p := range all {
		in.stored[p.Address] = append(in.stored[p.Address], p)
	}

	return nil
}

// balanceEntry returns the entry of the payments without a transaction at an address, or nil.
func (in *intake) balanceEntry(ctx context.Context, to invoice.Address, asset chain.Asset) (*entry, error) {
	candidates, err := in.balancePayments(ctx, to.Address, asset.ID)
	if err != nil {
		return nil, err
	}

	var a *entry

	for _, candidate := range candidates {
		if candidate.TxHash != "" {
			continue
		}

		if a, _, err = in.payment(ctx, candidate); err != nil {
			return nil, err
		}
	}

	return a, nil
}

// attachTo attaches the transfer to a payment, and adds a payment for the remainder of its amount.
func (in *intake) attachTo(a *entry, p *invoice.Payment, m observedTransfer) error {
	remainder := *p

	err := in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		types, err := invoicestate.Attach(p, m.Transfer, m.at)
		if slices.Contains(a.fresh, p.ID) {
			types = nil // its detection is not published yet
		}

		return types, err
	})
	if err != nil {
		return err
	}

	in.seen[p.ID] = true

	if remainder.Amount.Less(m.Amount) || remainder.Amount == m.Amount {
		return nil
	}

	remainder.ID, remainder.Version, remainder.Sequence = in.s.ids.Next(), 0, 0
	remainder.Amount = remainder.Amount.Sub(m.Amount)

	remainder.Credit = decimal.Decimal{}
	if !remainder.Rate.IsZero() {
		remainder.Credit = invoicestate.CreditOf(remainder.Amount, remainder.Decimals, remainder.Rate)
	}

	in.add(a, remainder)

	return nil
}
