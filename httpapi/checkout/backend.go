package checkout

import (
	"context"
	"iter"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// backend has the engine's methods that the page needs. An unknown invoice is fault.NotFound.
type backend interface {
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// Watch yields the invoice now and after every change.
	Watch(ctx context.Context, id string) iter.Seq2[invoice.Invoice, error]
	// Payments returns all payments to an invoice, oldest first.
	Payments(ctx context.Context, invoiceID string) ([]invoice.Payment, error)
	Account(ctx context.Context, id string) (account.Account, error)
	// NetworkStatus returns how far a network has been read.
	NetworkStatus(ctx context.Context, network string) (networkStatus, error)
	// Price returns the price of one unit of an asset in a currency, or fault.Unavailable.
	Price(ctx context.Context, asset chain.Asset, currency string) (decimal.Decimal, error)
	// Registry returns the configured networks.
	Registry() *chain.Registry

	// Select selects an option and renews its quote if it has expired.
	Select(ctx context.Context, invoiceID, optionID string) error
	// Hint looks up a transaction on the invoice's networks and records it if it pays the invoice.
	Hint(ctx context.Context, invoiceID, txHash string) (invoice.HintResult, error)
	// Simulate makes a payment without a network to an invoice in test mode.
	Simulate(ctx context.Context, inv invoice.Invoice, outcome invoice.Outcome) error

	Now() time.Time
}

// networkStatus is how far a network has been read.
type networkStatus struct {
	// Height is the last block whose payments are stored, Tip the newest block of the node; 0 before the
	// first.
	Height, Tip uint64
	// Lags is set while the network took longer than stallAfter for the blocks that are not read yet.
	Lags bool
	// Pace is the time between blocks; if it was not measured, the longest of all networks.
	Pace time.Duration
	// Stopped is set while reading waits for an operator.
	Stopped bool
	// ReadAt is the time at which a block was last stored; zero before the first.
	ReadAt time.Time
}

// adapter implements backend with an engine, whose own Watch and Now it promotes.
type adapter struct{ *engine.Engine }

func (a adapter) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return a.Invoices.GetByID(ctx, id)
}

func (a adapter) Payments(ctx context.Context, invoiceID string) ([]invoice.Payment, error) {
	return a.Store().PaymentsOfInvoices(ctx, []string{invoiceID})
}

func (a adapter) Account(ctx context.Context, id string) (account.Account, error) {
	return a.Accounts.Verify(ctx, id)
}

func (a adapter) NetworkStatus(ctx context.Context, network string) (networkStatus, error) {
	c, _, err := a.Store().Cursor(ctx, network)

	return networkStatus{
		Lags:    scanstate.Lags(c, behindBlocks, stallAfter),
		Pace:    scanstate.LongestPace(c),
		Height:  c.At.Height,
		Tip:     c.Tip.Height,
		Stopped: c.Stopped != "",
		ReadAt:  c.UpdatedAt,
	}, err
}

func (a adapter) Price(ctx context.Context, asset chain.Asset, currency string) (decimal.Decimal, error) {
	q, err := a.Rates.Quote(ctx, asset.Price, currency)
	return q.Rate, err
}

func (a adapter) Registry() *chain.Registry { return a.Networks }

func (a adapter) Select(ctx context.Context, invoiceID, optionID string) error {
	_, err := a.Invoices.Select(ctx, nil, invoiceID, optionID)
	return err
}

func (a adapter) Hint(ctx context.Context, invoiceID, txHash string) (invoice.HintResult, error) {
	return a.Invoices.Hint(ctx, invoiceID, txHash)
}

func (a adapter) Simulate(ctx context.Context, inv invoice.Invoice, outcome invoice.Outcome) error {
	_, _, err := a.Invoices.Simulate(
		ctx, invoice.SimulateParams{Owner: inv.Owner, InvoiceID: inv.ID, Outcome: outcome},
	)

	return err
}
