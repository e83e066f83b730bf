package invoice

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// PaymentStatus is the status of a payment.
type PaymentStatus string // spec 2.7.2

// The statuses of specification 3.3.
const (
	Detected  PaymentStatus = "detected"
	Confirmed PaymentStatus = "confirmed"
	Orphaned  PaymentStatus = "orphaned"
	Dropped   PaymentStatus = "dropped"
)

// PaymentStatuses returns all payment statuses.
func PaymentStatuses() []PaymentStatus {
	return []PaymentStatus{Detected, Confirmed, Orphaned, Dropped}
}

// Detection is how a payment was detected.
type Detection string // spec 2.7.4

// The ways of specification 2.7.
const (
	ByPoll      Detection = "poll"
	ByHint      Detection = "hint"
	ByBalance   Detection = "balance"
	BySimulated Detection = "simulated"
)

// Payment is a transfer to an address of ours. (Network, TxHash, TxIndex, Address, AssetID) identifies it.
// For one (Network, TxHash, TxIndex), at most one payment is neither orphaned nor dropped.
type Payment struct {
	ID     string
	Owner  event.Owner
	Status PaymentStatus
	// InvoiceID and OptionID, or DepositAddressID, are the owner of its address. OptionID is empty when the
	// asset or network is not that of the address's option; such money settles but pays nothing.
	InvoiceID, OptionID, DepositAddressID string
	// InvoiceNumber and DepositAddressName are copies for lists.
	InvoiceNumber      int64
	DepositAddressName string
	Network            string
	Asset              string
	AssetID            string
	Contract           chain.Address
	Decimals           uint8
	// Address received it; Key signs for that address. FromAddress may be empty.
	Address     chain.Address
	Key         chain.KeyRef
	FromAddress chain.Address
	// TxHash is empty while only a balance change is known. TxIndex is meaningful only if TxHash is set.
	TxHash  string
	TxIndex uint32
	Amount  chain.Amount
	// Block holds its transaction; zero while it waits in the pool.
	Block chain.Ref
	// Required is how many confirmations it needs (the fall-back depth under the finality rules).
	Required uint64
	// Rate is the price of one unit in the invoice's currency at which it is credited. Credit is amount ×
	// rate, exact. Both are set at detection, and zero without an invoice currency.
	Rate, Credit decimal.Decimal
	// USDValue is its value at the asset's price at confirmation; without a fresh price then, at the first
	// one after it. NativeUSD is the price of one native coin, read by the same rule.
	USDValue  decimal.NullDecimal
	NativeUSD decimal.NullDecimal
	// Late: confirmed after its invoice had expired or been canceled.
	Late       bool
	Simulated  bool
	DetectedBy Detection
	DetectedAt time.Time
	// ConfirmedAt is set while it is confirmed.
	ConfirmedAt time.Time
	// LostAt is when its transaction was first in neither the chain nor the pool; zero otherwise.
	LostAt time.Time
	// DueAt is when the worker handles it next (a missing price, a lost transaction); zero for never.
	DueAt    time.Time
	Sequence int64
	Version  int64
}

// EventObject returns the payment as the object of an event.
func (p Payment) EventObject() event.Object {
	return event.Object{
		Owner:     p.Owner,
		ID:        p.ID,
		InvoiceID: p.InvoiceID,
		PaymentID: p.ID,
		Sequence:  p.Sequence,
	}
}

// ConfirmationsAt returns how many blocks confirm the payment when tip is the newest block, its own
// counting as 1; 0 while it is in no block.
func (p Payment) ConfirmationsAt(tip uint64) uint64 { // spec D3.11
	if p.Block.IsZero() || p.Status == Orphaned || p.Status == Dropped || tip < p.Block.Height {
		return 0
	}

	return tip - p.Block.Height + 1
}
