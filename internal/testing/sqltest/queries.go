package sqltest

// This file has every query of a store, for tests of how databases run them.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
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

// owner and at are the owner and the time of every query.
var (
	owner = event.Owner{AccountID: "a", Livemode: true}
	at    = time.Unix(1e9, 0)
)

// Queries returns all calls that read more than a row by its key, in every combination of filters that is
// documented to be served by an index.
func Queries() []Query {
	return slices.Concat(
		invoiceLists(), settlementLists(), payoutLists(), eventLists(),
		accountReads(), invoiceReads(), walletReads(), coinReads(), settlementReads(), eventReads(),
		writes(),
	)
}

func accountReads() []Query {
	return []Query{
		read("Accounts", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Accounts(ctx, "x", 50)
		}),
		read("Keys", func(ctx context.Context, st store.Reader) (any, error) { return st.Keys(ctx, "a") }),
		read("IdempotencyRecord", func(ctx context.Context, st store.Reader) (any, error) {
			_, _, err := st.IdempotencyRecord(ctx, idempotency.Key{Owner: owner, Key: "k"})
			return nil, err
		}),
	}
}

func invoiceReads() []Query {
	return []Query{
		sorted(read("InvoicesByID", func(ctx context.Context, st store.Reader) ([]invoice.Invoice, error) {
			return st.InvoicesByID(ctx, []string{"a", "b"})
		})),
		read("DueInvoices", func(ctx context.Context, st store.Reader) ([]invoice.Invoice, error) {
			return st.DueInvoices(ctx, at, 50)
		}),
		read("PaymentsOfInvoices", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.PaymentsOfInvoices(ctx, []string{"i"})
		}),
		sorted(
			read(
				"PaymentsOfInvoices of several",
				func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
					return st.PaymentsOfInvoices(ctx, []string{"i", "j"})
				},
			),
		),
		read("PaymentsByHash", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.PaymentsByHash(ctx, "n", []string{"a", "b"})
		}),
		read("UnconfirmedPayments", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.UnconfirmedPayments(ctx, "n", 5, 50)
		}),
		read("UnminedPayments", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.UnminedPayments(ctx, "n")
		}),
		read("PaymentsAbove", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.PaymentsAbove(ctx, "n", 5)
		}),
		read("BalancePayments", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.BalancePayments(ctx, "n", []chain.Address{"a"})
		}),
		sorted(
			read(
				"BalancePayments of several",
				func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
					return st.BalancePayments(ctx, "n", []chain.Address{"a", "b"})
				},
			),
		),
		read("DuePayments", func(ctx context.Context, st store.Reader) ([]invoice.Payment, error) {
			return st.DuePayments(ctx, at, 50)
		}),
		read("MatchAddresses", func(ctx context.Context, st store.Reader) (any, error) {
			return st.MatchAddresses(ctx, chain.Space{Family: "f"}, []chain.Address{"a", "b"})
		}),
		read("AddressesAfter", func(ctx context.Context, st store.Reader) (any, error) {
			return st.AddressesAfter(ctx, chain.Space{Family: "f"}, "x", 50)
		}),
		read("DueAddresses", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DueAddresses(ctx, "n", true, at, 50)
		}),
		read("DustOf", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DustOf(ctx, "n", []chain.Address{"a", "b"})
		}),
		read("DustTransfers", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DustTransfers(ctx, "n", "a", "s", 50)
		}),
		read("DustByHash", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DustByHash(ctx, "n", []string{"a", "b"})
		}),
		read("DustAbove", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DustAbove(ctx, "n", 7)
		}),
		read("AddressesMade", func(ctx context.Context, st store.Reader) (any, error) {
			return st.AddressesSince(ctx, "n", invoice.ForOption, at)
		}),
	}
}

func walletReads() []Query {
	return []Query{
		sorted(read("Positions", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Positions(ctx, "n", []chain.Address{"a", "b"})
		})),
		read("Ranges", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Ranges(ctx, "n", 5)
		}),
		read("Retries", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Retries(ctx, "n", at, 5)
		}),
		sorted(read("TransactionsByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.TransactionsByID(ctx, []string{"a", "b"})
		})),
		read("TransactionsOf", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.TransactionsOf(ctx, "o")
		}),
		read("Transactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.Transactions(ctx, "n", "x", 50)
		}),
		read("DueTransactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.DueTransactions(ctx, "n", at, 50)
		}),
		read("DueNetworks", func(ctx context.Context, st store.Reader) ([]string, error) {
			return st.DueNetworks(ctx)
		}),
		read("LiveTransactions", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.LiveTransactions(ctx, "n", "a")
		}),
		read("LiveTopUps", func(ctx context.Context, st store.Reader) ([]wallet.Transaction, error) {
			return st.LiveTopUps(ctx, "n")
		}),
		read("OwnTransactions", func(ctx context.Context, st store.Reader) (any, error) {
			return st.OwnTransactions(ctx, "n", []string{"a", "b"})
		}),
		read("Balances", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Balances(ctx, owner)
		}),
		read("BalancesOf", func(ctx context.Context, st store.Reader) (any, error) {
			return st.BalancesOf(ctx, "n")
		}),
	}
}

