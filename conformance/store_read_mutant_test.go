package conformance_test

import (
	"context"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// The stores below embed the real one and break its reads.
type (
	cutLists      struct{ store.Store }
	substringList struct{ store.Store }
	exactSearch   struct{ store.Store }
	lateLists     struct{ store.Store }
	exclusiveList struct{ store.Store }
	lateWork      struct{ store.Store }
	emptyWork     struct{ store.Store }
	foldedOrders  struct{ store.Store }
	changedHeight struct {
		store.Store
		of, above func(height uint64) uint64
	}
	openReads struct {
		store.Store
		closed *bool
	}
)

func (s cutLists) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	if f.Limit <= 0 {
		f.Limit = 20
	}

	return s.Store.Payments(ctx, f)
}

func (s substringList) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	q, limit := strings.ToLower(f.Q), f.Limit
	if q == "" {
		return s.Store.Invoices(ctx, f)
	}

	f.Q, f.Limit = "", 0
	all, err := s.Store.Invoices(ctx, f)

	var found []invoice.Invoice

	for _, inv := range all {
		text := strings.ToLower(inv.ID + "\x00" + inv.OrderID + "\x00" + inv.CustomerEmail)
		if strings.Contains(text, q) && (limit <= 0 || len(found) < limit) {
			found = append(found, inv)
		}
	}

	return found, err
}

func (s exactSearch) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	found, err := s.Store.Invoices(ctx, f)
	if f.Q == "" {
		return found, err
	}

	var exact []invoice.Invoice

	for _, inv := range found {
		if strings.EqualFold(inv.OrderID, f.Q) || strings.EqualFold(inv.CustomerEmail, f.Q) || inv.ID == f.Q {
			exact = append(exact, inv)
		}
	}

	return exact, err
}

func (s lateLists) Events(ctx context.Context, f event.Filter) ([]event.Event, error) {
	if !f.CreatedAfter.IsZero() {
		f.CreatedAfter = f.CreatedAfter.Add(time.Millisecond)
	}

	return s.Store.Events(ctx, f)
}

func (s exclusiveList) Settlements(
	ctx context.Context,
	f settlement.Filter,
) ([]settlement.Settlement, error) {
	if !f.CreatedBefore.IsZero() {
		f.CreatedBefore = f.CreatedBefore.Add(time.Millisecond)
	}

	return s.Store.Settlements(ctx, f)
}

func (s lateWork) DueInvoices(ctx context.Context, now time.Time, limit int) ([]invoice.Invoice, error) {
	return s.Store.DueInvoices(ctx, now.Add(-time.Microsecond), limit)
}

func (s emptyWork) DueSettlements(
	ctx context.Context,
	network string,
	now time.Time,
	limit int,
) ([]settlement.Settlement, error) {
	return s.Store.DueSettlements(ctx, network, now, max(limit, 1))
}

func (s foldedOrders) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	id, limit := f.OrderID, f.Limit
	if id == "" {
		return s.Store.Invoices(ctx, f)
	}

	f.OrderID, f.Limit = "", 0
	all, err := s.Store.Invoices(ctx, f)

	var found []invoice.Invoice

	for _, inv := range all {
		if strings.EqualFold(inv.OrderID, id) && (limit <= 0 || len(found) < limit) {
			found = append(found, inv)
		}
	}

	return found, err
}

func (s changedHeight) OutgoingOf(
	ctx context.Context,
	network string,
	address chain.Address,
	from uint64,
	limit int,
) ([]wallet.Outgoing, error) {
	return s.Store.OutgoingOf(ctx, network, address, s.of(from), limit)
}

func (s changedHeight) OutgoingAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]wallet.Outgoing, error) {
	return s.Store.OutgoingAbove(ctx, network, s.above(height))
}

func (s openReads) Close() error {
	*s.closed = true
	return nil
}

func (s openReads) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	if *s.closed {
		return invoice.Invoice{}, fault.Missing("invoice", id)
	}

	return s.Store.InvoiceByID(ctx, id)
}

func same(height uint64) uint64   { return height }
func ignored(uint64) uint64       { return 0 }
func next(height uint64) uint64   { return height + 1 }
func before(height uint64) uint64 { return height - 1 }

// readMutants break what is read outside of transactions.
var readMutants = map[string]storeMutant{
	"a list without a limit is cut": {
		"Limit/Payments",
		func(st store.Store) store.Store { return cutLists{st} },
	},
	"a search finds what is inside": {
		"List/Invoices/Filters",
		func(st store.Store) store.Store { return substringList{st} },
	},
	"a search finds whole fields only": {
		"List/Invoices/Filters",
		func(st store.Store) store.Store { return exactSearch{st} },
	},
	"CreatedAfter is exclusive": {
		"List/Events/Filters",
		func(st store.Store) store.Store { return lateLists{st} },
	},
	"CreatedBefore is inclusive": {
		"List/Settlements/Filters",
		func(st store.Store) store.Store { return exclusiveList{st} },
	},
	"work is due after its time": {
		"Contract/DueExactly",
		func(st store.Store) store.Store { return lateWork{st} },
	},
	"work without a limit is one row": {
		"Limit/Work",
		func(st store.Store) store.Store { return emptyWork{st} },
	},
	"an order id is found in any case": {
		"List/Invoices/Filters",
		func(st store.Store) store.Store { return foldedOrders{st} },
	},
	"what an address sent ignores the height": {
		"Work/OutgoingByHeight",
		func(st store.Store) store.Store { return changedHeight{st, ignored, same} },
	},
	"what an address sent begins above the height": {
		"Work/OutgoingByHeight",
		func(st store.Store) store.Store { return changedHeight{st, next, same} },
	},
	"what is above a height includes it": {
		"Work/OutgoingByHeight",
		func(st store.Store) store.Store { return changedHeight{st, same, before} },
	},
	"a closed store answers": {
		"Contract/Closed",
		func(st store.Store) store.Store { return openReads{st, new(bool)} },
	},
}
