package ingest

// This file compares payments, and what they pay, with the verified rows of the addresses that received them.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// receiver is the primary key of an address.
type receiver struct {
	space   chain.Space
	address chain.Address
}

// receiverOf returns the address that received a payment.
func receiverOf(p *invoice.Payment) receiver {
	return receiver{chain.Space{Family: p.Key.Family, Livemode: p.Key.Livemode}, p.Address}
}

// noteRow keeps the row of an address that was read, so that flush verifies that one.
func (l *ledger) noteRow(a invoice.Address) { l.rows[receiver{a.Space, a.Address}] = a }

// verifyReceivers checks that the payments that count, and what they pay, are those that their addresses were made
// for. One that leaves the chain takes nothing.
//
// Errors: fault.Unavailable, code address_damaged or secret_key_unknown.
func (l *ledger) verifyReceivers(ctx context.Context) error {
	if err := l.readReceivers(ctx); err != nil {
		return err
	}

	for _, id := range slices.Sorted(maps.Keys(l.entries)) {
		a := l.entries[id]

		for _, p := range a.payments {
			if !a.counts(p) {
				continue
			}

			if err := l.verifyReceiver(a, p); err != nil {
				return err
			}
		}
	}

	return nil
}

// readReceivers reads the rows of addresses that were not read yet: one query for each key space.
func (l *ledger) readReceivers(ctx context.Context) error {
	missing := map[chain.Space][]chain.Address{}

	for _, a := range l.entries {
		for _, p := range a.payments {
			if to := receiverOf(p); a.counts(p) && l.rows[to].Address == "" {
				missing[to.space] = append(missing[to.space], to.address)
			}
		}
	}

	for space, addresses := range missing {
		found, err := l.tx.MatchAddresses(ctx, space, slices.Compact(slices.Sorted(slices.Values(addresses))))
		if err != nil {
			return err
		}

		for _, row := range found {
			l.noteRow(row)
		}
	}

	return nil
}

// verifyReceiver checks one payment.
func (l *ledger) verifyReceiver(a *entry, p *invoice.Payment) error {
	row, known := l.rows[receiverOf(p)]
	if !known {
		return damagedReceiver(p)
	}

	verified, err := l.s.verify(row)
	if err != nil {
		return err
	}

	if a.invoice != nil && !verified.Pays(*p, *a.invoice) ||
		a.deposit != nil && !verified.PaysDeposit(*p, *a.deposit) {
		return damagedReceiver(p)
	}

	return nil
}

// counts reports whether a payment of the entry is to be written as one that has money.
func (a *entry) counts(p *invoice.Payment) bool {
	return a.changed[p.ID] && (p.Status == invoice.Detected || p.Status == invoice.Confirmed)
}

func damagedReceiver(p *invoice.Payment) error {
	return fault.New(
		fault.Unavailable, "address_damaged",
		"payment %s to %s is not credited: the payment, what it pays, or the row of the address was changed outside "+
			"this service; restore it",
		p.ID, p.Address,
	)
}
