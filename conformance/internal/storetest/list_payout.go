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
	make: func(n int, owner event.Owner) settlement.Settlement {
		return settlement.Settlement{
			ID:               recordID(n),
			Owner:            owner,
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
	filter: func(owner event.Owner, after string, limit int) settlement.Filter {
		return settlement.Filter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[settlement.Settlement, settlement.Filter]{
		{
			"Statuses",
			func(filter *settlement.Filter) {
				filter.Statuses = []settlement.Status{
					settlement.Pending,
					settlement.Failed,
				}
			},
			func(s settlement.Settlement) bool { return s.Status != settlement.Released },
		},
		{
			"Networks",
			func(filter *settlement.Filter) { filter.Networks = []string{"b"} },
			func(s settlement.Settlement) bool { return s.Network == "b" },
		},
		{
			"PaymentID",
			func(filter *settlement.Filter) { filter.PaymentID = "p" },
			func(s settlement.Settlement) bool { return s.PaymentID == "p" },
		},
		{
			"InvoiceID",
			func(filter *settlement.Filter) { filter.InvoiceID = "inv" },
			func(s settlement.Settlement) bool { return s.InvoiceID == "inv" },
		},
		{
			"DepositAddressID",
			func(filter *settlement.Filter) { filter.DepositAddressID = "dep" },
			func(s settlement.Settlement) bool { return s.DepositAddressID == "dep" },
		},
		{
			"Created",
			func(filter *settlement.Filter) { filter.CreatedAfter, filter.CreatedBefore = rangeStart, rangeEnd },
			func(s settlement.Settlement) bool { return inRange(s.CreatedAt) },
		},
	},
}

var payoutList = listOf[payout.Payout, payout.Filter]{
	kind: "Payouts",
	make: func(n int, owner event.Owner) payout.Payout {
		return payout.Payout{
			ID:          recordID(n),
			Owner:       owner,
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
	filter: func(owner event.Owner, after string, limit int) payout.Filter {
		return payout.Filter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[payout.Payout, payout.Filter]{
		{
			"Statuses of one",
			func(filter *payout.Filter) { filter.Statuses = []payout.Status{payout.Failed} },
			func(p payout.Payout) bool { return p.Status == payout.Failed },
		},
		{
			"Statuses of two",
			func(filter *payout.Filter) { filter.Statuses = []payout.Status{payout.Failed, payout.Pending} },
			func(p payout.Payout) bool { return p.Status != payout.Confirmed },
		},
		{
			"Networks",
			func(filter *payout.Filter) { filter.Networks = []string{"b", "c"} },
			func(p payout.Payout) bool { return p.Network != "a" },
		},
		{
			"Q transaction",
			func(filter *payout.Filter) { filter.Q = "0xab" },
			func(p payout.Payout) bool { return hasPrefixFold(p.TxHash, "0xab") },
		},
		{
			"Q destination",
			func(filter *payout.Filter) { filter.Q = "0xDE" },
			func(p payout.Payout) bool { return hasPrefixFold(string(p.Destination), "0xde") },
		},
		{
			"Created",
			func(filter *payout.Filter) { filter.CreatedAfter, filter.CreatedBefore = rangeStart, rangeEnd },
			func(p payout.Payout) bool { return inRange(p.CreatedAt) },
		},
	},
}

var refundList = listOf[payout.Refund, payout.RefundFilter]{
	kind: "Refunds",
	make: func(n int, owner event.Owner) payout.Refund {
		return payout.Refund{
			ID:        recordID(n),
			Owner:     owner,
			CreatedAt: timeAt(n),
			Status:    cycle(n, payout.RefundPending, payout.RefundFailed, payout.RefundSucceeded),
			InvoiceID: cycle(n, "", "inv"),
			PaymentID: cycle(n, "p", "", "q"),
		}
	},
	id:   func(refund payout.Refund) string { return refund.ID },
	put:  store.Tx.PutRefund,
	list: store.Reader.Refunds,
	one:  store.Reader.Refund,
	filter: func(owner event.Owner, after string, limit int) payout.RefundFilter {
		return payout.RefundFilter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[payout.Refund, payout.RefundFilter]{
		{
			"Statuses",
			func(filter *payout.RefundFilter) {
				filter.Statuses = []payout.RefundStatus{payout.RefundPending, payout.RefundFailed}
			},
			func(refund payout.Refund) bool { return refund.Status != payout.RefundSucceeded },
		},
		{
			"InvoiceID",
			func(filter *payout.RefundFilter) { filter.InvoiceID = "inv" },
			func(refund payout.Refund) bool { return refund.InvoiceID == "inv" },
		},
		{
			"PaymentID",
			func(filter *payout.RefundFilter) { filter.PaymentID = "p" },
			func(refund payout.Refund) bool { return refund.PaymentID == "p" },
		},
		{
			"Created",
			func(filter *payout.RefundFilter) { filter.CreatedAfter, filter.CreatedBefore = rangeStart, rangeEnd },
			func(refund payout.Refund) bool { return inRange(refund.CreatedAt) },
		},
	},
}
