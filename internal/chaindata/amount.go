package chaindata

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// AmountFromDecimalCeil converts whole units to base units, rounding up. Negative or too large:
// fault.Invalid.
func AmountFromDecimalCeil(d decimal.Decimal, decimals uint8) (chain.Amount, error) {
	if d.IsNegative() { // less than a base unit below zero would round up to 0
		return chain.Amount{}, fault.New(
			fault.Invalid, "amount_invalid", "%s is negative: an amount must be 0 or more",
			d,
		)
	}

	return chain.AmountFromBig(d.Shift(int32(decimals)).Ceil().BigInt())
}

// AmountFromDecimalFloor converts whole units to base units, rounding down. Negative or too large:
// fault.Invalid.
func AmountFromDecimalFloor(d decimal.Decimal, decimals uint8) (chain.Amount, error) {
	return chain.AmountFromBig(d.Shift(int32(decimals)).Floor().BigInt())
}

// BPS returns bps ten-thousandths of a, rounded down; bps from 0 to 10,000.
func BPS(a chain.Amount, bps int) chain.Amount {
	return a.Share(chain.Units(uint64(bps)), chain.Units(10_000))
}

// Min returns the smaller of a and b.
func Min(a, b chain.Amount) chain.Amount {
	if b.Less(a) {
		return b
	}

	return a
}

// Max returns the greater of a and b.
func Max(a, b chain.Amount) chain.Amount {
	if a.Less(b) {
		return b
	}

	return a
}
