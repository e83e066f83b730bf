package invoice

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
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

// Payment is a transfer to an address of ours. (Network, TxHash, TxIndex, Address, AssetID) identifies it;
// of one (Network, TxHash, TxIndex) at most one is neither orphaned nor dropped.
type Payment struct {
	ID     string
	Owner  event.Owner
	Status PaymentStatus
	// InvoiceID and OptionID, or DepositAddressID: whose address it arrived at. OptionID is empty when the
	// asset or network is not that of the option the address belongs to; such money settles but pays nothing.
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
	// TxHash is empty while only a balance change is known; TxIndex means something exactly when
	// TxHash is set.
	TxHash  string
	TxIndex uint32
	Amount  chain.Amount
	// Block is where its transaction is; zero while it waits in the pool.
	Block chain.Ref
	// Required is how many confirmations it needs (the fall-back depth under the finality rules).
	Required uint64
	// Rate is the price of one unit in the invoice's currency at which it is credited, Credit =
	// amount × rate, exact; both set at detection. Zero where there is no invoice currency.
	Rate, Credit decimal.Decimal
	// USDValue is set from the price snapshot at confirmation; without a fresh price, later. NativeUSD is the
	// price of one native coin in the same snapshot.
	USDValue  decimal.NullDecimal
	NativeUSD decimal.NullDecimal
	// Late: confirmed after its invoice had expired or been canceled.
	Late       bool
	Simulated  bool
	DetectedBy Detection
	DetectedAt time.Time
	// ConfirmedAt is set while it is confirmed.
	ConfirmedAt time.Time
	// LostAt is since when its transaction is neither in the chain nor in the pool; zero otherwise.
	LostAt time.Time
	// DueAt is when the worker handles it next (a missing price, a lost transaction); zero when never.
	DueAt    time.Time
	Sequence int64
	Version  int64
}

// TransferKey returns the transfer that the payment is, of its network.
func (p Payment) TransferKey() TransferKey {
	return TransferKey{TxHash: p.TxHash, Index: p.TxIndex, To: p.Address, AssetID: p.AssetID}
}

// EventObject returns what an event says of the payment beside it.
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

// LostAfter is how long a transaction may be out of both the pool and the chain before its payment
// is dropped.
const LostAfter = 24 * time.Hour // spec D3.4

// DetectedEvent returns the type of the event of its detection, by what was paid.
func (p *Payment) DetectedEvent() event.Type { // spec 6.9
	if p.InvoiceID != "" {
		return event.InvoicePaymentDetected
	}

	return event.DepositPaymentDetected
}

// confirmedEvent returns the type of the event of its confirmation, by what was paid.
func (p *Payment) confirmedEvent() event.Type { // spec 6.10
	if p.InvoiceID != "" {
		return event.InvoicePaymentConfirmed
	}

	return event.DepositPaymentConfirmed
}

// The transitions below change the record and return its events. They are idempotent: a known fact changes
// nothing. What the table of decisions part 3 does not allow is fault.State and changes nothing.

// Observe records that the transaction is in a block, or in the pool when at is zero. A detected
// payment takes the block, an orphaned or dropped one is detected again. A block outranks the pool,
// whose view may be older. A confirmed payment that is seen in another block has to be orphaned or
// moved first (payment_confirmed).
func (p *Payment) Observe(at chain.Ref) ([]event.Type, error) { // spec 3.3.1
	switch p.Status {
	case Confirmed:
		if !at.IsZero() && at.Hash != p.Block.Hash {
			return nil, p.refuse("payment_confirmed", "be seen in block %d %s", at.Height, at.Hash)
		}

		return nil, nil
	case Detected:
		if !at.IsZero() {
			p.Block = at
		}

		p.clearLost()

		return nil, nil
	case Orphaned, Dropped:
		p.Status, p.Block = Detected, at
		p.clearLost()

		return []event.Type{p.DetectedEvent()}, nil
	}

	return nil, p.refuse("payment_status_unknown", "be seen")
}

// Correct replaces what was seen earlier by what a transfer shows now: amount and sender. A detected
// payment is detected again; one that was taken back waits for Observe. A confirmed payment has to be
// orphaned first (payment_confirmed).
func (p *Payment) Correct(t chain.Transfer) ([]event.Type, error) { // spec D11.3
	if p.Amount == t.Amount {
		return nil, nil
	}

	if p.Status == Confirmed {
		return nil, p.refuse("payment_confirmed", "change its amount to %s", t.Amount)
	}

	p.Amount, p.FromAddress = t.Amount, t.From
	p.Credit = CreditOf(t.Amount, p.Decimals, p.Rate)

	if p.Status == Detected {
		return []event.Type{p.DetectedEvent()}, nil
	}

	return nil, nil
}

// Displace records that the payment's transaction stands in a canonical block that does not hold the
// payment: it failed there, or pays somebody or something else. The payment is dropped; a confirmed one
// is orphaned before.
func (p *Payment) Displace(now time.Time) ([]event.Type, error) { // spec D11.2
	var types []event.Type

	if p.Status == Confirmed {
		orphaned, err := p.Orphan(now)
		if err != nil {
			return nil, err
		}

		types = orphaned
	}

	p.Block = chain.Ref{}

	dropped, err := p.Drop()

	return append(types, dropped...), err
}

