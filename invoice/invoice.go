// Package invoice holds invoices with their options and quotes, payments, and reusable deposit addresses.
//
// The state machines in invoice.go, close.go, accept.go, refund.go and payment_transitions.go are pure: a
// record, an input and a time give a record and events. Service has the merchant's operations: it
// loads records, moves them and saves them, one transaction per operation. Payments come from
// networks through the Ingester (internal/ingest). Settlements open in reaction to the events of this
// package, which does not import them.
//
// It is one package because an invoice, its payments and a deposit address move each other in one transaction,
// by one set of transition functions.
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

// Invoice is one request for payment: what is due, in which assets, and what arrived.
type Invoice struct {
	ID     string
	Owner  event.Owner
	Number int64
	Kind   Kind
	Status Status
	// Flags are in the order of the constants; computed from the payments every time, except Late and
	// UnderpaidAccepted, which an acceptance sets.
	Flags []Flag
	// Currency and Price are set for fiat invoices: ISO 4217 and an amount above 0 with at most 8 places.
	Currency string
	Price    decimal.Decimal
	Options  []Option
	// SelectedOptionID is the latest selection; PaidOptionID the option of the payment that made it enough.
	SelectedOptionID, PaidOptionID string
	// ToleranceBPS is the allowed shortfall in basis points, 0 to 500.
	ToleranceBPS int
	// AcceptLate is the account's setting at creation: late payments are accepted automatically.
	AcceptLate                          bool
	OrderID, CustomerEmail, Description string
	Metadata                            map[string]string
	SuccessURL, CancelURL               string
	// CheckoutToken is what the checkout link has after the id: "" at first, 128 random bits as hex once the
	// link was renewed.
	CheckoutToken                    string
	ExpiresAt, PreSelectionExpiresAt time.Time
	CreatedAt                        time.Time
	PaidAt, ExpiredAt, CanceledAt    time.Time
	RefundedAt                       time.Time
	// ClosedAs is Expired or Canceled when the invoice became that before it was paid or refunded. A reversal
	// restores it.
	ClosedAs Status
	// Refunds are the sums of refunds that succeeded or may still succeed.
	Refunds Refunds
	// Simulated is set when it has a simulated payment (test mode).
	Simulated bool
	// DueAt is when the worker handles it next (expiry); zero when never.
	DueAt time.Time
	// Sequence is that of the latest event about it.
	Sequence int64
	// Version is the store's; see store.Tx.
	Version int64
}

// Refunds sums the refunds of an invoice, per payment asset in base units by asset id.
type Refunds struct {
	// Pending are refunds that have not failed and not succeeded; Succeeded those that arrived.
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

// Recompute derives sums, status, flags, times and DueAt from all payments to the invoice, and returns the
// events of a change of status. It is idempotent: the same payments give the same invoice, in whatever order
// they arrived. It keeps what payments do not determine: ClosedAs, the refunds, and an acceptance (flags Late
// and UnderpaidAccepted).
func (inv *Invoice) Recompute(payments []Payment, now time.Time) []event.Type {
	r := inv.receive(payments)
	standing := inv.standing(r)

	// An acceptance covers what had been received when it was made. Once some of that is gone it holds only
	// if what is left is enough by itself.
	if inv.accepted() && (!r.any || r.less && standing != Paid) {
		inv.set(Late, false)
		inv.set(UnderpaidAccepted, false)
	}

	before, next := inv.Status, standing
	switch {
	case before == Refunded:
		next = Refunded
	case inv.refundedInFull(payments):
		next = Refunded
	case inv.accepted():
		next = Paid
	case inv.ClosedAs != "" && standing == Paid && inv.AcceptLate && !inv.refunding(): // spec D2.3.12
		inv.set(Late, true)

		next = Paid
	case inv.ClosedAs != "":
		next = inv.ClosedAs
	}

	inv.Status = next

	switch {
	case next == Paid && before != Paid:
		inv.PaidAt = now
	case next == Refunded && before != Refunded:
		inv.RefundedAt = now
	case next != Paid && next != Refunded:
		inv.PaidAt = time.Time{}
	}

	inv.PaidOptionID = ""
	if !inv.PaidAt.IsZero() {
		inv.PaidOptionID = inv.payingOption(payments)
	}

	inv.set(Overpaid, !inv.PaidAt.IsZero() && inv.overpaid(r))
	inv.set(PartiallyRefunded, next != Refunded && positive(inv.Refunds.Succeeded))
	inv.Schedule()

	return statusEvents(before, next)
}

// statusEvents returns the event of a change of status. An invoice that waits for nothing any more returns
// from pending to open or underpaid as invoice.reopened (decisions 11).
func statusEvents(before, next Status) []event.Type { // spec 6.5
	switch {
	case before == next:
		return nil
	case before == Paid && next != Refunded: // spec D2.3.6
		return []event.Type{event.InvoicePaymentReversed}
	case before == Pending && next == Open: // spec D11.1
		return []event.Type{event.InvoiceReopened}
	case before == Pending && next == Underpaid:
		return []event.Type{event.InvoiceReopened, event.InvoiceUnderpaid}
	}

	switch next {
	case Pending:
		return []event.Type{event.InvoicePending}
	case Underpaid:
		return []event.Type{event.InvoiceUnderpaid}
	case Paid:
		return []event.Type{event.InvoicePaid}
	case Expired:
		return []event.Type{event.InvoiceExpired}
	case Canceled:
		return []event.Type{event.InvoiceCanceled}
	case Refunded:
		return []event.Type{event.InvoiceRefunded}
	case Open:
		// The payment's own event is enough.
	}

	return nil
}
