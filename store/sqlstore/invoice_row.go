package sqlstore

// This file holds the rows of invoices.

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// invoiceRow is a row of {invoices}.
type invoiceRow struct {
	ID string `db:"id"`
	ownerRow
	Number                int64                             `db:"number"`
	Kind                  invoice.Kind                      `db:"kind"`
	Status                invoice.Status                    `db:"status"`
	Flags                 document[[]invoice.Flag]          `db:"flags"`
	Currency              string                            `db:"currency"`
	Price                 decimal.Decimal                   `db:"price"`
	Options               document[[]invoice.Option]        `db:"options"`
	SelectedOptionID      string                            `db:"selected_option_id"`
	PaidOptionID          string                            `db:"paid_option_id"`
	ToleranceBPS          int                               `db:"tolerance_bps"`
	AcceptLate            bool                              `db:"accept_late"`
	OrderID               string                            `db:"order_id"`
	CustomerEmail         string                            `db:"customer_email"`
	Description           string                            `db:"description"`
	Metadata              document[map[string]string]       `db:"metadata"`
	SuccessURL            string                            `db:"success_url"`
	CancelURL             string                            `db:"cancel_url"`
	CheckoutToken         string                            `db:"checkout_token"`
	ExpiresAt             moment                            `db:"expires_at"`
	PreSelectionExpiresAt moment                            `db:"pre_selection_expires_at"`
	CreatedAt             moment                            `db:"created_at"`
	PaidAt                moment                            `db:"paid_at"`
	ExpiredAt             moment                            `db:"expired_at"`
	CanceledAt            moment                            `db:"canceled_at"`
	RefundedAt            moment                            `db:"refunded_at"`
	ClosedAs              invoice.Status                    `db:"closed_as"`
	Accepted              document[map[string]chain.Amount] `db:"accepted"`
	Refunds               document[invoice.Refunds]         `db:"refunds"`
	Simulated             bool                              `db:"simulated"`
	DueAt                 moment                            `db:"due_at"`
	Sequence              int64                             `db:"sequence"`
	SearchOrder           searched                          `db:"q_order,hidden"`
	SearchEmail           searched                          `db:"q_email,hidden"`
	Version               int64                             `db:"version"`
}

func invoiceRowOf(from *invoice.Invoice) invoiceRow {
	return invoiceRow{
		ID:                    from.ID,
		ownerRow:              ownerRow(from.Owner),
		Number:                from.Number,
		Kind:                  from.Kind,
		Status:                from.Status,
		Flags:                 documentOf(from.Flags),
		Currency:              from.Currency,
		Price:                 from.Price,
		Options:               documentOf(from.Options),
		SelectedOptionID:      from.SelectedOptionID,
		PaidOptionID:          from.PaidOptionID,
		ToleranceBPS:          from.ToleranceBPS,
		AcceptLate:            from.AcceptLate,
		OrderID:               from.OrderID,
		CustomerEmail:         from.CustomerEmail,
		Description:           from.Description,
		Metadata:              documentOf(from.Metadata),
		SuccessURL:            from.SuccessURL,
		CancelURL:             from.CancelURL,
		CheckoutToken:         from.CheckoutToken,
		ExpiresAt:             moment(from.ExpiresAt),
		PreSelectionExpiresAt: moment(from.PreSelectionExpiresAt),
		CreatedAt:             moment(from.CreatedAt),
		PaidAt:                moment(from.PaidAt),
		ExpiredAt:             moment(from.ExpiredAt),
		CanceledAt:            moment(from.CanceledAt),
		RefundedAt:            moment(from.RefundedAt),
		ClosedAs:              from.ClosedAs,
		Accepted:              documentOf(from.Accepted),
		Refunds:               documentOf(from.Refunds),
		Simulated:             from.Simulated,
		DueAt:                 moment(from.DueAt),
		Sequence:              from.Sequence,
		SearchOrder:           searched(from.OrderID),
		SearchEmail:           searched(from.CustomerEmail),
		Version:               from.Version,
	}
}

func (r *invoiceRow) record() invoice.Invoice {
	return invoice.Invoice{
		ID:                    r.ID,
		Owner:                 event.Owner(r.ownerRow),
		Number:                r.Number,
		Kind:                  r.Kind,
		Status:                r.Status,
		Flags:                 r.Flags.value,
		Currency:              r.Currency,
		Price:                 r.Price,
		Options:               r.Options.value,
		SelectedOptionID:      r.SelectedOptionID,
		PaidOptionID:          r.PaidOptionID,
		ToleranceBPS:          r.ToleranceBPS,
		AcceptLate:            r.AcceptLate,
		OrderID:               r.OrderID,
		CustomerEmail:         r.CustomerEmail,
		Description:           r.Description,
		Metadata:              r.Metadata.value,
		SuccessURL:            r.SuccessURL,
		CancelURL:             r.CancelURL,
		CheckoutToken:         r.CheckoutToken,
		ExpiresAt:             time.Time(r.ExpiresAt),
		PreSelectionExpiresAt: time.Time(r.PreSelectionExpiresAt),
		CreatedAt:             time.Time(r.CreatedAt),
		PaidAt:                time.Time(r.PaidAt),
		ExpiredAt:             time.Time(r.ExpiredAt),
		CanceledAt:            time.Time(r.CanceledAt),
		RefundedAt:            time.Time(r.RefundedAt),
		ClosedAs:              r.ClosedAs,
		Accepted:              r.Accepted.value,
		Refunds:               r.Refunds.value,
		Simulated:             r.Simulated,
		DueAt:                 time.Time(r.DueAt),
		Sequence:              r.Sequence,
		Version:               r.Version,
	}
}
