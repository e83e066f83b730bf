package storetest

import (
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

var invoiceList = listOf[invoice.Invoice, invoice.Filter]{
	kind: "Invoices",
	make: func(n int, owner event.Owner) invoice.Invoice {
		inv := invoice.Invoice{
			ID:        recordID(n),
			Owner:     owner,
			CreatedAt: timeAt(n),
			Status:    cycle(n, invoice.Open, invoice.Paid, invoice.Expired),
			OrderID: cycle(
				n,
				"",
				"Order-1",
				"order-12",
				"Änder_%",
				"see Order-1",
				"x-Änder_%",
				"x",
				"ORDER-1",
			),
			CustomerEmail: fmt.Sprintf("Person%d@Example.com", n%7),
		}
		for _, network := range cycle(n, []string{"a"}, []string{"a", "b"}, []string{"b", "c", "b"}, nil) {
			inv.Options = append(inv.Options, invoice.Option{Network: network})
		}

		return inv
	},
	id:   func(inv invoice.Invoice) string { return inv.ID },
	put:  store.Tx.PutInvoice,
	list: store.Reader.Invoices,
	one:  store.Reader.Invoice,
	filter: func(owner event.Owner, after string, limit int) invoice.Filter {
		return invoice.Filter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.Invoice, invoice.Filter]{
		{
			"Statuses of one",
			func(filter *invoice.Filter) { filter.Statuses = []invoice.Status{invoice.Paid} },
			func(inv invoice.Invoice) bool { return inv.Status == invoice.Paid },
		},
		{
			"Statuses of two",
			func(filter *invoice.Filter) { filter.Statuses = []invoice.Status{invoice.Paid, invoice.Open} },
			func(inv invoice.Invoice) bool { return inv.Status != invoice.Expired },
		},
		{
			"OrderID",
			func(filter *invoice.Filter) { filter.OrderID = "Order-1" },
			func(inv invoice.Invoice) bool { return inv.OrderID == "Order-1" },
		},
		{
			"Networks of one",
			func(filter *invoice.Filter) { filter.Networks = []string{"b"} },
			func(inv invoice.Invoice) bool { return onNetwork(inv, "b") },
		},
		{
			"Networks of two",
			func(filter *invoice.Filter) { filter.Networks = []string{"a", "b"} },
			func(inv invoice.Invoice) bool { return onNetwork(inv, "a", "b") },
		},
		{
			"Q prefix of an order",
			func(filter *invoice.Filter) { filter.Q = "ORDER-1" },
			func(inv invoice.Invoice) bool { return hasPrefixFold(inv.OrderID, "order-1") },
		},
		{
			"Q with wildcards",
			func(filter *invoice.Filter) { filter.Q = "änder_%" },
			func(inv invoice.Invoice) bool { return inv.OrderID == "Änder_%" },
		},
		{
			"Q e-mail",
			func(filter *invoice.Filter) { filter.Q = "person3@example.com" },
			func(inv invoice.Invoice) bool { return inv.CustomerEmail == "Person3@Example.com" },
		},
		{
			"Q id",
			func(filter *invoice.Filter) { filter.Q = recordID(16) },
			func(inv invoice.Invoice) bool { return inv.ID == recordID(16) },
		},
		{
			"Created",
			func(filter *invoice.Filter) { filter.CreatedAfter, filter.CreatedBefore = rangeStart, rangeEnd },
			func(inv invoice.Invoice) bool { return inRange(inv.CreatedAt) },
		},
		{
			"CreatedAfter alone",
			func(filter *invoice.Filter) { filter.CreatedAfter = timeAt(61) },
			func(inv invoice.Invoice) bool { return !inv.CreatedAt.Before(timeAt(61)) },
		},
		{
			"After",
			func(filter *invoice.Filter) { filter.After = recordID(61) },
			func(inv invoice.Invoice) bool { return inv.ID < recordID(61) },
		},
	},
}

func onNetwork(inv invoice.Invoice, networks ...string) bool {
	return slices.ContainsFunc(
		inv.Options, func(o invoice.Option) bool { return slices.Contains(networks, o.Network) },
	)
}

var paymentList = listOf[invoice.Payment, invoice.PaymentFilter]{
	kind: "Payments",
	make: func(n int, owner event.Owner) invoice.Payment {
		return invoice.Payment{
			ID:               recordID(n),
			Owner:            owner,
			DetectedAt:       timeAt(n),
			Status:           cycle(n, invoice.Detected, invoice.Confirmed, invoice.Orphaned),
			Network:          cycle(n, "a", "b", "c"),
			TxHash:           fmt.Sprintf("0xAB%03d", n),
			Address:          chain.Address(cycle(n, "0xDEad", "0xDEaf", "bc1q")),
			InvoiceID:        cycle(n, "", "inv"),
			DepositAddressID: cycle(n, "dep", ""),
		}
	},
	id:   func(payment invoice.Payment) string { return payment.ID },
	put:  single(store.Tx.PutPayments),
	list: store.Reader.Payments,
	one:  store.Reader.Payment,
	filter: func(owner event.Owner, after string, limit int) invoice.PaymentFilter {
		return invoice.PaymentFilter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.Payment, invoice.PaymentFilter]{
		{
			"Statuses of one",
			func(filter *invoice.PaymentFilter) { filter.Statuses = []invoice.PaymentStatus{invoice.Confirmed} },
			func(payment invoice.Payment) bool { return payment.Status == invoice.Confirmed },
		},
		{
			"Statuses of two",
			func(filter *invoice.PaymentFilter) {
				filter.Statuses = []invoice.PaymentStatus{invoice.Confirmed, invoice.Orphaned}
			},
			func(payment invoice.Payment) bool { return payment.Status != invoice.Detected },
		},
		{
			"Networks of one",
			func(filter *invoice.PaymentFilter) { filter.Networks = []string{"a"} },
			func(payment invoice.Payment) bool { return payment.Network == "a" },
		},
		{
			"Networks of two",
			func(filter *invoice.PaymentFilter) { filter.Networks = []string{"a", "c"} },
			func(payment invoice.Payment) bool { return payment.Network != "b" },
		},
		{
			"InvoiceID",
			func(filter *invoice.PaymentFilter) { filter.InvoiceID = "inv" },
			func(payment invoice.Payment) bool { return payment.InvoiceID == "inv" },
		},
		{
			"DepositAddressID",
			func(filter *invoice.PaymentFilter) { filter.DepositAddressID = "dep" },
			func(payment invoice.Payment) bool { return payment.DepositAddressID == "dep" },
		},
		{
			"Q transaction",
			func(filter *invoice.PaymentFilter) { filter.Q = "0xab01" },
			func(payment invoice.Payment) bool { return hasPrefixFold(payment.TxHash, "0xab01") },
		},
		{
			"Q address",
			func(filter *invoice.PaymentFilter) { filter.Q = "0xdEA" },
			func(payment invoice.Payment) bool { return hasPrefixFold(string(payment.Address), "0xdea") },
		},
		{
			"Q id",
			func(filter *invoice.PaymentFilter) { filter.Q = recordID(16) },
			func(payment invoice.Payment) bool { return payment.ID == recordID(16) },
		},
		{
			"Detected",
			func(filter *invoice.PaymentFilter) {
				filter.DetectedAfter, filter.DetectedBefore = rangeStart, rangeEnd
			},
			func(payment invoice.Payment) bool { return inRange(payment.DetectedAt) },
		},
	},
}

var depositAddressList = listOf[invoice.DepositAddress, invoice.DepositFilter]{
	kind: "DepositAddresses",
	make: func(n int, owner event.Owner) invoice.DepositAddress {
		return invoice.DepositAddress{
			ID:      recordID(n),
			Owner:   owner,
			Status:  cycle(n, invoice.Active, invoice.Disabled, invoice.Active),
			Network: cycle(n, "a", "b", "c"),
			Name:    cycle(n, "Ann", "anna", "Bob", ""),
			Address: chain.Address(fmt.Sprintf("0xF%03d", n)),
		}
	},
	id:   func(deposit invoice.DepositAddress) string { return deposit.ID },
	put:  store.Tx.PutDepositAddress,
	list: store.Reader.DepositAddresses,
	one:  store.Reader.DepositAddress,
	filter: func(owner event.Owner, after string, limit int) invoice.DepositFilter {
		return invoice.DepositFilter{Owner: owner, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.DepositAddress, invoice.DepositFilter]{
		{
			"Statuses",
			func(filter *invoice.DepositFilter) { filter.Statuses = []invoice.DepositStatus{invoice.Disabled} },
			func(deposit invoice.DepositAddress) bool { return deposit.Status == invoice.Disabled },
		},
		{
			"Networks",
			func(filter *invoice.DepositFilter) { filter.Networks = []string{"a", "b"} },
			func(deposit invoice.DepositAddress) bool { return deposit.Network != "c" },
		},
		{
			"Q name",
			func(filter *invoice.DepositFilter) { filter.Q = "ANN" },
			func(deposit invoice.DepositAddress) bool { return hasPrefixFold(deposit.Name, "ann") },
		},
		{
			"Q address",
			func(filter *invoice.DepositFilter) { filter.Q = "0xf01" },
			func(deposit invoice.DepositAddress) bool { return hasPrefixFold(string(deposit.Address), "0xf01") },
		},
		{
			"Q id",
			func(filter *invoice.DepositFilter) { filter.Q = recordID(16) },
			func(deposit invoice.DepositAddress) bool { return deposit.ID == recordID(16) },
		},
	},
}
