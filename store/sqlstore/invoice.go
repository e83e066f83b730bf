package sqlstore

// This file keeps invoices. Beside each invoice, rows of invoice_networks hold the networks of its options,
// in the order of the lists: a list of one network's invoices is read from them without a sort.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/invoice"
)

var invoices = func() *table[invoice.Invoice] {
	t := newTable[invoice.Invoice](
		"invoices", "invoice", "id",
		searchedBy("q_order", "OrderID"),
		searchedBy("q_email", "CustomerEmail"),
	)
	t.also = invoiceNetworks

	return t
}()

var intoInvoiceNetworks = &into{
	head:  "INSERT INTO {invoice_networks} (account_id, livemode, network, invoice_id) VALUES ",
	marks: "(?, ?, ?, ?)",
}

// invoiceNetworks returns the rows for the networks of a new invoice, which never change.
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
	return owned(ctx, r, invoices, owner, id, func(i invoice.Invoice) event.Owner { return i.Owner })
}

func (r *reader) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id)
}

func (r *reader) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return several(ctx, r, invoices, ids)
}

// Invoices walks the owner's invoices. With one network it walks that network's side rows in order, and looks
// up the invoice of each. With several networks, or a search, it looks at each invoice's side rows. Both
// queries force this order on the database, which may otherwise join whole tables because it estimates that
// as cheaper.
func (r *reader) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	if len(f.Networks) == 1 && f.Q == "" {
		return r.networkInvoices(ctx, f)
	}

	q := of(r, f.Owner, f.After)
	q.selective = f.OrderID != ""
	q.starts(r, invoices.name, f.Owner, f.After, f.Q, "id", "q_order", "q_email")

	if len(f.Networks) > 0 {
		// The OFFSET makes the database evaluate it for one row at a time.
		sub := &query{}
		sub.in("n.network", f.Networks)

		q.correlated = true
		q.has(
			"EXISTS (SELECT 1 FROM {invoice_networks} n WHERE n.account_id = i.account_id AND n.livemode "+
				"= i.livemode AND n.invoice_id = i.id AND "+sub.where.String()+" LIMIT 1 OFFSET 0)",
			sub.args...,
		)
	}

	q.filterInvoices(f)
	q.made("id", id.Bound, f.CreatedAfter, f.CreatedBefore)

	return list(ctx, r, invoices, q, newest, f.Limit)
}

// networkInvoices lists one network's invoices.
func (r *reader) networkInvoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	if err := r.flushTables(ctx, invoices.name); err != nil {
		return nil, err
	}

	q := &query{selective: true}
	q.has(
		"n.account_id = ? AND n.livemode = ? AND n.network = ?",
		f.Owner.AccountID, f.Owner.Livemode, f.Networks[0],
	)
	q.after("n.invoice_id", f.After)
	q.filterInvoices(f)
	q.made("n.invoice_id", id.Bound, f.CreatedAfter, f.CreatedBefore)

	from := "{invoice_networks} n " + r.store.dialect.Each(
		invoices.name, "i", "i.id = n.invoice_id AND i.account_id = n.account_id",
	)
	text, args := q.statement(qualified("i.", invoices.columns), from, "ORDER BY n.invoice_id DESC", f.Limit)

	return rows(ctx, r, invoices, r.store.dialect.text(text), args)
}

// filterInvoices adds the conditions on a status and an order id.
func (q *query) filterInvoices(f invoice.Filter) {
	anyOf(q, "i.status", f.Statuses)

	if f.OrderID != "" {
		q.has("i.q_order <> '' AND i.q_order = ? AND i.order_id = ?", searched(f.OrderID).lower(), f.OrderID)
	}
}

func (r *reader) DueInvoices(ctx context.Context, now time.Time, limit int) ([]invoice.Invoice, error) {
	q := &query{}
	q.has("due_at <= ?", now)

	return list(ctx, r, invoices, q, "ORDER BY due_at, id", limit)
}

func (tx *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	return put(ctx, tx, invoices, inv)
}
