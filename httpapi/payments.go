package httpapi

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

type paymentQuery struct {
	Status           []invoice.PaymentStatus `query:"status" enum:"detected,confirmed,orphaned,dropped" maxLength:"256"`
	Network          []string                `query:"network" maxLength:"256"`
	InvoiceID        string                  `query:"invoice_id" pattern:"^[0-9a-f]{24}$"`
	DepositAddressID string                  `query:"deposit_address_id" pattern:"^[0-9a-f]{24}$"`
	Q                string                  `query:"q" maxLength:"128"`
	DetectedAfter    time.Time               `query:"detected_after"`
	DetectedBefore   time.Time               `query:"detected_before"`
}

// payments returns the operations on payments.
func (a *api) payments() []operation {
	const tag = "Payments"

	return []operation{
		list(operation{
			id:      "listPayments",
			path:    "/v1/payments",
			tag:     tag,
			scope:   account.PaymentsRead,
			summary: "List payments, newest first, each with its settlement",
		}, a.listPayments),
		get(operation{
			id:      "getPayment",
			path:    "/v1/payments/{id}",
			tag:     tag,
			scope:   account.PaymentsRead,
			summary: "Read a payment with its settlement",
		}, a.getPayment),
	}
}

// listPayments lists payments with their settlements.
func (a *api) listPayments(
	ctx context.Context,
	c *call,
	q paymentQuery,
) (page[engine.PaymentResource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[engine.PaymentResource]{}, err
	}

	return a.paymentsPage(ctx, invoice.PaymentFilter{
		Owner:            c.owner,
		Statuses:         q.Status,
		Networks:         q.Network,
		InvoiceID:        q.InvoiceID,
		DepositAddressID: q.DepositAddressID,
		Q:                q.Q,
		DetectedAfter:    q.DetectedAfter,
		DetectedBefore:   q.DetectedBefore,
		After:            c.after,
		Limit:            c.limit,
	})
}

// getPayment reads a payment with its settlement.
func (a *api) getPayment(ctx context.Context, c *call, _ none) (engine.PaymentResource, error) {
	p, err := a.Invoices.Payment(ctx, c.owner, c.id)
	if err != nil {
		return engine.PaymentResource{}, err
	}

	shown, err := a.PaymentResources(ctx, p)
	if err != nil {
		return engine.PaymentResource{}, err
	}

	return shown[0], nil
}

// paymentsPage lists payments with their settlements. Each page costs three queries, and one per account.
func (a *api) paymentsPage(
	ctx context.Context,
	f invoice.PaymentFilter,
) (page[engine.PaymentResource], error) {
	found, more, err := a.Invoices.ListPayments(ctx, f)
	if err != nil {
		return page[engine.PaymentResource]{}, err
	}

	shown, err := a.PaymentResources(ctx, found...)

	return pageOf(
		shown, more, err, func(r engine.PaymentResource) engine.PaymentResource { return r },
		func(r engine.PaymentResource) string { return r.ID },
	)
}

type settlementQuery struct {
	Status []settlement.Status `query:"status" enum:"pending,held,releasing,released,failed,reverted" maxLength:"256"`

	Network          []string  `query:"network" maxLength:"256"`
	PaymentID        string    `query:"payment_id" pattern:"^[0-9a-f]{24}$"`
	InvoiceID        string    `query:"invoice_id" pattern:"^[0-9a-f]{24}$"`
	DepositAddressID string    `query:"deposit_address_id" pattern:"^[0-9a-f]{24}$"`
	CreatedAfter     time.Time `query:"created_after"`
	CreatedBefore    time.Time `query:"created_before"`
}

// settlements returns the operations on settlements.
func (a *api) settlements() []operation {
	const tag = "Settlements"

	return []operation{
		list(operation{
			id:      "listSettlements",
			path:    "/v1/settlements",
			tag:     tag,
			scope:   account.SettlementsRead,
			summary: "List settlements, newest first",
		}, a.listSettlements),
		get(operation{
			id:      "getSettlement",
			path:    "/v1/settlements/{id}",
			tag:     tag,
			scope:   account.SettlementsRead,
			summary: "Read a settlement",
		}, a.getSettlement),
	}
}

// listSettlements lists settlements.
func (a *api) listSettlements(
	ctx context.Context,
	c *call,
	q settlementQuery,
) (page[settlement.Resource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[settlement.Resource]{}, err
	}

	found, more, err := a.Settlements.List(ctx, settlement.Filter{
		Owner:            c.owner,
		Statuses:         q.Status,
		Networks:         q.Network,
		PaymentID:        q.PaymentID,
		InvoiceID:        q.InvoiceID,
		DepositAddressID: q.DepositAddressID,
		CreatedAfter:     q.CreatedAfter,
		CreatedBefore:    q.CreatedBefore,
		After:            c.after,
		Limit:            c.limit,
	})
	if err != nil {
		return page[settlement.Resource]{}, err
	}

	shown, err := a.SettlementResources(ctx, found...)

	return pageOf(
		shown, more, err, func(r settlement.Resource) settlement.Resource { return r },
		func(r settlement.Resource) string { return r.ID },
	)
}

// getSettlement reads a settlement.
func (a *api) getSettlement(ctx context.Context, c *call, _ none) (settlement.Resource, error) {
	s, err := a.Settlements.Get(ctx, c.owner, c.id)
	if err != nil {
		return settlement.Resource{}, err
	}

	shown, err := a.SettlementResources(ctx, s)
	if err != nil {
		return settlement.Resource{}, err
	}

	return shown[0], nil
}
