package httpapi

import (
	"context"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

type createDepositBody struct {
	Network  string            `json:"network" minLength:"2" maxLength:"32" example:"ethereum"`
	Name     string            `json:"name,omitempty" maxLength:"64"`
	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"50" keyMaxLength:"40" maxLength:"500"`
}

type updateDepositBody struct {
	Name     *string                `json:"name,omitempty" maxLength:"64"`
	Metadata *map[string]string     `json:"metadata,omitempty" maxProperties:"50" keyMaxLength:"40" maxLength:"500"`
	Status   *invoice.DepositStatus `json:"status,omitempty" enum:"active,disabled"`
}

type depositQuery struct {
	Status  []invoice.DepositStatus `query:"status" enum:"active,disabled" maxLength:"64"`
	Network []string                `query:"network" maxLength:"256"`
	Q       string                  `query:"q" maxLength:"128"`
}

// depositAddresses returns the operations on reusable addresses.
func (a *api) depositAddresses() []operation {
	const tag = "Deposit addresses"

	return []operation{
		write(operation{
			id:      "createDepositAddress",
			method:  "POST",
			path:    "/v1/deposit_addresses",
			tag:     tag,
			scope:   account.DepositAddressesWrite,
			summary: "Create a reusable address",
			codes: []string{
				"409 deposit_address_limit_exceeded",
				"422 address_unsupported",
			},
		}, a.createDepositAddress),
		list(operation{
			id:      "listDepositAddresses",
			path:    "/v1/deposit_addresses",
			tag:     tag,
			scope:   account.DepositAddressesRead,
			summary: "List reusable addresses, newest first",
		}, a.listDepositAddresses),
		get(operation{
			id:      "getDepositAddress",
			path:    "/v1/deposit_addresses/{id}",
			tag:     tag,
			scope:   account.DepositAddressesRead,
			summary: "Read a reusable address",
		}, a.getDepositAddress),
		write(operation{
			id:      "updateDepositAddress",
			method:  "PATCH",
			path:    "/v1/deposit_addresses/{id}",
			tag:     tag,
			scope:   account.DepositAddressesWrite,
			summary: "Change a reusable address's name, metadata or status",
		}, a.updateDepositAddress),
		list(operation{
			id:      "listDepositPayments",
			path:    "/v1/deposit_addresses/{id}/payments",
			tag:     tag,
			scope:   account.PaymentsRead,
			summary: "List the payments to a reusable address, newest first, each with its settlement",
		}, a.listDepositPayments),
	}
}

// createDepositAddress creates a reusable address.
func (a *api) createDepositAddress(
	ctx context.Context,
	c *call,
	b createDepositBody,
) (commit[invoice.DepositResource], error) {
	if err := a.checkNetworks(c, b.Network); err != nil {
		return nil, err
	}

	prepared, err := a.Invoices.PrepareDeposit(
		ctx,
		invoice.DepositParams{Owner: c.owner, Network: b.Network, Name: b.Name, Metadata: b.Metadata},
	)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (invoice.DepositResource, error) {
		return a.depositResource(prepared(ctx, tx))
	}, nil
}

// listDepositAddresses lists reusable addresses.
func (a *api) listDepositAddresses(
	ctx context.Context,
	c *call,
	q depositQuery,
) (page[invoice.DepositResource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[invoice.DepositResource]{}, err
	}

	found, more, err := a.Invoices.ListDeposits(ctx, invoice.DepositFilter{
		Owner:    c.owner,
		Statuses: q.Status,
		Networks: q.Network,
		Q:        q.Q,
		After:    c.after,
		Limit:    c.limit,
	})

	rows := make([]invoice.DepositResource, len(found))
	for i, d := range found {
		rows[i], err = a.depositResource(d, err)
	}

	return pageOf(
		rows, more, err,
		func(r invoice.DepositResource) invoice.DepositResource { return r },
		func(r invoice.DepositResource) string { return r.ID },
	)
}

// getDepositAddress reads a reusable address.
func (a *api) getDepositAddress(ctx context.Context, c *call, _ none) (invoice.DepositResource, error) {
	return a.depositResource(a.Invoices.GetDeposit(ctx, c.owner, c.id))
}

// depositResource returns a deposit address as the API shows it, or the error with which it was read.
func (a *api) depositResource(d invoice.DepositAddress, err error) (invoice.DepositResource, error) {
	if err != nil {
		return invoice.DepositResource{}, err
	}

	accounts, err := a.Invoices.TokenAccounts(d)

	return d.Resource(accounts), err
}

// updateDepositAddress changes the fields that are in the body.
func (a *api) updateDepositAddress(
	_ context.Context,
	c *call,
	b updateDepositBody,
) (commit[invoice.DepositResource], error) {
	return func(ctx context.Context, tx payments.Tx) (invoice.DepositResource, error) {
		return a.depositResource(a.Invoices.In(tx).UpdateDeposit(
			ctx, c.owner, c.id,
			invoice.DepositUpdate{Name: b.Name, Metadata: b.Metadata, Status: b.Status},
		))
	}, nil
}

// listDepositPayments lists the payments to a reusable address.
func (a *api) listDepositPayments(
	ctx context.Context,
	c *call,
	q invoicePaymentsQuery,
) (page[engine.PaymentResource], error) {
	if _, err := a.Invoices.GetDeposit(ctx, c.owner, c.id); err != nil {
		return page[engine.PaymentResource]{}, err
	}

	return a.paymentsPage(
		ctx,
		invoice.PaymentFilter{
			Owner:            c.owner,
			DepositAddressID: c.id,
			Statuses:         q.Status,
			After:            c.after,
			Limit:            c.limit,
		},
	)
}
