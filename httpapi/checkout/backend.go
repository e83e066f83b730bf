package checkout

// What the page asks of the service, and nothing else; adapter.go answers it from the engine.

import (
	"context"
	"iter"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// backend is the service behind the page. Invoices that do not exist are fault.NotFound.
type backend interface {
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// Watch yields the invoice now and after every change.
	Watch(ctx context.Context, id string) iter.Seq2[invoice.Invoice, error]
	// Payments returns all payments to an invoice, oldest first.
	Payments(ctx context.Context, invoiceID string) ([]invoice.Payment, error)
	Account(ctx context.Context, id string) (account.Account, error)
	// Condition says how a network is doing.
	Condition(ctx context.Context, network string) (condition, error)
	// Price returns the price of one unit of an asset in a currency, or fault.Unavailable.
	Price(ctx context.Context, asset chain.Asset, currency string) (decimal.Decimal, error)
	// Registry has the networks that are served.
	Registry() *chain.Registry

	// Select chooses an option, with a fresh quote where the old one ran out.
	Select(ctx context.Context, invoiceID, optionID string) error
	// Hint looks a transaction up on the invoice's networks and takes it in when it pays the invoice.
	Hint(ctx context.Context, invoiceID, txHash string) (invoice.HintResult, error)
	// Simulate makes a payment that never was, to an invoice in test mode.
	Simulate(ctx context.Context, inv invoice.Invoice, outcome invoice.Outcome) error

	Now() time.Time
}

// condition is how a network is doing, as far as a payer needs to know.
type condition struct {
	// Height is the last block whose payments are stored, Tip the newest block that the node
	// showed; 0 before the first.
	Height, Tip uint64
	// Stopped says that the network is not read until a person has looked at it.
	Stopped bool
	// ReadAt is when a block was last stored; zero before the first.
	ReadAt time.Time
}
