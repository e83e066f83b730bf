package sqltest

// This file has the queries of lists with filters.

import (
	"context"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

func invoiceLists() []Query {
	return []Query{
		invoices("all", invoice.Filter{}),
		invoices("after", invoice.Filter{After: "x"}),
		invoices("status", invoice.Filter{Statuses: []invoice.Status{"open"}, After: "x"}),
		invoices("statuses", invoice.Filter{Statuses: []invoice.Status{"open", "paid"}, After: "x"}),
		invoices("network", invoice.Filter{Networks: []string{"a"}, After: "x"}),
		invoices("networks", invoice.Filter{Networks: []string{"a", "b"}, After: "x"}),
		invoices(
			"status and network",
			invoice.Filter{Statuses: []invoice.Status{"open"}, Networks: []string{"a"}},
		),
		invoices("order", invoice.Filter{OrderID: "o", After: "x"}),
		invoices("created", invoice.Filter{CreatedAfter: at, CreatedBefore: at.Add(1), After: "x"}),
		sorted(invoices("q", invoice.Filter{Q: "q", After: "x"})),
		sorted(
			invoices(
				"q, status and network",
				invoice.Filter{Q: "q", Statuses: []invoice.Status{"open"}, Networks: []string{"a"}},
			),
		),
		payments("all", invoice.PaymentFilter{After: "x"}),
		payments("status", invoice.PaymentFilter{Statuses: []invoice.PaymentStatus{"detected"}, After: "x"}),
		payments(
			"statuses and networks",
			invoice.PaymentFilter{
				Statuses: []invoice.PaymentStatus{"detected", "confirmed"},
				Networks: []string{"a", "b"},
			},
		),
		payments("invoice", invoice.PaymentFilter{InvoiceID: "i", After: "x"}),
		payments(
			"deposit address and status",
			invoice.PaymentFilter{DepositAddressID: "i", Statuses: []invoice.PaymentStatus{"detected"}},
		),
		payments("detected", invoice.PaymentFilter{DetectedAfter: at, DetectedBefore: at}),
		sorted(payments("q", invoice.PaymentFilter{Q: "q"})),
		deposits("all", invoice.DepositFilter{After: "x"}),
		deposits(
			"status and network",
			invoice.DepositFilter{Statuses: []invoice.DepositStatus{"active"}, Networks: []string{"a"}},
		),
		sorted(deposits("q", invoice.DepositFilter{Q: "q"})),
	}
}

func settlementLists() []Query {
	return []Query{
		settlements("all", settlement.Filter{After: "x"}),
		settlements("created", settlement.Filter{CreatedAfter: at, CreatedBefore: at.Add(1)}),
		settlements(
			"status and network",
			settlement.Filter{Statuses: []settlement.Status{"held"}, Networks: []string{"a"}},
		),
		settlements("payment", settlement.Filter{PaymentID: "p"}),
		settlements("invoice", settlement.Filter{InvoiceID: "i"}),
		settlements("deposit address", settlement.Filter{DepositAddressID: "d"}),
	}
}

func payoutLists() []Query {
	return []Query{
		payouts("all", payout.Filter{After: "x"}),
		payouts("created", payout.Filter{CreatedAfter: at, CreatedBefore: at.Add(1)}),
		payouts(
			"status and networks",
			payout.Filter{Statuses: []payout.Status{"pending"}, Networks: []string{"a", "b"}},
		),
		sorted(payouts("q", payout.Filter{Q: "q"})),
		refunds("all", payout.RefundFilter{After: "x"}),
		refunds("created", payout.RefundFilter{CreatedAfter: at, CreatedBefore: at.Add(1)}),
		refunds("status", payout.RefundFilter{Statuses: []payout.RefundStatus{"pending"}}),
		refunds("invoice", payout.RefundFilter{InvoiceID: "i"}),
		refunds("payment", payout.RefundFilter{PaymentID: "i"}),
	}
}

func eventLists() []Query {
	return []Query{
		events("all", event.Filter{After: "x"}),
		events("created", event.Filter{CreatedAfter: at, CreatedBefore: at.Add(1)}),
		events("types", event.Filter{Types: []event.Type{"a", "b"}}),
		events("object", event.Filter{ObjectID: "o"}),
		deliveries("all", webhook.DeliveryFilter{After: "x"}),
		deliveries("event", webhook.DeliveryFilter{EventID: "e", After: "x"}),
		deliveries(
			"endpoint and status",
			webhook.DeliveryFilter{EndpointID: "e", Statuses: []webhook.DeliveryStatus{"failed"}},
		),
	}
}

func invoices(name string, f invoice.Filter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Invoices "+name, func(ctx context.Context, st store.Reader) ([]invoice.Invoice, error) {
		return st.Invoices(ctx, f)
	})
}

func payments(name string, f invoice.PaymentFilter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Payments "+name, func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
		return st.Payments(ctx, f)
	})
}

func deposits(name string, f invoice.DepositFilter) Query {
	f.Owner, f.Limit = owner, 50

	call := func(ctx context.Context, st store.Reader) ([]invoice.DepositAddress, error) {
		return st.DepositAddresses(ctx, f)
	}

	return read("DepositAddresses "+name, call)
}

func settlements(name string, f settlement.Filter) Query {
	f.Owner, f.Limit = owner, 50

	call := func(ctx context.Context, st store.Reader) ([]settlement.Settlement, error) {
		return st.Settlements(ctx, f)
	}

	return read("Settlements "+name, call)
}

func payouts(name string, f payout.Filter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Payouts "+name, func(ctx context.Context, st store.Reader) ([]payout.Payout, error) {
		return st.Payouts(ctx, f)
	})
}

func refunds(name string, f payout.RefundFilter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Refunds "+name, func(ctx context.Context, st store.Reader) ([]payout.Refund, error) {
		return st.Refunds(ctx, f)
	})
}

func events(name string, f event.Filter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Events "+name, func(ctx context.Context, st store.Reader) ([]event.Event, error) {
		return st.Events(ctx, f)
	})
}

func deliveries(name string, f webhook.DeliveryFilter) Query {
	f.Owner, f.Limit = owner, 50

	return read("Deliveries "+name, func(ctx context.Context, st store.Reader) ([]webhook.Delivery, error) {
		return st.Deliveries(ctx, f)
	})
}
