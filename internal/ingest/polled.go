package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// clockMargin is how much earlier than our clock a block may be timed.
const clockMargin = 10 * time.Minute

// AddressesOf returns a function that lists a network's addresses with when they were made, for networks that are
// polled by address: those of options made at or after a time, every deposit address, and every master wallet, whose
// transactions are the proof of what left it.
//
// Networks that share an address space (EVM) are read by blocks instead, where every address of the space is matched
// whatever network it was made for. Only the balance watch is for the network that an address was made for.
func (s *Ingester) AddressesOf(
	network string,
) func(ctx context.Context, since time.Time) ([]chain.AddressCursor, error) {
	return func(ctx context.Context, since time.Time) ([]chain.AddressCursor, error) {
		rows, err := s.addressesSince(ctx, network, since)
		listed := make([]chain.AddressCursor, len(rows))

		for i, row := range rows {
			listed[i] = chain.AddressCursor{Address: row.Address, Since: row.CreatedAt.Add(-clockMargin)}
		}

		return listed, err
	}
}

// FirstAddress returns when the oldest address of a network was made, zero when it has none.
func (s *Ingester) FirstAddress(ctx context.Context, network string) (first time.Time, err error) {
	rows, err := s.addressesSince(ctx, network, time.Time{})

	for _, row := range rows {
		if first.IsZero() || row.CreatedAt.Before(first) {
			first = row.CreatedAt
		}
	}

	return first, err
}

// addressesSince returns the addresses of a network: those of options made at or after a time, and all others.
func (s *Ingester) addressesSince(
	ctx context.Context,
	network string,
	since time.Time,
) ([]invoice.Address, error) {
	var all []invoice.Address

	for _, of := range []struct {
		kind  invoice.AddressKind
		since time.Time
	}{
		{invoice.ForOption, since},
		{invoice.ForDeposit, time.Time{}},
		{invoice.ForWallet, time.Time{}},
	} {
		rows, err := s.db.AddressesSince(ctx, network, of.kind, of.since)
		if err != nil {
			return nil, err
		}

		all = append(all, rows...)
	}

	return all, nil
}
