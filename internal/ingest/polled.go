package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// AddressesOf returns a function that lists a network's addresses, for networks that are polled by address:
// those of options made at or after a time, every deposit address, and every master wallet, whose transactions
// are the proof of what left it.
//
// Networks that share an address space (EVM) are read by blocks instead, where every address of the space is matched
// whatever network it was made for. Only the balance watch is for the network that an address was made for.
func (s *Ingester) AddressesOf(
	network string,
) func(ctx context.Context, since time.Time) ([]chain.Address, error) {
	return func(ctx context.Context, since time.Time) ([]chain.Address, error) {
		var listed []chain.Address

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

			for _, row := range rows {
				listed = append(listed, row.Address)
			}
		}

		return listed, nil
	}
}
