// Package invoice knows what is owed and what arrived: invoices with their options and quotes, payments,
// and reusable deposit addresses.
//
// The state machines in invoice.go and payment.go are pure: a record, a fact and a time give a record and
// the events to tell. Service loads, calls them and saves, one transaction per operation. The follower of
// chain/watch brings what arrived on a network (intake.go); settlements open by reaction to what is
// appended here, without this package knowing of them.
package invoice

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

// Kind says whether an invoice is priced in money or in crypto.
type Kind string

// The kinds of specification 2.2.
const (
	Fiat   Kind = "fiat"
	Crypto Kind = "crypto"
)

// Status is where an invoice stands.
type Status string

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

// Statuses lists them all.
func Statuses() []Status {
	return []Status{Open, Pending, Underpaid, Paid, Expired, Canceled, Refunded}
}

// Flag says more about an outcome.
type Flag string

// The flags of specification 2.2.
const (
	Overpaid          Flag = "overpaid"
	Late              Flag = "late"
	UnderpaidAccepted Flag = "underpaid_accepted"
	PartiallyRefunded Flag = "partially_refunded"
)

// Invoice is what is owed.
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
	// ToleranceBPS is how much too little still counts as paid, in ten-thousandths, 0 to 500.
	ToleranceBPS int
	// AcceptLate is the account's setting at creation: late money pays the invoice by itself.
	AcceptLate                          bool
	OrderID, CustomerEmail, Description string
	Metadata                            map[string]string
	SuccessURL, CancelURL               string
	ExpiresAt, PreSelectionExpiresAt    time.Time
	CreatedAt                           time.Time
	PaidAt, ExpiredAt, CanceledAt       time.Time
	RefundedAt                          time.Time
	// ClosedAs remembers that the invoice expired or was canceled before it was paid or refunded, so that a
	// reversal falls back to it.
	ClosedAs Status
	// Refunds counts what refunds took back or may still take back.
	Refunds Refunds
	// Simulated says that a simulated payment touched it (test mode).
	Simulated bool
	// DueAt is when the worker looks at it next (expiry); zero when there is nothing to wait for.
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

// Option is one way to pay: an asset on a network, with an address of its own once it was selected.
type Option struct {
	ID       string        `json:"id"`
	Network  string        `json:"network"`
	Asset    string        `json:"asset"`
	AssetID  string        `json:"asset_id"`
	Contract chain.Address `json:"contract,omitempty"`
	Decimals uint8         `json:"decimals"`
	// AmountDue is what a payer has to pay to this option in total, in base units; 0 before a quote.
	AmountDue chain.Amount `json:"amount_due"`
	// DisplayDecimals: AmountDue is a whole number of 10^(Decimals−DisplayDecimals) base units.
	DisplayDecimals uint8 `json:"display_decimals"`
	// Rate is the price of one unit in the invoice's currency; zero for crypto invoices and before a quote.
	Rate           decimal.Decimal `json:"rate"`
	QuoteExpiresAt time.Time       `json:"quote_expires_at,omitzero"`
	Address        chain.Address   `json:"address,omitempty"`
	TokenAccount   chain.Address   `json:"token_account,omitempty"`
	Key            chain.KeyRef    `json:"key"`
	SelectedAt     time.Time       `json:"selected_at,omitzero"`
	// AmountPaid and AmountDetected are the sums of confirmed and of detected payments to this option.
	AmountPaid     chain.Amount `json:"amount_paid"`
	AmountDetected chain.Amount `json:"amount_detected"`
}

// Selected reports whether the option has an address.
func (o Option) Selected() bool { return o.Address != "" }

// Option returns the option of an id, or nil.
func (inv *Invoice) Option(id string) *Option {
	for i := range inv.Options {
		if inv.Options[i].ID == id {
			return &inv.Options[i]
		}
	}
	return nil
}

// Has reports whether a flag is set.
func (inv *Invoice) Has(f Flag) bool { return slices.Contains(inv.Flags, f) }
