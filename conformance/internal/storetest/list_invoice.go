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
	make: func(n int, o event.Owner) invoice.Invoice {
		i := invoice.Invoice{
			ID:            recordID(n),
			Owner:         o,
			CreatedAt:     timeAt(n),
			Status:        cycle(n, invoice.Open, invoice.Paid, invoice.Expired),
			OrderID:       cycle(n, "", "Order-1", "order-12", "Änder_%", "x"),
			CustomerEmail: fmt.Sprintf("Person%d@Example.com", n%7),
		}
		for _, network := range cycle(n, []string{"a"}, []string{"a", "b"}, []string{"b", "c", "b"}, nil) {
			i.Options = append(i.Options, invoice.Option{Network: network})
		}

		return i
	},
	id:   func(i invoice.Invoice) string { return i.ID },
	put:  store.Tx.PutInvoice,
	list: store.Reader.Invoices,
	one:  store.Reader.Invoice,
	filter: func(o event.Owner, after string, limit int) invoice.Filter {
		return invoice.Filter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.Invoice, invoice.Filter]{
		{
			"Statuses of one",
			func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid} },
			func(i invoice.Invoice) bool { return i.Status == invoice.Paid },
		},
		{
			"Statuses of two",
			func(f *invoice.Filter) { f.Statuses = []invoice.Status{invoice.Paid, invoice.Open} },
			func(i invoice.Invoice) bool { return i.Status != invoice.Expired },
		},
		{
			"OrderID",
			func(f *invoice.Filter) { f.OrderID = "Order-1" },
			func(i invoice.Invoice) bool { return i.OrderID == "Order-1" },
		},
		{
			"Networks of one",
			func(f *invoice.Filter) { f.Networks = []string{"b"} },
			func(i invoice.Invoice) bool { return onNetwork(i, "b") },
		},
		{
			"Networks of two",
			func(f *invoice.Filter) { f.Networks = []string{"a", "b"} },
			func(i invoice.Invoice) bool { return onNetwork(i, "a", "b") },
		},
		{
			"Q prefix of an order",
			func(f *invoice.Filter) { f.Q = "ORDER-1" },
			func(i invoice.Invoice) bool { return hasPrefixFold(i.OrderID, "order-1") },
		},
		{
			"Q with wildcards",
			func(f *invoice.Filter) { f.Q = "änder_%" },
			func(i invoice.Invoice) bool { return i.OrderID == "Änder_%" },
		},
		{
			"Q e-mail",
			func(f *invoice.Filter) { f.Q = "person3@example.com" },
			func(i invoice.Invoice) bool { return i.CustomerEmail == "Person3@Example.com" },
		},
		{
			"Q id",
			func(f *invoice.Filter) { f.Q = recordID(16) },
			func(i invoice.Invoice) bool { return i.ID == recordID(16) },
		},
		{
			"Created",
			func(f *invoice.Filter) { f.CreatedAfter, f.CreatedBefore = rangeStart, rangeEnd },
			func(i invoice.Invoice) bool { return inRange(i.CreatedAt) },
		},
		{
			"CreatedAfter alone",
			func(f *invoice.Filter) { f.CreatedAfter = timeAt(61) },
			func(i invoice.Invoice) bool { return !i.CreatedAt.Before(timeAt(61)) },
		},
		{
			"After",
			func(f *invoice.Filter) { f.After = recordID(61) },
			func(i invoice.Invoice) bool { return i.ID < recordID(61) },
		},
	},
}

func onNetwork(i invoice.Invoice, networks ...string) bool {
	return slices.ContainsFunc(
		i.Options, func(o invoice.Option) bool { return slices.Contains(networks, o.Network) },
	)
}

