package ingest

// This file says up to when money at an invoice's options was looked for.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/invoice"
)

// lookedFor says up to when money at the options of an invoice was looked for.
type lookedFor struct {
	// upTo is, by network, the time of the last block that was read, and where balances can be read, at which
	// they were compared.
	upTo map[string]time.Time
	// uncompared are addresses whose network was read up to the end of the invoice, and which were last
	// compared before it.
	uncompared []invoice.Address
}

// lookedUpTo returns up to when money at the selected options of an invoice was looked for.
func (s *Ingester) lookedUpTo(ctx context.Context, tx Tx, inv invoice.Invoice) (lookedFor, error) {
	looked := lookedFor{upTo: map[string]time.Time{}}

	for _, o := range inv.Options {
		if !o.Selected() {
			continue
		}

		if _, served := s.registry.Network(o.Network); !served {
			// Nobody reads it: there is nothing to wait for.
			looked.upTo[o.Network] = inv.ExpiresAt
			continue
		}

		cursor, _, err := tx.Cursor(ctx, o.Network)
		if err != nil {
			return looked, err
		}

		at, err := s.optionComparedAt(ctx, tx, o, cursor)
		if err != nil {
			return looked, err
		}

		if known, seen := looked.upTo[o.Network]; !seen || at.time.Before(known) {
			looked.upTo[o.Network] = at.time
		}

		if at.time.Before(inv.ExpiresAt) && !cursor.At.Time.Before(inv.ExpiresAt) {
			looked.uncompared = append(looked.uncompared, at.rows...)
		}
	}

	return looked, nil
}

// optionCompared is the time up to which money at one option was looked for, and the address that says so.
type optionCompared struct {
	time time.Time
	rows []invoice.Address
}

// optionComparedAt returns the time up to which money at one option was looked for.
func (s *Ingester) optionComparedAt(
	ctx context.Context,
	tx Tx,
	o invoice.Option,
	cursor scan.Cursor,
) (optionCompared, error) {
	driver, err := s.registry.Driver(o.Network)
	if err != nil {
		return optionCompared{}, err
	}

	if _, can := driver.(chain.Balancer); !can {
		return optionCompared{time: cursor.At.Time}, nil
	}

	rows, err := tx.MatchAddresses(ctx, driver.Network().Space(), []chain.Address{o.Address})
	if err != nil || len(rows) == 0 || rows[0].CheckedAt.After(cursor.At.Time) {
		return optionCompared{time: cursor.At.Time}, err
	}

	return optionCompared{time: rows[0].CheckedAt, rows: rows}, nil
}

// retryAfter returns how long an invoice that is due waits until it is looked at again: a quarter of the time that it
// waits already, from a second to postponed.
func retryAfter(overdue time.Duration) time.Duration {
	return min(max(overdue/4, time.Second), postponed)
}
