package invoice

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
)

// CancelTx cancels an invoice in tx; see Invoice.Cancel for the refusals.
func (s *Service) CancelTx(ctx context.Context, tx Tx, owner event.Owner, id string) (Invoice, error) {
	return s.act(ctx, tx, owner, id, func(inv *Invoice, l *ledger, payments []Payment) ([]event.Type, error) {
		return inv.Cancel(payments, l.now)
	})
}

// Cancel is CancelTx in a transaction of its own.
func (s *Service) Cancel(ctx context.Context, owner event.Owner, id string) (Invoice, error) {
	return update(
		ctx, s,
		func(ctx context.Context, tx Tx) (Invoice, error) { return s.CancelTx(ctx, tx, owner, id) },
	)
}

// AcceptTx takes what an invoice received as its payment: accept_late_payment, or with allowUnderpaid accept.
// See Invoice.Accept for the refusals.
func (s *Service) AcceptTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	return s.act(ctx, tx, owner, id, func(inv *Invoice, l *ledger, payments []Payment) ([]event.Type, error) {
		return inv.Accept(payments, allowUnderpaid, l.now)
	})
}

// Accept is AcceptTx in a transaction of its own.
func (s *Service) Accept(
	ctx context.Context,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (Invoice, error) {
		return s.AcceptTx(ctx, tx, owner, id, allowUnderpaid)
	})
}

// RefundedTx books the move of a refund in the transaction that makes it.
func (s *Service) RefundedTx(ctx context.Context, tx Tx, fact RefundFact) error {
	inv, err := tx.InvoiceByID(ctx, fact.InvoiceID)
	if err != nil {
		return err
	}

	_, err = s.actOn(ctx, tx, inv, func(inv *Invoice, l *ledger, payments []Payment) ([]event.Type, error) {
		return inv.Refund(fact, payments, l.now)
	})

	return err
}

type action func(inv *Invoice, l *ledger, payments []Payment) ([]event.Type, error)

// act runs one pure move of an invoice and stores what it changed.
func (s *Service) act(ctx context.Context, tx Tx, owner event.Owner, id string, f action) (Invoice, error) {
	inv, err := tx.Invoice(ctx, owner, id)
	if err != nil {
		return Invoice{}, err
	}

	return s.actOn(ctx, tx, inv, f)
}

func (s *Service) actOn(ctx context.Context, tx Tx, inv Invoice, f action) (Invoice, error) {
	l := s.newLedger(tx, "", nil)

	a, err := l.open(ctx, inv)
	if err != nil {
		return Invoice{}, err
	}

	before := a.invoice.Status

	types, err := f(a.invoice, l, a.values())
	if err != nil {
		return Invoice{}, err
	}

	events, err := s.putInvoice(ctx, tx, a.invoice, before, types, l.now)
	if err != nil {
		return Invoice{}, err
	}

	return *a.invoice, appendEvents(ctx, tx, events)
}
