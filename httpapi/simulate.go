package httpapi

import (
	"context"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

type simulateInvoiceBody struct {
	Outcome  string `json:"outcome" enum:"detected,paid,underpaid,overpaid,late,orphaned,dropped"`
	OptionID string `json:"option_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	Amount   string `json:"amount,omitempty" pattern:"^(0|[1-9][0-9]{0,71})$"`
}

type simulateDepositBody struct {
	Asset   string `json:"asset" minLength:"1" maxLength:"16"`
	Amount  string `json:"amount,omitempty" pattern:"^(0|[1-9][0-9]{0,71})$"`
	Outcome string `json:"outcome" enum:"detected,confirmed,orphaned,dropped"`
}

// simulations returns the operations of test mode that make payments without a network.
func (a *api) simulations() []operation {
	const tag = "Test mode"

	return []operation{
		write(operation{
			id:       "simulateInvoicePayment",
			method:   "POST",
			path:     "/v1/test/invoices/{id}/simulate_payment",
			tag:      tag,
			scope:    account.InvoicesWrite,
			testOnly: true,
			summary:  "Pay an invoice without a network",
			codes:    selectErrors,
		}, a.simulateInvoicePayment),
		write(operation{
			id:       "simulateDepositPayment",
			method:   "POST",
			path:     "/v1/test/deposit_addresses/{id}/simulate_payment",
			tag:      tag,
			scope:    account.DepositAddressesWrite,
			testOnly: true,
			summary:  "Pay to a reusable address without a network",
			codes:    []string{"422 asset_not_enabled", "422 amount_too_small"},
		}, a.simulateDepositPayment),
	}
}

// simulateInvoicePayment pays an invoice in test mode.
func (a *api) simulateInvoicePayment(
	ctx context.Context,
	c *call,
	b simulateInvoiceBody,
) (commit[invoice.Resource], error) {
	params := invoice.SimulateParams{
		Owner:     c.owner,
		InvoiceID: c.id,
		OptionID:  b.OptionID,
		Outcome:   invoice.Outcome(b.Outcome),
	}
	if b.Amount != "" {
		var err error
		if params.Amount, err = positiveAmount("amount", b.Amount); err != nil {
			return nil, err
		}
	}

	prepared, err := a.Invoices.PrepareSimulate(ctx, params)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		out, err := prepared(ctx, tx)
		return a.invoiceResource(out.Invoice, err)
	}, nil
}

// simulateDepositPayment pays to a reusable address in test mode.
func (a *api) simulateDepositPayment(
	ctx context.Context,
	c *call,
	b simulateDepositBody,
) (commit[engine.PaymentResource], error) {
	params := invoice.SimulateParams{
		Owner:            c.owner,
		DepositAddressID: c.id,
		Asset:            b.Asset,
		Outcome:          invoice.Outcome(b.Outcome),
	}
	if b.Amount != "" {
		var err error
		if params.Amount, err = positiveAmount("amount", b.Amount); err != nil {
			return nil, err
		}
	}

	prepared, err := a.Invoices.PrepareSimulate(ctx, params)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (engine.PaymentResource, error) {
		out, err := prepared(ctx, tx)
		if err != nil {
			return engine.PaymentResource{}, err
		}

		return a.simulatedPayment(ctx, tx, out.Payment)
	}, nil
}

// simulatedPayment renders a simulated payment with the settlement that its events' reactions opened. It has
// no block, so it is rendered at tip 0.
func (a *api) simulatedPayment(
	ctx context.Context,
	tx payments.Tx,
	payment invoice.Payment,
) (engine.PaymentResource, error) {
	resource := engine.PaymentResource{PaymentResource: payment.Resource(0)}
	if err := a.React(ctx, tx); err != nil {
		return resource, err
	}

	settlements, err := tx.SettlementsOfPayments(ctx, []string{payment.ID})
	if err != nil {
		return resource, err
	}

	for _, s := range settlements {
		settled := s.Resource()
		resource.Settlement = &settled
	}

	return resource, nil
}
