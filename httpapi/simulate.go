package httpapi

import (
	"context"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

type simulateInvoiceBody struct {
	Outcome  string `json:"outcome" enum:"detected,paid,underpaid,overpaid,late,orphaned,dropped"`
	OptionID string `json:"option_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	Amount   string `json:"amount,omitempty" pattern:"^[0-9]{1,78}$"`
}

type simulateDepositBody struct {
	Asset   string `json:"asset" maxLength:"16"`
	Amount  string `json:"amount,omitempty" pattern:"^[0-9]{1,78}$"`
	Outcome string `json:"outcome" enum:"detected,confirmed,orphaned,dropped"`
}

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
			codes:    selecting,
		}, func(
			ctx context.Context,
			c *call,
			b simulateInvoiceBody,
		) (func(context.Context, store.Tx) (invoice.Resource, error), error) {
			p := invoice.SimulateParams{
				Owner:     c.owner,
				InvoiceID: c.id,
				OptionID:  b.OptionID,
				Outcome:   invoice.Outcome(b.Outcome),
			}
			if b.Amount != "" {
				v, err := amount("amount", b.Amount)
				if err != nil {
					return nil, err
				}

				p.Amount = v
			}

			prepared, err := a.Invoices.PrepareSimulate(ctx, p)
			if err != nil {
				return nil, err
			}

			return func(ctx context.Context, tx store.Tx) (invoice.Resource, error) {
				inv, _, err := a.Invoices.SimulateTx(ctx, tx, prepared)
				return a.shown(inv, err)
			}, nil
		}),
		write(operation{
			id:       "simulateDepositPayment",
			method:   "POST",
			path:     "/v1/test/deposit_addresses/{id}/simulate_payment",
			tag:      tag,
			scope:    account.DepositAddressesWrite,
			testOnly: true,
			summary:  "Pay to a reusable address without a network",
			codes:    []string{"422 asset_not_enabled"},
		}, func(
			ctx context.Context,
			c *call,
			b simulateDepositBody,
		) (func(context.Context, store.Tx) (engine.PaymentResource, error), error) {
			p := invoice.SimulateParams{
				Owner:            c.owner,
				DepositAddressID: c.id,
				Asset:            b.Asset,
				Outcome:          invoice.Outcome(b.Outcome),
			}
			if b.Amount != "" {
				v, err := amount("amount", b.Amount)
				if err != nil {
					return nil, err
				}

				p.Amount = v
			}

			prepared, err := a.Invoices.PrepareSimulate(ctx, p)
			if err != nil {
				return nil, err
			}

			return func(ctx context.Context, tx store.Tx) (engine.PaymentResource, error) {
				_, p, err := a.Invoices.SimulateTx(ctx, tx, prepared)
				if err != nil {
					return engine.PaymentResource{}, err
				}

				return a.simulatedPayment(ctx, tx, p)
			}, nil
		}),
	}
}

// simulatedPayment renders a payment with the settlement that a reaction made of it. It is in no
// block, so no tip counts.
func (a *api) simulatedPayment(
	ctx context.Context,
	tx store.Tx,
	p invoice.Payment,
) (engine.PaymentResource, error) {
	r := engine.PaymentResource{PaymentResource: p.Resource(0)}
	if err := a.React(ctx, tx); err != nil {
		return r, err
	}

	settlements, err := tx.SettlementsOfPayments(ctx, []string{p.ID})
	if err != nil {
		return r, err
	}

	for _, s := range settlements {
		settled := s.Resource()
		r.Settlement = &settled
	}

	return r, nil
}
