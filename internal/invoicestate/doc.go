// Package invoicestate holds the parts of invoices and payments that reading the chain (internal/ingest)
// needs: keys of transfers, how a payment was seen, and the transitions of payments that no operation of a
// merchant makes. The records are in package invoice.
package invoicestate
