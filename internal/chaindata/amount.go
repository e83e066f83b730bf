package chaindata

import (
	"math/big"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// AmountFromDecimalCeil converts whole units to base units, rounding up. A negative or too large amount is
// fault.Invalid.
func AmountFromDecimalCeil(d decimal.Decimal, decimals uint8) (chain.Amount, error) {
	if d.IsNegative() { // less than a base unit below zero rounds up to 0
		return chain.Amount{}, fault.New(
			fault.Invalid, "amount_invalid", "%s is negative: an amount must be 0 or more",
			d,
		)
	}

	return chain.AmountFromBig(d.Shift(int32(decimals)).Ceil().BigInt())
}

// AmountFromDecimalFloor converts whole units to base units, rounding down. A negative or too large amount is
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

// UnitsFor returns value ÷ rate in base units, rounded up, by integer division: exact before the rounding.
// value must not be negative and rate must be above 0. More than chain.MaxTransfer is fault.Invalid.
func UnitsFor(value, rate decimal.Decimal, decimals uint8) (chain.Amount, error) {
	if value.Sign() < 0 || rate.Sign() <= 0 {
		return chain.Amount{}, fault.New(
			fault.Invalid, "rate_invalid", "cannot convert %s at a rate of %s",
			value, rate,
		)
	}
	// value·10^decimals ÷ rate = (v·10^ve·10^decimals) ÷ (r·10^re), brought to whole numbers.
	n, d := value.Coefficient(), rate.Coefficient()
	if e := int64(value.Exponent()) + int64(decimals) - int64(rate.Exponent()); e >= 0 {
		n.Mul(n, pow10(e))
	} else {
		d.Mul(d, pow10(-e))
	}

	q, m := new(big.Int).QuoRem(n, d, new(big.Int))
	if m.Sign() != 0 {
		q.Add(q, big.NewInt(1))
	}

	units, err := chain.AmountFromBig(q)
	if err == nil && chain.MaxTransfer.Less(units) {
		err = fault.New(
			fault.Invalid, "amount_invalid", "%s base units are more than one transfer can move",
			q,
		)
	}

	return units, err
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }
