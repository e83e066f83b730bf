// Package invoicestate holds what reading the chain (internal/ingest) asks of invoices and payments: keys
// of transfers, how a payment was seen, and moves of payments that no operation of a merchant makes. The
// records are in package invoice.
package invoicestate