// clearLost clears the times of a missing transaction.
func (p *Payment) clearLost() { p.LostAt, p.DueAt = time.Time{}, time.Time{} }

// SetBlock puts a confirmed payment whose block left the chain into another block in which it is
// confirmed as well.
func (p *Payment) SetBlock(to chain.Ref) error {
	if p.Status != Confirmed || to.IsZero() {
		return p.refuse("payment_not_confirmed", "move to block %d", to.Height)
	}

	p.Block = to

	return nil
}

// Confirm confirms a detected payment; late is set when its invoice was closed. One that waits in the pool
// cannot confirm (payment_not_in_block), unless it is simulated.
func (p *Payment) Confirm(late bool, now time.Time) ([]event.Type, error) {
	switch {
	case p.Status == Confirmed:
		return nil, nil
	case p.Status != Detected:
		return nil, p.refuse("payment_not_detected", "confirm")
	case p.Block.IsZero() && !p.Simulated:
		return nil, p.refuse("payment_not_in_block", "confirm")
	}

	p.Status, p.ConfirmedAt, p.Late = Confirmed, now, late
	p.clearLost()

	return []event.Type{p.confirmedEvent()}, nil
}

// Price sets the price snapshot of a confirmed payment: usd for one whole unit of its asset, native for one
// native coin, both in USD. The value is rounded down to 8 places. A payment that has a price keeps it.
func (p *Payment) Price(usd, native decimal.Decimal) ([]event.Type, error) { // spec D3.13
	if p.Status != Confirmed {
		return nil, p.refuse("payment_not_confirmed", "be priced")
	}

	if p.USDValue.Valid {
		return nil, nil
	}

	p.USDValue = decimal.NewNullDecimal(usdOf(p.Amount, p.Decimals, usd))
	p.NativeUSD = decimal.NewNullDecimal(native)
	p.DueAt = time.Time{}

	return []event.Type{event.PaymentValued}, nil
}

// Orphan records that the payment's block left the chain. It clears what the confirmation had set.
func (p *Payment) Orphan(now time.Time) ([]event.Type, error) { // spec 6.11
	switch {
	case p.Status == Orphaned:
		return nil, nil
	case p.Status == Dropped:
		return nil, p.refuse("payment_dropped", "be orphaned")
	case p.Status == Detected && p.Block.IsZero() && !p.Simulated:
		return nil, p.refuse("payment_not_in_block", "be orphaned")
	}

	p.Status, p.Block = Orphaned, chain.Ref{}
	p.ConfirmedAt, p.Late = time.Time{}, false
	p.USDValue, p.NativeUSD = decimal.NullDecimal{}, decimal.NullDecimal{}
	p.LostAt, p.DueAt = now, now.Add(LostAfter)

	return []event.Type{event.PaymentOrphaned, event.PaymentLost}, nil
}

// MarkMissing records that the pool does not have the payment's transaction any more: it is dropped after LostAfter.
func (p *Payment) MarkMissing(now time.Time) error {
	if p.Status != Detected || !p.Block.IsZero() {
		return p.refuse("payment_not_waiting", "be lost")
	}

	if p.LostAt.IsZero() {
		p.LostAt = now
		if p.DueAt.IsZero() { // a hint is looked up sooner
			p.DueAt = now.Add(LostAfter)
		}
	}

	return nil
}

// Drop records that the payment's transaction was replaced, double-spent or missing for LostAfter.
func (p *Payment) Drop() ([]event.Type, error) { // spec 6.12
	switch {
	case p.Status == Dropped:
		return nil, nil
	case p.Status == Confirmed || !p.Block.IsZero():
		return nil, p.refuse("payment_in_block", "be dropped")
	}

	types := []event.Type{event.PaymentDropped}
	if p.Status == Detected {
		types = append(types, event.PaymentLost)
	}

	p.Status = Dropped
	p.clearLost()

	return types, nil
}

// Attach sets the transaction of a payment that was known from a balance alone. The amount becomes the
// transfer's as long as the payment is not confirmed; afterwards it must be the same (payment_confirmed).
func (p *Payment) Attach(t chain.Transfer, at chain.Ref) ([]event.Type, error) { // spec 6.13
	switch {
	case p.TxHash == t.TxHash && p.TxIndex == t.Index:
		return nil, nil
	case p.TxHash != "":
		return nil, p.refuse("payment_attached", "take transaction %s", t.TxHash)
	case p.Status == Confirmed && p.Amount != t.Amount:
		return nil, p.refuse("payment_confirmed", "change its amount to %s", t.Amount)
	}

	p.TxHash, p.TxIndex, p.FromAddress = t.TxHash, t.Index, t.From
	if p.Amount != t.Amount {
		p.Amount, p.Credit = t.Amount, CreditOf(t.Amount, p.Decimals, p.Rate)
	}

	if p.Status == Confirmed {
		p.Block = at
		return []event.Type{event.PaymentTransactionAttached}, nil
	}

	types, err := p.Observe(at)

	return append([]event.Type{event.PaymentTransactionAttached}, types...), err
}

// refuse returns the fault.State error of a transition that the status does not allow.
func (p *Payment) refuse(code, format string, args ...any) error {
	return fault.New(
		fault.State, code, "payment %s is %s, so it cannot %s",
		p.ID, p.Status, fmt.Sprintf(format, args...),
	)
}
