// Package invoice holds invoices with their options and quotes, payments, and reusable deposit addresses.
//
// The state machines in invoice.go, close.go, accept.go, refund.go and internal/invoicestate (payments) are
// pure: a record, an input and a time give a record and events. Service has the merchant's operations. Each
// loads records, moves them and saves them in one transaction. Payments come from networks through the
// Ingester (internal/ingest). Settlements open in reaction to the events of this package, which does not
// import them.
//
// It is one package because an invoice, its payments and a deposit address move each other in one
// transaction, by one set of transition functions.
package invoice

import (
	"cmp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Kind is how an invoice is priced: in fiat money or in crypto.
type Kind string

// The kinds of specification 2.2.
const (
	Fiat   Kind = "fiat"
	Crypto Kind = "crypto"
)

// Status is the status of an invoice.
type Status string // spec 2.2.2

// The statuses of specification 3.1.
const (
	Open      Status = "open"
	Pending   Status = "pending"
	Underpaid Status = "underpaid"
	Paid      Status = "paid"
	Expired   Status = "expired"
	Canceled  Status = "canceled"
	Refunded  Status = "refunded"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{Open, Pending, Underpaid, Paid, Expired, Canceled, Refunded}
}

// Flag is a detail of an invoice's outcome.
type Flag string // spec 2.2.3

// The flags of specification 2.2.
const (
	Overpaid          Flag = "overpaid"
	Late              Flag = "late"
	UnderpaidAccepted Flag = "underpaid_accepted"
	PartiallyRefunded Flag = "partially_refunded"
)

// Invoice is one request for payment: the amount due, the assets, and the amounts that arrived.
type Invoice struct {
	ID     string
	Owner  event.Owner
	Number int64
	Kind   Kind
	Status Status
	// Flags are in the order of the constants. They are computed from the payments every time, except Late
	// and UnderpaidAccepted, which an acceptance sets.
	Flags []Flag
	// Currency and Price are set for fiat invoices: ISO 4217 and an amount above 0 with at most 8 places.
	Currency string
	Price    decimal.Decimal
	Options  []Option
	// SelectedOptionID is the latest selection; PaidOptionID is the option of the payment that completed the
	// amount.
	SelectedOptionID, PaidOptionID string
	// ToleranceBPS is the allowed shortfall in basis points, 0 to 500.
	ToleranceBPS int
	// AcceptLate is the account's setting at creation: late payments are accepted automatically.
	AcceptLate                          bool
	OrderID, CustomerEmail, Description string
	Metadata                            map[string]string
	SuccessURL, CancelURL               string
	// CheckoutToken is the part of the checkout link after the id: "" at first, then 128 random bits as hex
	// once the link was renewed.
	CheckoutToken                    string
	ExpiresAt, PreSelectionExpiresAt time.Time
	CreatedAt                        time.Time
	PaidAt, ExpiredAt, CanceledAt    time.Time
	RefundedAt                       time.Time
	// ClosedAs is Expired or Canceled if the invoice became that before it was paid or refunded. A reversal
	// restores it.
	ClosedAs Status
	// Accepted are the sums that were confirmed when the payment was accepted, in base units. They are by
	// option id, or by asset id for payments that pay no option.
	Accepted map[string]chain.Amount `json:",omitempty"`
	// Refunds are the sums of refunds that succeeded or may still succeed.
	Refunds Refunds
	// Simulated is set when it has a simulated payment (test mode).
	Simulated bool
	// DueAt is when the worker handles it next (expiry); zero for never.
	DueAt time.Time
	// Sequence is the sequence number of its latest event.
	Sequence int64
	// Version is set by the store; see store.Tx.
	Version int64
}

// Refunds sums the refunds of an invoice in base units, by the id of the payment's asset.
type Refunds struct {
	// Pending are refunds that have neither failed nor succeeded; Succeeded are those that arrived.
	Pending, Succeeded map[string]chain.Amount `json:",omitempty"`
}

// Has reports whether a flag is set.
func (inv *Invoice) Has(f Flag) bool { return slices.Contains(inv.Flags, f) }

// set sets or clears a flag.
func (inv *Invoice) set(f Flag, on bool) {
	inv.Flags = slices.DeleteFunc(inv.Flags, func(other Flag) bool { return other == f })
	if on {
		inv.Flags = append(inv.Flags, f)
		slices.SortFunc(inv.Flags, func(a, b Flag) int { return cmp.Compare(flagOrder(a), flagOrder(b)) })
	}
}

// flagOrder returns the position of a flag among the constants.
func flagOrder(f Flag) int {
	return slices.Index([]Flag{Overpaid, Late, UnderpaidAccepted, PartiallyRefunded}, f)
}