var paymentList = listOf[invoice.Payment, invoice.PaymentFilter]{
	kind: "Payments",
	make: func(n int, o event.Owner) invoice.Payment {
		return invoice.Payment{
			ID:               recordID(n),
			Owner:            o,
			DetectedAt:       timeAt(n),
			Status:           cycle(n, invoice.Detected, invoice.Confirmed, invoice.Orphaned),
			Network:          cycle(n, "a", "b", "c"),
			TxHash:           fmt.Sprintf("0xAB%03d", n),
			Address:          chain.Address(cycle(n, "0xDEad", "0xDEaf", "bc1q")),
			InvoiceID:        cycle(n, "", "inv"),
			DepositAddressID: cycle(n, "dep", ""),
		}
	},
	id:   func(p invoice.Payment) string { return p.ID },
	put:  single(store.Tx.PutPayments),
	list: store.Reader.Payments,
	one:  store.Reader.Payment,
	filter: func(o event.Owner, after string, limit int) invoice.PaymentFilter {
		return invoice.PaymentFilter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.Payment, invoice.PaymentFilter]{
		{
			"Statuses of one",
			func(f *invoice.PaymentFilter) { f.Statuses = []invoice.PaymentStatus{invoice.Confirmed} },
			func(p invoice.Payment) bool { return p.Status == invoice.Confirmed },
		},
		{
			"Statuses of two",
			func(f *invoice.PaymentFilter) {
				f.Statuses = []invoice.PaymentStatus{invoice.Confirmed, invoice.Orphaned}
			},
			func(p invoice.Payment) bool { return p.Status != invoice.Detected },
		},
		{
			"Networks of one",
			func(f *invoice.PaymentFilter) { f.Networks = []string{"a"} },
			func(p invoice.Payment) bool { return p.Network == "a" },
		},
		{
			"Networks of two",
			func(f *invoice.PaymentFilter) { f.Networks = []string{"a", "c"} },
			func(p invoice.Payment) bool { return p.Network != "b" },
		},
		{
			"InvoiceID",
			func(f *invoice.PaymentFilter) { f.InvoiceID = "inv" },
			func(p invoice.Payment) bool { return p.InvoiceID == "inv" },
		},
		{
			"DepositAddressID",
			func(f *invoice.PaymentFilter) { f.DepositAddressID = "dep" },
			func(p invoice.Payment) bool { return p.DepositAddressID == "dep" },
		},
		{
			"Q transaction",
			func(f *invoice.PaymentFilter) { f.Q = "0xab01" },
			func(p invoice.Payment) bool { return hasPrefixFold(p.TxHash, "0xab01") },
		},
		{
			"Q address",
			func(f *invoice.PaymentFilter) { f.Q = "0xdEA" },
			func(p invoice.Payment) bool { return hasPrefixFold(string(p.Address), "0xdea") },
		},
		{
			"Q id",
			func(f *invoice.PaymentFilter) { f.Q = recordID(16) },
			func(p invoice.Payment) bool { return p.ID == recordID(16) },
		},
		{
			"Detected",
			func(f *invoice.PaymentFilter) { f.DetectedAfter, f.DetectedBefore = rangeStart, rangeEnd },
			func(p invoice.Payment) bool { return inRange(p.DetectedAt) },
		},
	},
}

var depositAddressList = listOf[invoice.DepositAddress, invoice.DepositFilter]{
	kind: "DepositAddresses",
	make: func(n int, o event.Owner) invoice.DepositAddress {
		return invoice.DepositAddress{
			ID:      recordID(n),
			Owner:   o,
			Status:  cycle(n, invoice.Active, invoice.Disabled, invoice.Active),
			Network: cycle(n, "a", "b", "c"),
			Name:    cycle(n, "Ann", "anna", "Bob", ""),
			Address: chain.Address(fmt.Sprintf("0xF%03d", n)),
		}
	},
	id:   func(d invoice.DepositAddress) string { return d.ID },
	put:  store.Tx.PutDepositAddress,
	list: store.Reader.DepositAddresses,
	one:  store.Reader.DepositAddress,
	filter: func(o event.Owner, after string, limit int) invoice.DepositFilter {
		return invoice.DepositFilter{Owner: o, After: after, Limit: limit}
	},
	filters: []filterCase[invoice.DepositAddress, invoice.DepositFilter]{
		{
			"Statuses",
			func(f *invoice.DepositFilter) { f.Statuses = []invoice.DepositStatus{invoice.Disabled} },
			func(d invoice.DepositAddress) bool { return d.Status == invoice.Disabled },
		},
		{
			"Networks",
			func(f *invoice.DepositFilter) { f.Networks = []string{"a", "b"} },
			func(d invoice.DepositAddress) bool { return d.Network != "c" },
		},
		{
			"Q name",
			func(f *invoice.DepositFilter) { f.Q = "ANN" },
			func(d invoice.DepositAddress) bool { return hasPrefixFold(d.Name, "ann") },
		},
		{
			"Q address",
			func(f *invoice.DepositFilter) { f.Q = "0xf01" },
			func(d invoice.DepositAddress) bool { return hasPrefixFold(string(d.Address), "0xf01") },
		},
		{
			"Q id",
			func(f *invoice.DepositFilter) { f.Q = recordID(16) },
			func(d invoice.DepositAddress) bool { return d.ID == recordID(16) },
		},
	},
}
