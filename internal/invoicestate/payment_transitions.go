package invoicestate

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Displace records that the payment's transaction is in a canonical block, but without the payment: it failed
// there, or pays somebody or something else. The payment is dropped; a confirmed one is orphaned first.
func Displace(p *invoice.Payment, now time.Time) ([]event.Type, error) { // spec D11.2
	var types []event.Type

	if p.Status == invoice.Confirmed {
		orphaned, err := Orphan(p, now)
		if err != nil {
			return nil, err
		}

		types = orphaned
	}

	p.Block = chain.Ref{}

	dropped, err := Drop(p)

	return append(types, dropped...), err
}

// Observe records that the transaction is in a block, or in the pool when at is zero. A detected payment
// moves to the block; an orphaned or dropped one is detected again. A block outranks the pool, whose view may
// be older. A confirmed payment that is seen in another block must be orphaned or moved first
// (payment_confirmed).
func Observe(p *invoice.Payment, at chain.Ref) ([]event.Type, error) { // spec 3.3.1
	switch p.Status {
	case invoice.Confirmed:
		if !at.IsZero() && at.Hash != p.Block.Hash {
			return nil, refuse(p, "payment_confirmed", "be seen in block %d %s", at.Height, at.Hash)
		}

		return nil, nil
	case invoice.Detected:
		if !at.IsZero() {
			p.Block = at
		}

		clearLost(p)

		return nil, nil
	case invoice.Orphaned, invoice.Dropped:
		p.Status, p.Block = invoice.Detected, at
		clearLost(p)

		return []event.Type{DetectedEvent(p)}, nil
	}

	return nil, refuse(p, "payment_status_unknown", "be seen")
}

// Correct replaces the amount and sender by those that a transfer shows now. A detected payment with another
// amount is detected again; an orphaned or dropped one waits for Observe. A confirmed payment with another
// amount must be orphaned first (payment_confirmed).
func Correct(p *invoice.Payment, t chain.Transfer) ([]event.Type, error) { // spec D11.3
	if p.Amount == t.Amount {
		if p.Status != invoice.Confirmed {
			p.FromAddress = t.From
		}

		return nil, nil
	}

	if p.Status == invoice.Confirmed {
		return nil, refuse(p, "payment_confirmed", "change its amount to %s", t.Amount)
	}

	p.Amount, p.FromAddress = t.Amount, t.From
	p.Credit = CreditOf(t.Amount, p.Decimals, p.Rate)

	if p.Status == invoice.Detected {
		return []event.Type{DetectedEvent(p)}, nil
	}

	return nil, nil
}

// SetBlock moves a confirmed payment whose block left the chain to another block in which it is confirmed as
// well.
func SetBlock(p *invoice.Payment, to chain.Ref) error {
	if p.Status != invoice.Confirmed || to.IsZero() {
		return refuse(p, "payment_not_confirmed", "move to block %d", to.Height)
	}

	p.Block = to

	return nil
}

// Confirm confirms a detected payment; late is set if its invoice was closed. A payment in the pool cannot
// confirm (payment_not_in_block), unless it is simulated.
func Confirm(p *invoice.Payment, late bool, now time.Time) ([]event.Type, error) {
	switch {
	case p.Status == invoice.Confirmed:
		return nil, nil
	case p.Status != invoice.Detected:
		return nil, refuse(p, "payment_not_detected", "confirm")
	case p.Block.IsZero() && !p.Simulated:
		return nil, refuse(p, "payment_not_in_block", "confirm")
	}

	p.Status, p.ConfirmedAt, p.Late = invoice.Confirmed, now, late
	clearLost(p)

	return []event.Type{confirmedEvent(p)}, nil
}

// Price sets the known prices of a confirmed payment, both in USD: usd for one whole unit of its asset, and
// then native for one native coin. The value is rounded down to 8 places. Prices that the payment already has
// stay. Once it has both, its settlement can open.
func Price(p *invoice.Payment, usd, native decimal.NullDecimal) ([]event.Type, error) { // spec D3.13
	if p.Status != invoice.Confirmed {
		return nil, refuse(p, "payment_not_confirmed", "be priced")
	}

	if !p.USDValue.Valid && usd.Valid {
		p.USDValue = decimal.NewNullDecimal(usdOf(p.Amount, p.Decimals, usd.Decimal))
	}

	if p.NativeUSD.Valid || !p.USDValue.Valid || !native.Valid {
		return nil, nil
	}

	p.NativeUSD, p.DueAt = native, time.Time{}

	return []event.Type{event.PaymentValued}, nil
}

// Orphan records that the payment's block left the chain. It clears the results of the confirmation.
func Orphan(p *invoice.Payment, now time.Time) ([]event.Type, error) { // spec 6.11
	switch {
	case p.Status == invoice.Orphaned:
		return nil, nil
	case p.Status == invoice.Dropped:
		return nil, refuse(p, "payment_dropped", "be orphaned")
	case p.Status == invoice.Detected && p.Block.IsZero() && !p.Simulated:
		return nil, refuse(p, "payment_not_in_block", "be orphaned")
	}

	p.Status, p.Block = invoice.Orphaned, chain.Ref{}
	p.ConfirmedAt, p.Late = time.Time{}, false
	p.USDValue, p.NativeUSD = decimal.NullDecimal{}, decimal.NullDecimal{}
	p.LostAt, p.DueAt = now, now.Add(LostAfter)

	return []event.Type{event.PaymentOrphaned, event.PaymentLost}, nil
}

// Attach sets the transaction of a payment that was known only from a balance. Before confirmation, the
// amount becomes that of the transfer; afterwards it must be the same (payment_confirmed).
func Attach(p *invoice.Payment, t chain.Transfer, at chain.Ref) ([]event.Type, error) { // spec 6.13
	switch {
	case p.TxHash == t.TxHash && p.TxIndex == t.Index:
		return nil, nil
	case p.TxHash != "":
		return nil, refuse(p, "payment_attached", "take transaction %s", t.TxHash)
	case p.Status == invoice.Confirmed && p.Amount != t.Amount:
		return nil, refuse(p, "payment_confirmed", "change its amount to %s", t.Amount)
	}

	p.TxHash, p.TxIndex, p.FromAddress = t.TxHash, t.Index, t.From
	if p.Amount != t.Amount {
		p.Amount, p.Credit = t.Amount, CreditOf(t.Amount, p.Decimals, p.Rate)
	}

	if p.Status == invoice.Confirmed {
		p.Block = at
		return []event.Type{event.PaymentTransactionAttached}, nil
	}

	types, err := Observe(p, at)

	return append([]event.Type{event.PaymentTransactionAttached}, types...), err
}

// refuse returns the fault.State error of a transition that the status does not allow.
func refuse(p *invoice.Payment, code, format string, args ...any) error {
	return fault.New(
		fault.State, code, "payment %s is %s, so it cannot %s",
		p.ID, p.Status, fmt.Sprintf(format, args...),
	)
}
