package storetest

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

var settlementList = listOf[settlement.Settlement, settlement.Filter]{
	kind: "Settlements",
	make: func(n int, o event.Owner) settlement.Settlement {
		return settlement.Settlement{
			ID:               recordID(n),
			Owner:            o,
			CreatedAt:        timeAt(n),
			Status:           cycle(n, settlement.Pending, settlement.Released, settlement.Failed),
			Network:          cycle(n, "a", "b", "c"),
			PaymentID:        cycle(n, "p", "q"),
			InvoiceID:        cycle(n, "", "inv"),
			DepositAddressID: cycle(n, "dep", ""),
		}
	},
	id:   func(s settlement.Settlement) string { return s.ID },
	put:  single(store.Tx.PutSettlements),
	list: store.Reader.Settlements,
	one:  store.Reader.Settlement,
	filter: func(o event.Owner, after string, limit int) settlement.Filter {
		return settlement.Filter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[settlement.Settlement, settlement.Filter]{
		{
			"Statuses",
			func(f *settlement.Filter) {
				f.Statuses = []settlement.Status{
					settlement.Pending,
					settlement.Failed,
				}
			},
			func(s settlement.Settlement) bool { return s.Status != settlement.Released },
		},
		{
			"Networks",
			func(f *settlement.Filter) { f.Networks = []string{"b"} },
			func(s settlement.Settlement) bool { return s.Network == "b" },
		},
		{
			"PaymentID",
			func(f *settlement.Filter) { f.PaymentID = "p" },
			func(s settlement.Settlement) bool { return s.PaymentID == "p" },
		},
		{
			"InvoiceID",
			func(f *settlement.Filter) { f.InvoiceID = "inv" },
			func(s settlement.Settlement) bool { return s.InvoiceID == "inv" },
		},
		{
			"DepositAddressID",
			func(f *settlement.Filter) { f.DepositAddressID = "dep" },
			func(s settlement.Settlement) bool { return s.DepositAddressID == "dep" },
		},
		{
			"Created",
			func(f *settlement.Filter) { f.CreatedAfter, f.CreatedBefore = rangeStart, rangeEnd },
			func(s settlement.Settlement) bool { return inRange(s.CreatedAt) },
		},
	},
}

var payoutList = listOf[payout.Payout, payout.Filter]{
	kind: "Payouts",
	make: func(n int, o event.Owner) payout.Payout {
		return payout.Payout{
			ID:          recordID(n),
			Owner:       o,
			CreatedAt:   timeAt(n),
			Status:      cycle(n, payout.Pending, payout.Confirmed, payout.Failed),
			Network:     cycle(n, "a", "b", "c"),
			TxHash:      cycle(n, "", "0xAB1", "0xab2"),
			Destination: chain.Address(cycle(n, "0xDE1", "0xde2", "T9", "T8")),
		}
	},
	id:   func(p payout.Payout) string { return p.ID },
	put:  store.Tx.PutPayout,
	list: store.Reader.Payouts,
	one:  store.Reader.Payout,
	filter: func(o event.Owner, after string, limit int) payout.Filter {
		return payout.Filter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[payout.Payout, payout.Filter]{
		{
			"Statuses of one",
			func(f *payout.Filter) { f.Statuses = []payout.Status{payout.Failed} },
			func(p payout.Payout) bool { return p.Status == payout.Failed },
		},
		{
			"Statuses of two",
			func(f *payout.Filter) { f.Statuses = []payout.Status{payout.Failed, payout.Pending} },
			func(p payout.Payout) bool { return p.Status != payout.Confirmed },
		},
		{
			"Networks",
			func(f *payout.Filter) { f.Networks = []string{"b", "c"} },
			func(p payout.Payout) bool { return p.Network != "a" },
		},
		{
			"Q transaction",
			func(f *payout.Filter) { f.Q = "0xab" },
			func(p payout.Payout) bool { return hasPrefixFold(p.TxHash, "0xab") },
		},
		{
			"Q destination",
			func(f *payout.Filter) { f.Q = "0xDE" },
			func(p payout.Payout) bool { return hasPrefixFold(string(p.Destination), "0xde") },
		},
		{
			"Created",
			func(f *payout.Filter) { f.CreatedAfter, f.CreatedBefore = rangeStart, rangeEnd },
			func(p payout.Payout) bool { return inRange(p.CreatedAt) },
		},
	},
}

var refundList = listOf[payout.Refund, payout.RefundFilter]{
	kind: "Refunds",
	make: func(n int, o event.Owner) payout.Refund {
		return payout.Refund{
			ID:        recordID(n),
			Owner:     o,
			CreatedAt: timeAt(n),
			Status:    cycle(n, payout.RefundPending, payout.RefundFailed, payout.RefundSucceeded),
			InvoiceID: cycle(n, "", "inv"),
			PaymentID: cycle(n, "p", "", "q"),
		}
	},
	id:   func(r payout.Refund) string { return r.ID },
	put:  store.Tx.PutRefund,
	list: store.Reader.Refunds,
	one:  store.Reader.Refund,
	filter: func(o event.Owner, after string, limit int) payout.RefundFilter {
		return payout.RefundFilter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[payout.Refund, payout.RefundFilter]{
		{
			"Statuses",
			func(f *payout.RefundFilter) {
				f.Statuses = []payout.RefundStatus{payout.RefundPending, payout.RefundFailed}
			},
			func(r payout.Refund) bool { return r.Status != payout.RefundSucceeded },
		},
		{
			"InvoiceID",
			func(f *payout.RefundFilter) { f.InvoiceID = "inv" },
			func(r payout.Refund) bool { return r.InvoiceID == "inv" },
		},
		{
			"PaymentID",
			func(f *payout.RefundFilter) { f.PaymentID = "p" },
			func(r payout.Refund) bool { return r.PaymentID == "p" },
		},
		{
			"Created",
			func(f *payout.RefundFilter) { f.CreatedAfter, f.CreatedBefore = rangeStart, rangeEnd },
			func(r payout.Refund) bool { return inRange(r.CreatedAt) },
		},
	},
}
