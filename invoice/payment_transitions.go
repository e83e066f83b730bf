package invoice

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file holds the transitions of a payment, which change the record and return its events. They are idempotent: a
// known fact changes nothing. What the table of decisions part 3 does not allow is fault.State and changes nothing.

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
