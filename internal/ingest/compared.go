package ingest

// This file says up to when money at an invoice's options was looked for.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/invoice"
)

// comparedUpTo returns the time up to which money at an invoice's options was looked for, by network: that of
// the last block that was read, and where balances can be read, at which they were compared.
func (s *Ingester) comparedUpTo(
	ctx context.Context,
	tx Tx,
	inv invoice.Invoice,
) (map[string]time.Time, error) {
	upTo := map[string]time.Time{}

	for _, o := range inv.Options {
		if !o.Selected() {
			continue
		}

		cursor, _, err := tx.Cursor(ctx, o.Network)
		if err != nil {
			return nil, err
		}

		at, err := s.optionComparedAt(ctx, tx, o, cursor)
		if err != nil {
			return nil, err
		}

		if known, seen := upTo[o.Network]; !seen || at.Before(known) {
			upTo[o.Network] = at
		}
	}

	return upTo, nil
}

// optionComparedAt returns the time up to which money at one option was looked for.
func (s *Ingester) optionComparedAt(
	ctx context.Context,
	tx Tx,
	o invoice.Option,
	cursor scan.Cursor,
) (time.Time, error) {
	driver, err := s.registry.Driver(o.Network)
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // a network that is not served any more is not read
	}

	if _, can := driver.(chain.Balancer); !can {
		return cursor.At.Time, nil
	}

	rows, err := tx.MatchAddresses(ctx, driver.Network().Space(), []chain.Address{o.Address})
	if err != nil || len(rows) == 0 || rows[0].CheckedAt.After(cursor.At.Time) {
		return cursor.At.Time, err
	}

	return rows[0].CheckedAt, nil
}
