package ingest

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

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
