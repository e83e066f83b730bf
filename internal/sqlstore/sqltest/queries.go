package sqltest

// This file has every query of a store, for tests of how databases run them.

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Query is one call that reads.
type Query struct {
	Name string
	// Sorts says that what matched may be sorted: searches by text, whose matches come by index in
	// another order, lists of one small object's rows, and claims.
	Sorts bool
	Run   func(ctx context.Context, st store.Store) error
}

// read makes a Query of a call that returns a record or list.
func read[T any](name string, call func(ctx context.Context, st store.Reader) (T, error)) Query {
	return Query{
		Name: name,
		Run: func(ctx context.Context, st store.Store) error {
			_, err := call(ctx, st)
			return err
		},
	}
}

// write makes a Query of a call inside a transaction.
func write(name string, call func(ctx context.Context, tx store.Tx) error) Query {
	return Query{
		Name:  name,
		Sorts: true,
		Run:   func(ctx context.Context, st store.Store) error { return st.Update(ctx, call) },
	}
}

func sorted(q Query) Query {
	q.Sorts = true
	return q
}

// Queries returns all calls that read more than a row by its key, in every combination of filters that is
// documented to be served by an index.
func Queries() []Query {
	owner := event.Owner{AccountID: "a", Livemode: true}
	at := time.Unix(1e9, 0)

	type (
		i = []invoice.Invoice
		p = []invoice.Payment
		d = []invoice.DepositAddress
		s = []settlement.Settlement
	)

	invoices := func(name string, f invoice.Filter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Invoices "+name,
			func(ctx context.Context, st store.Reader) (i, error) { return st.Invoices(ctx, f) },
		)
	}
	payments := func(name string, f invoice.PaymentFilter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Payments "+name,
			func(ctx context.Context, st store.Reader) (p, error) { return st.Payments(ctx, f) },
		)
	}
	deposits := func(name string, f invoice.DepositFilter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"DepositAddresses "+name,
			func(ctx context.Context, st store.Reader) (d, error) { return st.DepositAddresses(ctx, f) },
		)
	}
	settlements := func(name string, f settlement.Filter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Settlements "+name,
			func(ctx context.Context, st store.Reader) (s, error) { return st.Settlements(ctx, f) },
		)
	}
	payouts := func(name string, f payout.Filter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Payouts "+name,
			func(ctx context.Context, st store.Reader) ([]payout.Payout, error) { return st.Payouts(ctx, f) },
		)
	}
	refunds := func(name string, f payout.RefundFilter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Refunds "+name,
			func(ctx context.Context, st store.Reader) ([]payout.Refund, error) { return st.Refunds(ctx, f) },
		)
	}
	events := func(name string, f event.Filter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Events "+name,
			func(ctx context.Context, st store.Reader) ([]event.Event, error) { return st.Events(ctx, f) },
		)
	}
	deliveries := func(name string, f webhook.DeliveryFilter) Query {
		f.Owner, f.Limit = owner, 50

		return read(
			"Deliveries "+name,
			func(ctx context.Context, st store.Reader) ([]webhook.Delivery, error) { return st.Deliveries(ctx, f) },
		)
	}

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
		settlements("all", settlement.Filter{After: "x"}),
		settlements(
			"status and network",
			settlement.Filter{Statuses: []settlement.Status{"held"}, Networks: []string{"a"}},
		),
		settlements("payment", settlement.Filter{PaymentID: "p"}),
		settlements("invoice", settlement.Filter{InvoiceID: "i"}),
		settlements("deposit address", settlement.Filter{DepositAddressID: "d"}),
		payouts("all", payout.Filter{After: "x"}),
		payouts(
			"status and networks",
			payout.Filter{Statuses: []payout.Status{"pending"}, Networks: []string{"a", "b"}},
		),
		sorted(payouts("q", payout.Filter{Q: "q"})),
		refunds("all", payout.RefundFilter{After: "x"}),
		refunds("status", payout.RefundFilter{Statuses: []payout.RefundStatus{"pending"}}),
		refunds("invoice", payout.RefundFilter{InvoiceID: "i"}),
		refunds("payment", payout.RefundFilter{PaymentID: "i"}),
		events("all", event.Filter{After: "x"}),
		events("types", event.Filter{Types: []event.Type{"a", "b"}}),
		events("object", event.Filter{ObjectID: "o"}),
		deliveries("all", webhook.DeliveryFilter{After: "x"}),
		deliveries("event", webhook.DeliveryFilter{EventID: "e", After: "x"}),
		deliveries(
			"endpoint and status",
			webhook.DeliveryFilter{EndpointID: "e", Statuses: []webhook.DeliveryStatus{"failed"}},
		),
		read("WebhookEndpoints", func(ctx context.Context, st store.Reader) ([]webhook.Endpoint, error) {
			return st.WebhookEndpoints(ctx, webhook.EndpointFilter{Owner: owner, After: "x", Limit: 50})
		}),
		read(
			"Accounts",
			func(ctx context.Context, st store.Reader) (any, error) { return st.Accounts(ctx, "x", 50) },
		),
		read("Keys", func(ctx context.Context, st store.Reader) (any, error) { return st.Keys(ctx, "a") }),
		sorted(read("InvoicesByID", func(ctx context.Context, st store.Reader) (i, error) {
			return st.InvoicesByID(ctx, []string{"a", "b"})
		})),
		read(
			"DueInvoices",
			func(ctx context.Context, st store.Reader) (i, error) { return st.DueInvoices(ctx, at, 50) },
		),
		read(
			"PaymentsOfInvoice",
			func(ctx context.Context, st store.Reader) (p, error) { return st.PaymentsOfInvoice(ctx, "i") },
		),
		read("PaymentsByTransfer", func(ctx context.Context, st store.Reader) (p, error) {
			return st.PaymentsByTransfer(ctx, "n", []invoice.TransferKey{{TxHash: "a"}, {TxHash: "b"}})
		}),
		read(
			"UnconfirmedPayments",
			func(ctx context.Context, st store.Reader) (p, error) { return st.UnconfirmedPayments(ctx, "n", 5, 50) },
		),
		read(
			"PoolPayments",
			func(ctx context.Context, st store.Reader) (p, error) { return st.PoolPayments(ctx, "n") },
		),
		read(
			"PaymentsAbove",
			func(ctx context.Context, st store.Reader) (p, error) { return st.PaymentsAbove(ctx, "n", 5) },
		),
		read(
			"BalancePayments",
			func(ctx context.Context, st store.Reader) (p, error) { return st.BalancePayments(ctx, "n", "a", "s") },
		),
		read(
			"DuePayments",
			func(ctx context.Context, st store.Reader) (p, error) { return st.DuePayments(ctx, at, 50) },
		),
		read("MatchAddresses", func(ctx context.Context, st store.Reader) (any, error) {
			return st.MatchAddresses(ctx, chain.Space{Family: "f"}, []chain.Address{"a", "b"})
		}),
		read("AddressesMade", func(ctx context.Context, st store.Reader) (any, error) {
			return st.AddressesMade(ctx, "n", invoice.ForOption, at)
		}),
		read(
			"Ranges",
			func(ctx context.Context, st store.Reader) (any, error) { return st.Ranges(ctx, "n", 5) },
		),
		read(
			"Retries",
			func(ctx context.Context, st store.Reader) (any, error) { return st.Retries(ctx, "n", at, 5) },
		),
		sorted(
			read(
				"TransactionsByID",
				func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
					return st.TransactionsByID(ctx, []string{"a", "b"})
				},
			),
		),
		read("TransactionsOf", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.TransactionsOf(ctx, "o")
		}),
		read("Transactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.Transactions(ctx, "n", "x", 50)
		}),
		read("DueTransactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.DueTransactions(ctx, "n", at, 50)
		}),
		read("LiveTransactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.LiveTransactions(ctx, "n", "a")
		}),
		read("OwnTransactions", func(ctx context.Context, st store.Reader) (any, error) {
			return st.OwnTransactions(ctx, "n", []string{"a", "b"})
		}),
		read(
			"Balances",
			func(ctx context.Context, st store.Reader) (any, error) { return st.Balances(ctx, owner) },
		),
		read(
			"BalancesOf",
			func(ctx context.Context, st store.Reader) (any, error) { return st.BalancesOf(ctx, "n") },
		),
		read(
			"Coins",
			func(ctx context.Context, st store.Reader) (any, error) { return st.Coins(ctx, "n", "a") },
		),
		sorted(read("CoinsOf", func(ctx context.Context, st store.Reader) ([]wallet.Coin, error) {
			return st.CoinsOf(ctx, "n", []string{"a", "b"})
		})),
		read(
			"WaitingCoins",
			func(ctx context.Context, st store.Reader) (any, error) { return st.WaitingCoins(ctx, "n") },
		),
		read(
			"CoinsAbove",
			func(ctx context.Context, st store.Reader) (any, error) { return st.CoinsAbove(ctx, "n", 7) },
		),
		sorted(read("SettlementsByID", func(ctx context.Context, st store.Reader) (s, error) {
			return st.SettlementsByID(ctx, []string{"a", "b"})
		})),
		read("SettlementsOfPayments", func(ctx context.Context, st store.Reader) (s, error) {
			return st.SettlementsOfPayments(ctx, []string{"a", "b"})
		}),
		read(
			"DueSettlements",
			func(ctx context.Context, st store.Reader) (s, error) { return st.DueSettlements(ctx, "n", at, 50) },
		),
		read(
			"SettlementsAt",
			func(ctx context.Context, st store.Reader) (s, error) { return st.SettlementsAt(ctx, "n", "a", "s") },
		),
		read(
			"LiveReleases",
			func(ctx context.Context, st store.Reader) (any, error) { return st.LiveReleases(ctx, "n", 50) },
		),
		read(
			"PayoutsSince",
			func(ctx context.Context, st store.Reader) (int, error) { return st.PayoutsSince(ctx, owner, at) },
		),
		sorted(read("DeliveriesByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DeliveriesByID(ctx, []string{"a", "b"})
		})),
		sorted(read("EndpointsByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.EndpointsByID(ctx, []string{"a", "b"})
		})),
		sorted(read("EventsByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.EventsByID(ctx, []string{"a", "b"})
		})),
		read(
			"PendingDeliveries",
			func(ctx context.Context, st store.Reader) (int, error) { return st.PendingDeliveries(ctx, "e") },
		),
		read("IdempotencyRecord", func(ctx context.Context, st store.Reader) (any, error) {
			_, _, err := st.IdempotencyRecord(ctx, idempotency.Key{Owner: owner, Key: "k"})
			return nil, err
		}),
		write(
			"EndpointsOf",
			func(ctx context.Context, tx store.Tx) error { _, err := tx.EndpointsOf(ctx, owner); return err },
		),
		write("ClaimDeliveries", func(ctx context.Context, tx store.Tx) error {
			d := webhook.Delivery{
				ID:            "claimed",
				EndpointID:    "e",
				Status:        webhook.DeliveryPending,
				NextAttemptAt: at,
			}
			if err := tx.PutDeliveries(ctx, &d); err != nil {
				return err
			}

			_, err := tx.ClaimDeliveries(ctx, "o", at, at.Add(time.Second), 50, 5)

			return err
		}),
		write(
			"PruneDeliveries",
			func(ctx context.Context, tx store.Tx) error { _, err := tx.PruneDeliveries(ctx, at, 50); return err },
		),
		write(
			"PruneEvents",
			func(ctx context.Context, tx store.Tx) error { _, err := tx.PruneEvents(ctx, at, 50); return err },
		),
		write("PruneIdempotencyKeys", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PruneIdempotencyKeys(ctx, at, 50)
			return err
		}),
	}
}
