package sqlstore

// This file keeps invoices. Beside each invoice, rows of invoice_networks name the networks of its options,
// in the order of the lists: a list of one network's invoices is read from them without a sort.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/invoice"
)

var invoices = func() *table[invoice.Invoice, invoiceRow] {
	t := newTable(
		"invoices",
		"invoice",
		1,
		func(i *invoice.Invoice) *int64 { return &i.Version },
		invoiceRowOf,
		(*invoiceRow).record,
	)
	t.also = invoiceNetworks

	return t
}()

var intoInvoiceNetworks = &into{
	head:  "INSERT INTO {invoice_networks} (account_id, livemode, network, invoice_id) VALUES ",
	marks: "(?, ?, ?, ?)",
}

// invoiceNetworks makes the rows of the networks of a new invoice, which never change.
func invoiceNetworks(i *invoice.Invoice) []insertion {
	rows := insertion{into: intoInvoiceNetworks}

	var networks []string
	for _, o := range i.Options {
		if !slices.Contains(networks, o.Network) {
			networks = append(networks, o.Network)
			rows.rows = append(rows.rows, []any{i.Owner.AccountID, i.Owner.Livemode, o.Network, i.ID})
		}
	}

	return []insertion{rows}
}

func (r *reader) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return owned(ctx, r, invoices, owner, id, func(i *invoice.Invoice) event.Owner { return i.Owner })
}

func (r *reader) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id)
}

func (r *reader) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return several(ctx, r, invoices, ids)
}

func (r *reader) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	if err := r.flushTables(ctx, invoices.name); err != nil {
		return nil, err
	}

	text, args := invoiceList(r, f)

	return rows(ctx, r, invoices, r.store.dialect.text(text), args)
}

// invoiceList makes the query of a list. With one network it walks that network's side rows in
// order, and looks up each one's invoice; with several, or with a search, it walks the owner's
// invoices and looks at each one's side rows. Both say so to the database, which otherwise joins
// whole tables where it takes that for cheaper.
func invoiceList(r *reader, f invoice.Filter) (string, []any) {
	q := &query{}
	from, columns, order := "{invoices} i", invoices.columns, newest

	walk := len(f.Networks) == 1 && f.Q == ""
	switch {
	case walk:
		from = "{invoice_networks} n " + r.store.dialect.Each(
			invoices.name, "i", "i.id = n.invoice_id AND i.account_id = n.account_id",
		)
		columns, order = qualified("i.", columns), "ORDER BY n.invoice_id DESC"

		q.has(
			"n.account_id = ? AND n.livemode = ? AND n.network = ?",
			f.Owner.AccountID, f.Owner.Livemode, f.Networks[0],
		)

		if f.After != "" {
			q.has("n.invoice_id < ?", f.After)
		}
	case len(f.Networks) == 0:
		q.has("account_id = ? AND livemode = ?", f.Owner.AccountID, f.Owner.Livemode)
	default:
		q.has("account_id = ? AND livemode = ?", f.Owner.AccountID, f.Owner.Livemode)
		// With an OFFSET it stays a question about one row at a time.
		sub := &query{}
		sub.in("n.network", f.Networks)
		q.has(
			"EXISTS (SELECT 1 FROM {invoice_networks} n WHERE n.account_id = i.account_id AND n.livemode "+
				"= i.livemode AND n.invoice_id = i.id AND "+sub.where.String()+" LIMIT 1 OFFSET 0)",
			sub.args...,
		)
	}

	if f.After != "" && !walk {
		q.has("id < ?", f.After)
	}

	anyOf(q, "i.status", f.Statuses, walk || f.OrderID != "" || f.Q != "")

	if f.OrderID != "" {
		q.has("i.q_order <> '' AND i.q_order = ? AND i.order_id = ?", searched(f.OrderID).lower(), f.OrderID)
	}

	if walk {
		q.made("n.invoice_id", id.Bound, f.CreatedAfter, f.CreatedBefore)
	} else {
		q.made("id", id.Bound, f.CreatedAfter, f.CreatedBefore)
	}

	if f.Q != "" {
		sub := &query{}
		sub.starts("invoices", f.Owner, f.Q, "id", "q_order", "q_email")
		q.has("i."+sub.where.String(), sub.args...)
	}

	return q.statement(columns, from, order, f.Limit)
}

func (r *reader) DueInvoices(ctx context.Context, now time.Time, limit int) ([]invoice.Invoice, error) {
	q := &query{}
	q.has("due_at <= ?", now)

	return list(ctx, r, invoices, q, "ORDER BY due_at, id", limit)
}

func (tx *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	return put(ctx, tx, invoices, inv)
}
