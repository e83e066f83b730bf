package ingest

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// lookUp looks the transaction of a payment up, and stores what it shows.
func (s *Ingester) lookUp(ctx context.Context, p invoice.Payment) error {
	found, err := s.find(ctx, p)
	if err != nil {
		return err
	}

	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		stored, err := tx.PaymentByID(ctx, p.ID)
		if err != nil || stored.DueAt.IsZero() || s.now().Before(stored.DueAt) || stored.Status != p.Status {
			return err // another process did it
		}

		if found != nil {
			cursor, _, err := tx.Cursor(ctx, p.Network)
			if err != nil {
				return err
			}

			if err := s.ApplyTx(ctx, tx, *found, cursor); err != nil {
				return err
			}
		}

		return s.searchedTx(ctx, tx, p.ID, found != nil && found.shows(invoicestate.PaymentKey(stored)))
	})
}

// find looks the transaction of a payment up where the driver can, and prepares what it shows; nil when
// neither chain nor pool has it. A network without an answer is an error.
func (s *Ingester) find(ctx context.Context, p invoice.Payment) (*PreparedBatch, error) {
	driver, err := s.registry.Driver(p.Network)
	if err != nil {
		return nil, err
	}

	finder, ok := driver.(chain.Finder)
	if !ok || p.TxHash == "" || p.Simulated {
		return nil, nil
	}

	found, err := finder.Transaction(ctx, p.TxHash)
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	prepared, err := s.prepareFound(ctx, driver, found)

	return &prepared, err
}

// searchedTx schedules a payment whose transaction was looked up. In a block, or dropped by it, it waits for
// nothing. In the pool, or in a later block, it is looked up again. Lost for a day, it is dropped.
func (s *Ingester) searchedTx(ctx context.Context, tx Tx, id string, shown bool) error {
	stored, err := tx.PaymentByID(ctx, id)
	if err != nil {
		return err
	}

	l := s.newLedger(tx, stored.Network, prices{})

	a, p, err := l.payment(ctx, stored)
	if err != nil {
		return err
	}

	err = l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		switch {
		case p.Status == invoice.Dropped || p.Status == invoice.Confirmed || !p.Block.IsZero():
			return nil, nil
		case shown:
			types, err := invoicestate.Observe(p, chain.Ref{})
			p.DueAt = l.now.Add(postponed)

			return types, err
		case p.LostAt.IsZero():
			return nil, invoicestate.MarkLost(p, l.now)
		case !l.now.Before(p.LostAt.Add(invoicestate.LostAfter)):
			return invoicestate.Drop(p)
		}

		p.DueAt = p.LostAt.Add(invoicestate.LostAfter)

		return nil, nil
	})
	if err != nil {
		return err
	}

	return l.flush(ctx)
}
