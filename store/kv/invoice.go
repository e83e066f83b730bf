package kv

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	invoices = newTable(
		10, "invoice",
		func(i *invoice.Invoice) key { return keyOf(i.ID) },
		func(i *invoice.Invoice) *int64 { return &i.Version },
	)
	invoicesByOwner = invoices.ordered(1, func(i *invoice.Invoice) key { return keyOf(i.Owner) })
	invoicesByDue   = invoices.ordered(2, func(i *invoice.Invoice) key {
		return when(!i.DueAt.IsZero(), i.DueAt)
	})

	deposits = newTable(
		11, "deposit address",
		func(d *invoice.DepositAddress) key { return keyOf(d.ID) },
		func(d *invoice.DepositAddress) *int64 { return &d.Version },
	)
	depositsByOwner = deposits.ordered(1, func(d *invoice.DepositAddress) key { return keyOf(d.Owner) })
)

func (r *reader) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id, func(i *invoice.Invoice) bool { return i.Owner == owner })
}

func (r *reader) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id, nil)
}

func (r *reader) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return several(ctx, r, invoices, invoices.byID(ids))
}

func (r *reader) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	onNetwork := func(o invoice.Option) bool { return slices.Contains(f.Networks, o.Network) }
	match := func(i *invoice.Invoice) bool {
		return passes(f.Statuses, i.Status) &&
			(f.OrderID == "" || i.OrderID == f.OrderID) &&
			(len(f.Networks) == 0 || slices.ContainsFunc(i.Options, onNetwork)) &&
			starts(f.Q, i.ID, i.OrderID, i.CustomerEmail)
	}

	bounded := page(f.After, f.Limit, match).made(id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, invoicesByOwner, keyOf(f.Owner), bounded)
}

func (r *reader) DueInvoices(ctx context.Context, now time.Time, limit int) ([]invoice.Invoice, error) {
	return list(ctx, r, invoicesByDue, nil, window[invoice.Invoice]{to: upTo(now), limit: limit})
}

func (r *reader) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	return get(ctx, r, deposits, id, func(d *invoice.DepositAddress) bool { return d.Owner == owner })
}

func (r *reader) DepositAddresses(
	ctx context.Context,
	f invoice.DepositFilter,
) ([]invoice.DepositAddress, error) {
	match := func(d *invoice.DepositAddress) bool {
		return passes(f.Statuses, d.Status) &&
			passes(f.Networks, d.Network) &&
			starts(f.Q, d.Name, string(d.Address), d.ID)
	}

	return list(ctx, r, depositsByOwner, keyOf(f.Owner), page(f.After, f.Limit, match))
}

func (tx *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	return put(ctx, tx, invoices, inv)
}

func (tx *transaction) PutDepositAddress(ctx context.Context, d *invoice.DepositAddress) error {
	return put(ctx, tx, deposits, d)
}
