package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

const (
	// stepLimit is how many records of a kind one Step handles at most.
	stepLimit = 100
	// postponed is how long a due record waits after a failed attempt.
	postponed = 30 * time.Second
)

// Step does one batch of due work, at most stepLimit records of a kind: invoices that expire,
// missing prices, lost transactions. did reports whether there was any. A record that fails is
// postponed and does not block the others; their errors are returned joined.
func (s *Ingester) Step(ctx context.Context) (did bool, err error) {
	invoices, err := s.db.DueInvoices(ctx, s.now(), stepLimit)
	if err != nil {
		return false, err
	}

	var failed []error

	for _, inv := range invoices {
		if err := s.dueInvoice(ctx, inv); err != nil {
			failed = append(failed, s.postponeInvoice(ctx, inv.ID, err))
		}
	}

	payments, err := s.db.DuePayments(ctx, s.now(), stepLimit)
	if err != nil {
		return len(invoices) > 0, errors.Join(append(failed, err)...)
	}

	for _, p := range payments {
		if err := s.duePayment(ctx, p); err != nil {
			failed = append(failed, s.postponePayment(ctx, p.ID, err))
		}
	}

	return len(invoices)+len(payments) > 0, errors.Join(failed...)
}

// dueInvoice expires an invoice, or postpones it while a network lags, its balances were not compared at
// its end yet, or a payment may return.
func (s *Ingester) dueInvoice(ctx context.Context, due invoice.Invoice) error {
	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		inv, err := tx.InvoiceByID(ctx, due.ID)
		if err != nil {
			return err
		}

		looked, err := s.lookedUpTo(ctx, tx, inv)
		if err != nil {
			return err
		}

		now := s.now()

		_, err = invoice.Change(
			ctx,
			tx,
			inv,
			now,
			func(inv *invoice.Invoice, payments []invoice.Payment) ([]event.Type, error) {
				if inv.DueAt.IsZero() || now.Before(inv.DueAt) {
					return nil, nil
				}

				types, err := inv.Expire(payments, looked.upTo, now)
				if errors.Is(err, fault.State) {
					inv.Schedule()

					if !inv.DueAt.IsZero() && !now.Before(inv.DueAt) {
						inv.DueAt = now.Add(retryAfter(now.Sub(inv.Deadline())))
					}

					return nil, nil
				}

				return types, err
			},
		)
		if err != nil {
			return err
		}

		return compareNow(ctx, tx, now, looked.uncompared)
	})
}

// postponeInvoice sets the invoice's next attempt, and returns cause.
func (s *Ingester) postponeInvoice(ctx context.Context, id string, cause error) error {
	s.log.LogAttrs(
		ctx, slog.LevelError, "an invoice that is due could not be moved; it is tried again",
		slog.String("invoice", id), slog.Any("error", cause),
	)

	return errors.Join(cause, s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		inv, err := tx.InvoiceByID(ctx, id)
		if err != nil {
			return err
		}

		inv.DueAt = s.now().Add(postponed)

		return tx.PutInvoice(ctx, &inv)
	}))
}

// postponePayment sets the payment's next attempt, and returns cause.
func (s *Ingester) postponePayment(ctx context.Context, id string, cause error) error {
	s.log.LogAttrs(
		ctx, slog.LevelError, "a payment that is due could not be moved; it is tried again",
		slog.String("payment", id), slog.Any("error", cause),
	)

	return errors.Join(cause, s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		p, err := tx.PaymentByID(ctx, id)
		if err != nil {
			return err
		}

		p.DueAt = s.now().Add(postponed)

		return tx.PutPayments(ctx, &p)
	}))
}

// duePayment reads a missing price, or looks a lost transaction up.
func (s *Ingester) duePayment(ctx context.Context, p invoice.Payment) error {
	if p.Status == invoice.Confirmed {
		return s.dueValue(ctx, p)
	}

	for try := 1; ; try++ {
		// A block in which the payment would confirm is read again with the next preparation.
		err := s.lookUp(ctx, p)
		if !errors.Is(err, invoice.ErrUnprepared) || try == maxPrepared {
			return err
		}
	}
}

// shows reports whether the batch holds a transfer.
func (p PreparedBatch) shows(key invoice.TransferKey) bool {
	return slices.ContainsFunc(p.observed, func(t observedTransfer) bool { return t.key() == key })
}

// dueValue sets the price of a payment that confirmed without one.
func (s *Ingester) dueValue(ctx context.Context, p invoice.Payment) error {
	prices := prices{}

	if n, ok := s.registry.Network(p.Network); ok {
		if asset, ok := n.AssetByID(p.AssetID); ok {
			prices.wantUSD(asset, n)
		}
	}

	if err := s.fill(ctx, prices); err != nil {
		return err
	}

	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		stored, err := tx.PaymentByID(ctx, p.ID)
		if err != nil {
			return err
		}

		l := s.newLedger(tx, p.Network, prices)
		if stored.DueAt.IsZero() || l.now.Before(stored.DueAt) || stored.Status != invoice.Confirmed {
			return nil // another process did it
		}

		a, q, err := l.payment(ctx, stored)
		if err != nil {
			return err
		}

		if err := l.value(a, q); err != nil {
			return err
		}

		return l.flush(ctx)
	})
}
