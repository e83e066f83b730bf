package kv

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	addresses = newTable(
		13, "address",
		func(a *invoice.Address) key { return keyOf(a.Space, a.Address) },
		nil,
	)
	addressesByDue = addresses.ordered(1, func(a *invoice.Address) key {
		return when(!a.NextCheck.IsZero(), a.Network, a.Urgent, a.NextCheck)
	})
	addressesMade = addresses.ordered(2, func(a *invoice.Address) key {
		return keyOf(a.Network, string(a.Kind), a.CreatedAt)
	})
)

func (r *reader) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	wanted []chain.Address,
) ([]invoice.Address, error) {
	keys := make([]key, len(wanted))
	for i, a := range wanted {
		keys[i] = addresses.at(space, a)
	}

	return several(ctx, r, addresses, keys)
}

func (r *reader) AddressesSince(
	ctx context.Context,
	network string,
	kind invoice.AddressKind,
	from time.Time,
) ([]invoice.Address, error) {
	newest := window[invoice.Address]{descending: true, from: since(from)}

	return list(ctx, r, addressesMade, keyOf(network, string(kind)), newest)
}

func (r *reader) AddressesAfter(
	ctx context.Context,
	space chain.Space,
	last chain.Address,
	limit int,
) ([]invoice.Address, error) {
	w := window[invoice.Address]{limit: limit}
	if last != "" {
		w.from = upTo(last)
	}

	return list(ctx, r, addresses.primary(), keyOf(space), w)
}

func (r *reader) DueAddresses(
	ctx context.Context,
	network string,
	urgent bool,
	now time.Time,
	limit int,
) ([]invoice.Address, error) {
	return list(
		ctx, r, addressesByDue, keyOf(network, urgent),
		window[invoice.Address]{to: upTo(now), limit: limit},
	)
}

func (tx *transaction) PutAddress(ctx context.Context, a invoice.Address) error {
	return add(ctx, tx, addresses, &a)
}

func (tx *transaction) UpdateAddresses(ctx context.Context, all ...invoice.Address) error {
	for i := range all {
		if err := put(ctx, tx, addresses, &all[i]); err != nil {
			return err
		}
	}

	return nil
}
