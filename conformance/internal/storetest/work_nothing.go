package storetest

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/store"
)

// testNothing asks an empty store for everything that is a list, with nothing to look for.
func testNothing(t *testing.T, st store.Store) {
	ctx := t.Context()

	for what, read := range map[string]func() (int, error){
		"InvoicesByID":   func() (int, error) { r, err := st.InvoicesByID(ctx, nil); return len(r), err },
		"DeliveriesByID": func() (int, error) { r, err := st.DeliveriesByID(ctx, nil); return len(r), err },
		"EndpointsByID":  func() (int, error) { r, err := st.EndpointsByID(ctx, nil); return len(r), err },
		"EventsByID":     func() (int, error) { r, err := st.EventsByID(ctx, nil); return len(r), err },
		"PaymentsByHash": func() (int, error) {
			r, err := st.PaymentsByHash(ctx, "a", nil)
			return len(r), err
		},
		"PaymentsOfInvoices": func() (int, error) {
			r, err := st.PaymentsOfInvoices(ctx, nil)
			return len(r), err
		},
		"BalancePayments": func() (int, error) {
			r, err := st.BalancePayments(ctx, "a", nil)
			return len(r), err
		},
		"MatchAddresses": func() (int, error) {
			r, err := st.MatchAddresses(ctx, chain.Space{}, nil)
			return len(r), err
		},
		"DustOf":     func() (int, error) { r, err := st.DustOf(ctx, "a", nil); return len(r), err },
		"DustByHash": func() (int, error) { r, err := st.DustByHash(ctx, "a", nil); return len(r), err },
		"OwnTransactions": func() (int, error) {
			r, err := st.OwnTransactions(ctx, "a", nil)
			return len(r), err
		},
		"CoinsOf":          func() (int, error) { r, err := st.CoinsOf(ctx, "a", nil); return len(r), err },
		"OutgoingByKey":    func() (int, error) { r, err := st.OutgoingByKey(ctx, "a", nil); return len(r), err },
		"OutgoingByHash":   func() (int, error) { r, err := st.OutgoingByHash(ctx, "a", nil); return len(r), err },
		"TransactionsByID": func() (int, error) { r, err := st.TransactionsByID(ctx, nil); return len(r), err },
		"SettlementsByID":  func() (int, error) { r, err := st.SettlementsByID(ctx, nil); return len(r), err },
		"SettlementsOfPayments": func() (int, error) {
			r, err := st.SettlementsOfPayments(ctx, nil)
			return len(r), err
		},
		"Keys":              func() (int, error) { r, err := st.Keys(ctx, "a"); return len(r), err },
		"PendingDeliveries": func() (int, error) { return st.PendingDeliveries(ctx, "a") },
	} {
		if n, err := read(); err != nil || n != 0 {
			t.Errorf("%s of nothing: %d %v", what, n, err)
		}
	}
}
