package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

type createInvoiceBody struct { // spec 4.4.1
	Price         *priceBody   `json:"price,omitempty"`
	Options       []optionBody `json:"options,omitempty" maxItems:"20" nullable:"false"`
	OrderID       string       `json:"order_id,omitempty" maxLength:"128"`
	CustomerEmail string       `json:"customer_email,omitempty" maxLength:"254" format:"idn-email"`
	Description   string       `json:"description,omitempty" maxLength:"500"`

	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"50" keyMaxLength:"40" maxLength:"500"`

	ToleranceBPS          *int   `json:"tolerance_bps,omitempty" minimum:"0" maximum:"500"`
	ExpiresIn             *int   `json:"expires_in,omitempty" minimum:"300" maximum:"604800"`
	PreSelectionExpiresIn *int   `json:"pre_selection_expires_in,omitempty" minimum:"300" maximum:"604800"`
	SuccessURL            string `json:"success_url,omitempty" maxLength:"2048" format:"uri"`
	CancelURL             string `json:"cancel_url,omitempty" maxLength:"2048" format:"uri"`
}

type priceBody struct {
	Currency string `json:"currency" pattern:"^[A-Z]{3}$" example:"EUR"`
	Amount   string `json:"amount" pattern:"^(0|[1-9][0-9]{0,30})(\\.[0-9]{1,8})?$" example:"49.90"`
}

type optionBody struct {
	Asset   string `json:"asset" minLength:"1" maxLength:"16" example:"USDC"`
	Network string `json:"network" minLength:"2" maxLength:"32" example:"ethereum"`
	Amount  string `json:"amount,omitempty" pattern:"^(0|[1-9][0-9]{0,71})$"`
}

type invoiceStatus = invoice.Status

type invoiceQuery struct {
	Status []invoiceStatus `query:"status" enum:"open,pending,underpaid,paid,expired,canceled,refunded" maxLength:"256"`

	Network       []string  `query:"network" maxLength:"256"`
	OrderID       string    `query:"order_id" maxLength:"128"`
	Q             string    `query:"q" maxLength:"254"`
	CreatedAfter  time.Time `query:"created_after"`
	CreatedBefore time.Time `query:"created_before"`
}

type invoicePaymentsQuery struct { // spec 4.12.1
	Status []invoice.PaymentStatus `query:"status" enum:"detected,confirmed,orphaned,dropped" maxLength:"256"`
}

// selectErrors are the error codes of operations that select an option.
var selectErrors = []string{
	"409 invoice_payment_pending",
	"409 invoice_not_open",
	"409 invoice_expired",
	"422 amount_too_small",
	"422 amount_too_large",
	"422 address_unsupported",
	"503 price_unavailable",
}

// invoices returns the operations that create and read invoices and their payments.
func (a *api) invoices() []operation {
	const tag = "Invoices"

	return []operation{
		write(operation{
			id:         "createInvoice",
			method:     "POST",
			path:       "/v1/invoices",
			tag:        tag,
			scope:      account.InvoicesWrite,
			summary:    "Create an invoice",
			claimFirst: true,
			codes: []string{
				"422 asset_not_enabled",
				"422 amount_too_small",
				"422 amount_too_large",
				"422 address_unsupported",
				"503 price_unavailable",
			},
		}, a.createInvoice),
		list(operation{
			id:      "listInvoices",
			path:    "/v1/invoices",
			tag:     tag,
			scope:   account.InvoicesRead,
			summary: "List invoices, newest first",
		}, a.listInvoices),
		get(operation{
			id:      "getInvoice",
			path:    "/v1/invoices/{id}",
			tag:     tag,
			scope:   account.InvoicesRead,
			summary: "Read an invoice",
		}, a.getInvoice),
		list(operation{
			id:      "listInvoicePayments",
			path:    "/v1/invoices/{id}/payments",
			tag:     tag,
			scope:   account.PaymentsRead,
			summary: "List the payments to an invoice, newest first",
		}, a.listInvoicePayments),
	}
}

// invoiceActions returns the operations that change an invoice.
func (a *api) invoiceActions() []operation {
	const tag = "Invoices"

	return []operation{
		write(operation{
			id:      "cancelInvoice",
			method:  "POST",
			path:    "/v1/invoices/{id}/cancel",
			tag:     tag,
			scope:   account.InvoicesWrite,
			summary: "Cancel an open or underpaid invoice",
			codes:   []string{"409 invoice_payment_pending", "409 invoice_not_open"},
		}, a.cancelInvoice),
		write(operation{
			id:      "acceptInvoice",
			method:  "POST",
			path:    "/v1/invoices/{id}/accept",
			tag:     tag,
			scope:   account.InvoicesWrite,
			summary: "Take what arrived as payment, late or too little",
			codes: []string{
				"409 invoice_has_no_payment",
				"409 invoice_payment_pending",
				"409 invoice_refunded",
			},
		}, a.acceptInvoice),
		write(operation{
			id:      "acceptLatePayment",
			method:  "POST",
			path:    "/v1/invoices/{id}/accept_late_payment",
			tag:     tag,
			scope:   account.InvoicesWrite,
			summary: "Take what arrived after the invoice expired or was canceled",
			codes:   []string{"409 invoice_has_no_payment", "409 invoice_not_late", "409 invoice_refunded"},
		}, a.acceptLatePayment),
		write(operation{
			id:      "selectOption",
			method:  "POST",
			path:    "/v1/invoices/{id}/options/{option_id}/select",
			tag:     tag,
			scope:   account.InvoicesWrite,
			summary: "Choose how an invoice is paid: gives the option its address and amount",
			codes:   selectErrors,
		}, a.selectOption),
		write(operation{
			id:      "renewCheckoutURL",
			method:  "POST",
			path:    "/v1/invoices/{id}/renew_checkout_url",
			tag:     tag,
			scope:   account.InvoicesWrite,
			summary: "Give an invoice a new checkout link and revoke the old one",
			description: "The old checkout_url answers 404 from then on, and pages that are open on it are no longer " +
				"updated. Addresses, quotes and payments stay as they are.",
		}, a.renewCheckoutURL),
	}
}

// createInvoice prepares an invoice and returns its commit.
func (a *api) createInvoice(
	ctx context.Context,
	c *call,
	b createInvoiceBody,
) (commit[invoice.Resource], error) {
	options, err := b.optionParams()
	if err != nil {
		return nil, err
	}

	params := invoice.CreateParams{
		Owner:                 c.owner,
		Options:               options,
		OrderID:               b.OrderID,
		CustomerEmail:         b.CustomerEmail,
		Description:           b.Description,
		Metadata:              b.Metadata,
		ToleranceBPS:          b.ToleranceBPS,
		ExpiresIn:             seconds(b.ExpiresIn),
		PreSelectionExpiresIn: seconds(b.PreSelectionExpiresIn),
		SuccessURL:            b.SuccessURL,
		CancelURL:             b.CancelURL,
	}
	if b.Price != nil {
		params.Price = &invoice.Price{Currency: b.Price.Currency, Amount: b.Price.Amount}
	}

	prepared, err := a.Invoices.PrepareCreate(ctx, params)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(prepared(ctx, tx))
	}, nil
}

// optionParams returns the body's options. An amount must be above 0, and is allowed only without a price.
func (b *createInvoiceBody) optionParams() ([]invoice.OptionParams, error) {
	if b.Options != nil && len(b.Options) == 0 {
		return nil, invalid(
			"options",
			"options is empty: name at least one, or leave it out to offer every asset that is enabled",
		)
	}

	var options []invoice.OptionParams

	for i, o := range b.Options {
		option := invoice.OptionParams{Asset: o.Asset, Network: o.Network}
		param := func() string { return "options[" + strconv.Itoa(i) + "].amount" }

		if o.Amount != "" && b.Price != nil {
			return nil, invalid(param(), "an invoice with a price has no amounts in its options")
		}

		if o.Amount != "" {
			var err error
			if option.Amount, err = positiveAmount(param(), o.Amount); err != nil {
				return nil, err
			}
		}

		options = append(options, option)
	}

	return options, nil
}

// listInvoices lists invoices.
func (a *api) listInvoices(ctx context.Context, c *call, q invoiceQuery) (page[invoice.Resource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[invoice.Resource]{}, err
	}

	found, more, err := a.Invoices.List(ctx, invoice.Filter{
		Owner:         c.owner,
		Statuses:      q.Status,
		Networks:      q.Network,
		OrderID:       q.OrderID,
		Q:             q.Q,
		CreatedAfter:  q.CreatedAfter,
		CreatedBefore: q.CreatedBefore,
		After:         c.after,
		Limit:         c.limit,
	})

	return pageOf(
		found, more, err,
		func(inv invoice.Invoice) invoice.Resource { return inv.Resource(a.CheckoutBase()) },
		func(inv invoice.Invoice) string { return inv.ID },
	)
}

// getInvoice reads an invoice.
func (a *api) getInvoice(ctx context.Context, c *call, _ none) (invoice.Resource, error) {
	return a.invoiceResource(a.Invoices.Get(ctx, c.owner, c.id))
}

// cancelInvoice cancels an open or underpaid invoice.
func (a *api) cancelInvoice(_ context.Context, c *call, _ none) (commit[invoice.Resource], error) {
	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(a.Invoices.In(tx).Cancel(ctx, c.owner, c.id))
	}, nil
}

// acceptInvoice accepts a late or too small amount as payment.
func (a *api) acceptInvoice(_ context.Context, c *call, _ none) (commit[invoice.Resource], error) {
	// spec 4.3.1
	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(a.Invoices.In(tx).Accept(ctx, c.owner, c.id, true))
	}, nil
}

// acceptLatePayment accepts the amount that arrived after the invoice expired or was canceled.
func (a *api) acceptLatePayment(_ context.Context, c *call, _ none) (commit[invoice.Resource], error) {
	// spec 4.2.1
	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(a.Invoices.In(tx).Accept(ctx, c.owner, c.id, false))
	}, nil
}

// selectOption prepares the option's address and quote and returns the commit that selects it.
func (a *api) selectOption(
	ctx context.Context,
	c *call,
	_ none,
) (commit[invoice.Resource], error) {
	choose, err := a.Invoices.PrepareSelect(ctx, &c.owner, c.id, c.optionID)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(choose(ctx, tx))
	}, nil
}

// renewCheckoutURL gives an invoice a new checkout link and revokes the old one.
func (a *api) renewCheckoutURL(_ context.Context, c *call, _ none) (commit[invoice.Resource], error) {
	return func(ctx context.Context, tx payments.Tx) (invoice.Resource, error) {
		return a.invoiceResource(a.Invoices.In(tx).RenewCheckout(ctx, c.owner, c.id))
	}, nil
}

// listInvoicePayments lists the payments to an invoice with their settlements.
func (a *api) listInvoicePayments(
	ctx context.Context,
	c *call,
	q invoicePaymentsQuery,
) (page[engine.PaymentResource], error) {
	if _, err := a.Invoices.Get(ctx, c.owner, c.id); err != nil {
		return page[engine.PaymentResource]{}, err
	}

	return a.paymentsPage(
		ctx,
		invoice.PaymentFilter{
			Owner:     c.owner,
			InvoiceID: c.id,
			Statuses:  q.Status,
			After:     c.after,
			Limit:     c.limit,
		},
	)
}

// invoiceResource renders an invoice, or returns err.
func (a *api) invoiceResource(inv invoice.Invoice, err error) (invoice.Resource, error) {
	if err != nil {
		return invoice.Resource{}, err
	}

	return inv.Resource(a.CheckoutBase()), nil
}

// seconds converts a number of seconds to a duration, 0 for nil.
func seconds(n *int) time.Duration {
	if n == nil {
		return 0
	}

	return time.Duration(*n) * time.Second
}

// amount parses base units; the error is fault.Invalid and names the field.
func amount(param, text string) (chain.Amount, error) {
	parsed, err := chain.ParseAmount(text)
	if err != nil {
		return chain.Amount{}, invalid(param, "%s", err)
	}

	return parsed, nil
}

// positiveAmount is amount, and refuses 0 as fault.Invalid with code amount_too_small.
func positiveAmount(param, text string) (chain.Amount, error) {
	parsed, err := amount(param, text)
	if err == nil && parsed.IsZero() {
		err = fault.Param(param, "amount_too_small", "%s must be at least 1 base unit", param)
	}

	return parsed, err
}