func coinReads() []Query {
	return []Query{
		read("Coins", func(ctx context.Context, st store.Reader) (any, error) {
			return st.Coins(ctx, "n", "a")
		}),
		sorted(read("CoinsOf", func(ctx context.Context, st store.Reader) ([]wallet.Coin, error) {
			return st.CoinsOf(ctx, "n", []string{"a", "b"})
		})),
		read("UnconfirmedCoins", func(ctx context.Context, st store.Reader) (any, error) {
			return st.UnconfirmedCoins(ctx, "n")
		}),
		read("CoinsAbove", func(ctx context.Context, st store.Reader) (any, error) {
			return st.CoinsAbove(ctx, "n", 7)
		}),
		sorted(read("OutgoingByKey", func(ctx context.Context, st store.Reader) ([]wallet.Outgoing, error) {
			return st.OutgoingByKey(ctx, "n", []string{"a", "b"})
		})),
		sorted(read("OutgoingByHash", func(ctx context.Context, st store.Reader) ([]wallet.Outgoing, error) {
			return st.OutgoingByHash(ctx, "n", []string{"a", "b"})
		})),
		read("OutgoingOf", func(ctx context.Context, st store.Reader) (any, error) {
			return st.OutgoingOf(ctx, "n", "a", 7, 10)
		}),
		read("OutgoingAbove", func(ctx context.Context, st store.Reader) (any, error) {
			return st.OutgoingAbove(ctx, "n", 7)
		}),
		read("UnrecordedOutgoing", func(ctx context.Context, st store.Reader) (any, error) {
			return st.UnrecordedOutgoing(ctx, "n", "", time.UnixMilli(7))
		}),
		read("UnrecordedOutgoing of an address", func(ctx context.Context, st store.Reader) (any, error) {
			return st.UnrecordedOutgoing(ctx, "n", "a", time.UnixMilli(7))
		}),
		read("FrozenWallets", func(ctx context.Context, st store.Reader) (any, error) {
			return st.FrozenWallets(ctx, "n", 10)
		}),
	}
}

func settlementReads() []Query {
	return []Query{
		sorted(
			read(
				"SettlementsByID",
				func(ctx context.Context, st store.Reader) ([]settlement.Settlement, error) {
					return st.SettlementsByID(ctx, []string{"a", "b"})
				},
			),
		),
		read(
			"SettlementsOfPayments",
			func(ctx context.Context, st store.Reader) ([]settlement.Settlement, error) {
				return st.SettlementsOfPayments(ctx, []string{"a", "b"})
			},
		),
		read("DueSettlements", func(ctx context.Context, st store.Reader) ([]settlement.Settlement, error) {
			return st.DueSettlements(ctx, "n", at, 50)
		}),
		read("SettlementsAt", func(ctx context.Context, st store.Reader) ([]settlement.Settlement, error) {
			return st.SettlementsAt(ctx, "n", "a", "s")
		}),
		read("DueSweeps", func(ctx context.Context, st store.Reader) ([]settlement.Sweep, error) {
			return st.DueSweeps(ctx, "n", at, 50)
		}),
		read("SweepsAt", func(ctx context.Context, st store.Reader) ([]settlement.Sweep, error) {
			return st.SweepsAt(ctx, "n", []chain.Address{"a", "b"})
		}),
		read("PayoutsSince", func(ctx context.Context, st store.Reader) (int, error) {
			return st.PayoutsSince(ctx, owner, at)
		}),
	}
}

func eventReads() []Query {
	return []Query{
		read("WebhookEndpoints", func(ctx context.Context, st store.Reader) ([]webhook.Endpoint, error) {
			return st.WebhookEndpoints(ctx, webhook.EndpointFilter{Owner: owner, After: "x", Limit: 50})
		}),
		sorted(read("DeliveriesByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.DeliveriesByID(ctx, []string{"a", "b"})
		})),
		sorted(read("EndpointsByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.EndpointsByID(ctx, []string{"a", "b"})
		})),
		sorted(read("EventsByID", func(ctx context.Context, st store.Reader) (any, error) {
			return st.EventsByID(ctx, []string{"a", "b"})
		})),
		read("PendingDeliveries", func(ctx context.Context, st store.Reader) (int, error) {
			return st.PendingDeliveries(ctx, "e")
		}),
	}
}

func writes() []Query {
	return []Query{
		write("EndpointsOf", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.EndpointsOf(ctx, owner)
			return err
		}),
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

			_, err := tx.ClaimDeliveries(ctx, webhook.Claim{
				By:          "o",
				Now:         at,
				Until:       at.Add(time.Second),
				Limit:       50,
				PerEndpoint: 5,
				Except:      []string{"x"},
			})

			return err
		}),
		write("PruneDeliveries", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PruneDeliveries(ctx, at, 50)
			return err
		}),
		write("PruneEvents", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PruneEvents(ctx, at, 50)
			return err
		}),
		write("PruneIdempotencyKeys", func(ctx context.Context, tx store.Tx) error {
			_, err := tx.PruneIdempotencyKeys(ctx, at, 50)
			return err
		}),
	}
}
