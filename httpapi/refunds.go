package httpapi

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/payout"
)

type createRefundBody struct { // spec D6.2
	InvoiceID   string            `json:"invoice_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	PaymentID   string            `json:"payment_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	Amount      string            `json:"amount,omitempty" pattern:"^(0|[1-9][0-9]{0,71})$"`
	Destination string            `json:"destination" minLength:"1" maxLength:"128"`
	Reason      string            `json:"reason,omitempty" maxLength:"200"`
	Metadata    map[string]string `json:"metadata,omitempty" maxProperties:"50" keyMaxLength:"40" maxLength:"500"`
}

type refundQuery struct {
	Status        []payout.RefundStatus `query:"status" enum:"pending,succeeded,failed,canceled" maxLength:"256"`
	InvoiceID     string                `query:"invoice_id" pattern:"^[0-9a-f]{24}$"`
	PaymentID     string                `query:"payment_id" pattern:"^[0-9a-f]{24}$"`
	CreatedAfter  time.Time             `query:"created_after"`
	CreatedBefore time.Time             `query:"created_before"`
}

// refundErrors are the error codes of a new refund.
var refundErrors = append(
	[]string{
		"404 resource_missing",
		"409 refund_no_payment",
		"422 refund_payment_required",
		"422 refund_exceeds_payment",
	},
	sendErrors...,
)

// refunds returns the operations on refunds.
func (a *api) refunds() []operation {
	const tag = "Refunds"

	return []operation{
		write(operation{
			id:          "createRefund",
			method:      "POST",
			path:        "/v1/refunds",
			tag:         tag,
			scope:       account.RefundsWrite,
			idempotency: keyRequired,
			sends:       true,
			summary:     "Give back what a payer paid, from the master wallet",
			description: "The allowlists of the key and of its account hold as for payouts.",
			codes:       refundErrors,
		}, a.createRefund),
		list(operation{
			id:      "listRefunds",
			path:    "/v1/refunds",
			tag:     tag,
			scope:   account.RefundsRead,
			summary: "List refunds, newest first",
		}, a.listRefunds),
		get(operation{
			id:      "getRefund",
			path:    "/v1/refunds/{id}",
			tag:     tag,
			scope:   account.RefundsRead,
			summary: "Read a refund",
		}, a.getRefund),
		write(operation{
			id:      "cancelRefund",
			method:  "POST",
			path:    "/v1/refunds/{id}/cancel",
			tag:     tag,
			scope:   account.RefundsWrite,
			summary: "Cancel a refund whose payout is not signed yet",
			codes:   []string{"409 refund_not_pending", "409 payout_awaiting_review"},
		}, a.cancelRefund),
	}
}

// createRefund prepares a refund with its payout and returns the commit.
func (a *api) createRefund(
	ctx context.Context,
	c *call,
	b createRefundBody,
) (commit[payout.RefundResource], error) {
	destinations, err := c.key.PayoutDestinations(c.settings)
	if err != nil {
		return nil, err
	}

	params := payout.RefundParams{
		Owner:        c.owner,
		InvoiceID:    b.InvoiceID,
		PaymentID:    b.PaymentID,
		Destination:  b.Destination,
		Reason:       b.Reason,
		Metadata:     b.Metadata,
		RequestedBy:  c.requester(),
		Destinations: destinations,
	}
	if b.Amount != "" {
		refunded, err := amount("amount", b.Amount)
		if err != nil {
			return nil, err
		}

		params.Amount = &refunded
	}

	prepared, err := a.Payouts.PrepareRefund(ctx, params)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (payout.RefundResource, error) {
		r, err := a.Payouts.RefundTx(ctx, tx, prepared)
		return r.Resource(), err
	}, nil
}

// listRefunds lists refunds.
func (a *api) listRefunds(ctx context.Context, c *call, q refundQuery) (page[payout.RefundResource], error) {
	found, more, err := a.Payouts.ListRefunds(ctx, payout.RefundFilter{
		Owner:         c.owner,
		Statuses:      q.Status,
		InvoiceID:     q.InvoiceID,
		PaymentID:     q.PaymentID,
		CreatedAfter:  q.CreatedAfter,
		CreatedBefore: q.CreatedBefore,
		After:         c.after,
		Limit:         c.limit,
	})

	return pageOf(
		found, more, err, payout.Refund.Resource,
		func(r payout.Refund) string { return r.ID },
	)
}

// getRefund reads a refund.
func (a *api) getRefund(ctx context.Context, c *call, _ none) (payout.RefundResource, error) {
	r, err := a.Payouts.GetRefund(ctx, c.owner, c.id)
	if err != nil {
		return payout.RefundResource{}, err
	}

	return r.Resource(), nil
}

// cancelRefund cancels a refund whose payout is not signed yet.
func (a *api) cancelRefund(
	ctx context.Context,
	c *call,
	_ none,
) (commit[payout.RefundResource], error) {
	if err := a.Payouts.PrepareCancelRefund(ctx, c.owner, c.id); err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (payout.RefundResource, error) {
		r, err := a.Payouts.CancelRefundTx(ctx, tx, c.owner, c.id)
		return r.Resource(), err
	}, nil
}
