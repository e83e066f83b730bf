package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// AddressesOf returns a function that lists a network's addresses, for networks that are polled by address:
// those of options made at or after a time, and every deposit address, as those do not expire.
func (s *Ingester) AddressesOf(
	network string,
) func(ctx context.Context, since time.Time) ([]chain.Address, error) {
	return func(ctx context.Context, since time.Time) ([]chain.Address, error) {
		options, err := s.db.AddressesSince(ctx, network, invoice.ForOption, since)
		if err != nil {
			return nil, err
		}

		deposits, err := s.db.AddressesSince(ctx, network, invoice.ForDeposit, time.Time{})
		if err != nil {
			return nil, err
		}

		out := make([]chain.Address, 0, len(options)+len(deposits))
		for _, list := range [][]invoice.Address{options, deposits} {
			for _, a := range list {
				out = append(out, a.Address)
			}
		}

		return out, nil
	}
}
