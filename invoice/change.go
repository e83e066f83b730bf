package invoice

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
)

// Change runs one pure transition of an invoice over all its payments. It stores the changes with the events
// that the transition returns. If the transition fails, nothing is stored.
func Change(
	ctx context.Context,
	tx Tx,
	inv Invoice,
	now time.Time,
	move func(inv *Invoice, payments []Payment) ([]event.Type, error),
) (Invoice, error) {
	payments, err := tx.PaymentsOfInvoices(ctx, []string{inv.ID})
	if err != nil {
		return Invoice{}, err
	}

	before := inv.Status
	inv.Options, inv.Flags = slices.Clone(inv.Options), slices.Clone(inv.Flags)

	types, err := move(&inv, payments)
	if err != nil {
		return Invoice{}, err
	}

	events, err := Put(ctx, tx, &inv, before, types)
	if err != nil {
		return Invoice{}, err
	}

	if len(events) > 0 {
		err = tx.AppendEvents(ctx, events...)
	}

	return inv, err
}

// Events raises Sequence by one for each type and returns the invoice's events, which show it as it is now.
// before is its status before the change; empty for a new one.
func (inv *Invoice) Events(before Status, types []event.Type) []event.Event {
	inv.Sequence += int64(len(types))

	return inv.numbered(before, types)
}

// numbered returns the events of types; Sequence already counts them.
func (inv *Invoice) numbered(before Status, types []event.Type) []event.Event {
	events := eventctx.About(*inv, types...)
	for i := range events {
		if before != "" && before != inv.Status {
			events[i].Previous = map[string]any{"status": before}
		}
	}

	return events
}

// EventObject returns how an event names the invoice.
func (inv Invoice) EventObject() event.Object {
	return event.Object{Owner: inv.Owner, ID: inv.ID, InvoiceID: inv.ID, Sequence: inv.Sequence}
}

// Put stores a changed invoice and returns its events, which show it as stored, version included. before and
// types are those of Invoice.Events.
func Put(
	ctx context.Context,
	tx Tx,
	inv *Invoice,
	before Status,
	types []event.Type,
) ([]event.Event, error) {
	inv.Sequence += int64(len(types))
	if err := tx.PutInvoice(ctx, inv); err != nil {
		return nil, err
	}

	return inv.numbered(before, types), nil
}
