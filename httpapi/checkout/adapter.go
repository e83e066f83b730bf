package checkout

// The engine behind the page.

import (
	"context"
	"net/http"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Handler returns the checkout pages of an engine, to be mounted at "/checkout/" under any prefix,
// stripped or not; o may be nil. Options that cannot work (a template that does not parse, a frame
// ancestor that is none) panic, as template.Must does: they are the program's, not the visitor's.
//
// Event streams stay open for as long as a visitor looks. Give http.Server a BaseContext that ends
// when the service does, so that Shutdown need not wait for them.
func Handler(e *payments.Engine, o *Options) http.Handler {
	engine := engine.Of(e)
	p, err := newPages(adapter{engine}, o, engine.Log())
	if err != nil {
		panic("checkout.Handler: " + err.Error())
	}

	return p
}

// adapter answers what the page asks from an engine. Watch and Now are the engine's own.
type adapter struct{ *engine.Engine }

func (a adapter) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return a.Invoices.GetByID(ctx, id)
}

func (a adapter) Payments(ctx context.Context, invoiceID string) ([]invoice.Payment, error) {
	return a.Store().PaymentsOfInvoice(ctx, invoiceID)
}

func (a adapter) Account(ctx context.Context, id string) (account.Account, error) {
	return a.Store().Account(ctx, id)
}

func (a adapter) Condition(ctx context.Context, network string) (condition, error) {
	c, _, err := a.Store().Cursor(ctx, network)

	return condition{
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
