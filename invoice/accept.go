package invoice

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// cancel cancels an invoice in tx; see Invoice.Cancel for the refusals.
func (s *Service) cancel(ctx context.Context, tx Tx, owner event.Owner, id string) (Invoice, error) {
	return s.change(ctx, tx, owner, id, func(inv *Invoice, payments []Payment) ([]event.Type, error) {
		return inv.Cancel(payments, s.now())
	})
}

// Cancel cancels an invoice; see Invoice.Cancel for the refusals.
func (s *Service) Cancel(ctx context.Context, owner event.Owner, id string) (Invoice, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (Invoice, error) {
		return s.cancel(ctx, tx, owner, id)
	})
}

// accept accepts the received amount of an invoice as its payment: accept_late_payment, or with
// allowUnderpaid accept. See Invoice.Accept for the refusals.
func (s *Service) accept(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	accept := func(inv *Invoice, payments []Payment) ([]event.Type, error) {
		return inv.Accept(payments, allowUnderpaid, s.now())
	}

	return s.change(ctx, tx, owner, id, accept)
}

// Accept accepts the received amount of an invoice as its payment: accept_late_payment, or with
// allowUnderpaid accept. See Invoice.Accept for the refusals.
func (s *Service) Accept(
	ctx context.Context,
	owner event.Owner,
	id string,
	allowUnderpaid bool,
) (Invoice, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (Invoice, error) {
		return s.accept(ctx, tx, owner, id, allowUnderpaid)
	})
}

// change reads an owner's invoice, moves it and stores it with its events.
func (s *Service) change(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	f func(inv *Invoice, payments []Payment) ([]event.Type, error),
) (Invoice, error) {
	inv, err := tx.Invoice(ctx, owner, id)
	if err != nil {
		return Invoice{}, err
	}

	return Change(ctx, tx, inv, s.now(), f)
}

// Accept accepts the received amount of an expired or canceled invoice as its payment, and flags the invoice
// Late. With allowUnderpaid it also accepts an underpaid invoice. It flags UnderpaidAccepted if less than the
// amount due arrived. An invoice that was accepted before stays as it is. Errors:
//
//   - fault.State, invoice_refunded: after any refund
//   - fault.State, invoice_not_late: underpaid or open, without allowUnderpaid
//   - fault.State, invoice_payment_pending: a payment waits for its confirmation
//   - fault.State, invoice_has_no_payment: nothing was confirmed
func (inv *Invoice) Accept(payments []Payment, allowUnderpaid bool, now time.Time) ([]event.Type, error) {
	// spec 3.1.1
	closed := inv.Status == Expired || inv.Status == Canceled
	switch {
	case inv.Status == Refunded || inv.refunding():
		return nil, fault.New(
			fault.State, "invoice_refunded",
			"invoice %s was refunded, wholly or in part, so its payment cannot be accepted any more",
			inv.ID,
		)
	case inv.Status == Paid && (allowUnderpaid || inv.Has(Late)):
		return nil, nil
	case !closed && !allowUnderpaid:
		return nil, fault.New(
			fault.State, "invoice_not_late", // spec D2.3.7
			"invoice %s is %s: only an expired or canceled invoice has a late payment to accept",
			inv.ID, inv.Status,
		)
	case inv.Status == Pending:
		return nil, fault.New(
			fault.State, "invoice_payment_pending",
			"invoice %s waits for a payment to confirm; accept it afterwards if it is not enough",
			inv.ID,
		)
	}

	r := inv.receive(payments)
	if !r.any || inv.Status == Open {
		return nil, fault.New(
			// spec D2.3.13
			fault.State, "invoice_has_no_payment", "invoice %s has no confirmed payment to accept",
			inv.ID,
		)
	}

	inv.accept(r, payments, closed)

	return inv.Recompute(payments, now), nil
}

// accept sets the flags and sums of an acceptance.
func (inv *Invoice) accept(r receipt, payments []Payment, late bool) {
	inv.set(Late, late)
	inv.set(UnderpaidAccepted, inv.short(r)) // spec 3.1.2

	inv.Accepted = confirmedSums(payments)
}

// accepted reports whether a payment was accepted, late or underpaid.
func (inv *Invoice) accepted() bool { return inv.Has(Late) || inv.Has(UnderpaidAccepted) }

// lacksAccepted reports whether, for an option or an asset, less is confirmed now than was accepted.
func (inv *Invoice) lacksAccepted(payments []Payment) bool {
	sums := confirmedSums(payments)
	for key, sum := range inv.Accepted {
		if sums[key].Less(sum) {
			return true
		}
	}

	return false
}

// confirmedSums sums confirmed payments in the form of Invoice.Accepted.
func confirmedSums(payments []Payment) map[string]chain.Amount {
	sums := map[string]chain.Amount{}

	for _, p := range payments {
		if p.Status == Confirmed {
			key := cmp.Or(p.OptionID, p.AssetID)
			sums[key] = sums[key].Add(p.Amount)
		}
	}

	return sums
}
