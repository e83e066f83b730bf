package chain

import (
	"fmt"
	"math/big"

	"github.com/holiman/uint256"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

// Amount is a whole number of an asset's base units (wei, satoshi, lamport, sun), 0 to 2^256−1.
// It is comparable with ==, its zero value is 0, and in JSON it is a string of digits.
type Amount struct{ u uint256.Int }

// MaxTransfer is the largest single transfer that is recorded (2^240−1 base units). The sum of fewer than
// 65,536 such transfers cannot overflow an Amount. So amounts from a network can be added safely.
var MaxTransfer = func() Amount {
	var a Amount
	a.u.SetAllOne().Rsh(&a.u, 16)

	return a
}()

// Units returns n base units.
func Units(n uint64) Amount {
	var a Amount
	a.u.SetUint64(n)

	return a
}

// ParseAmount reads a whole number of base units: 1 to 78 digits, no sign, no leading zero except "0"
// itself, at most 2^256−1. Anything else is fault.Invalid.
func ParseAmount(s string) (Amount, error) { // spec D1.6
	if s == "" || len(s) > 78 || (len(s) > 1 && s[0] == '0') {
		return Amount{}, badAmount(s)
	}

	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return Amount{}, badAmount(s)
		}
	}

	var a Amount
	if err := a.u.SetFromDecimal(s); err != nil {
		return Amount{}, badAmount(s)
	}

	return a, nil
}

func badAmount(s string) error {
	if len(s) > 90 {
		s = s[:90] + "…"
	}

	return fault.New(
		fault.Invalid,
		"amount_invalid",
		"%q is not an amount in base units: write a whole number of at most 2^256-1 as digits, without "+
			"sign or leading zeros",
		s,
	)
}

// MustAmount is ParseAmount for constants; it panics on a malformed one.
func MustAmount(s string) Amount {
	a, err := ParseAmount(s)
	if err != nil {
		panic(err)
	}

	return a
}

// AmountFromBig converts n. A negative n, or one above 2^256−1, is fault.Invalid.
func AmountFromBig(n *big.Int) (Amount, error) {
	var a Amount
	if n == nil || n.Sign() < 0 || a.u.SetFromBig(n) {
		return Amount{}, fault.New(
			fault.Invalid, "amount_invalid",
			"%v is not an amount of base units between 0 and 2^256-1",
			n,
		)
	}

	return a, nil
}

// AmountFromBytes reads a big-endian number of at most 32 bytes.
func AmountFromBytes(b []byte) (Amount, error) {
	if len(b) > 32 {
		return Amount{}, fault.New(
			fault.Invalid, "amount_invalid", "an amount of %d bytes is longer than 256 bits",
			len(b),
		)
	}

	var a Amount
	a.u.SetBytes(b)

	return a, nil
}

// Decimal returns the amount in whole units of an asset with the given decimals; exact.
func (a Amount) Decimal(decimals uint8) decimal.Decimal {
	return decimal.NewFromBigInt(a.Big(), -int32(decimals))
}

// Big returns the amount as a new big.Int.
func (a Amount) Big() *big.Int { return a.u.ToBig() }

// Bytes32 returns the amount as 32 big-endian bytes, as the EVM's ABI encodes a uint256.
func (a Amount) Bytes32() [32]byte { return a.u.Bytes32() }

// Uint64 returns the amount and whether it fits 64 bits.
func (a Amount) Uint64() (uint64, bool) { return a.u.Uint64(), a.u.IsUint64() }

// String returns the digits, without leading zeros.
func (a Amount) String() string { return a.u.Dec() } // spec 2.1.3

// IsZero reports whether the amount is 0.
func (a Amount) IsZero() bool { return a.u.IsZero() }

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int { return a.u.Cmp(&b.u) }

// Less reports a < b.
func (a Amount) Less(b Amount) bool { return a.u.Lt(&b.u) }

// Add returns a+b. It panics on overflow, which amounts up to MaxTransfer cannot cause; use AddOK for amounts
// from an untrusted caller.
func (a Amount) Add(b Amount) Amount {
	sum, ok := a.AddOK(b)
	if !ok {
		panic(fmt.Sprintf("chain: amount overflow: %s + %s", a, b))
	}

	return sum
}

// AddOK returns a+b and whether it fits 256 bits.
func (a Amount) AddOK(b Amount) (Amount, bool) {
	var c Amount

	_, over := c.u.AddOverflow(&a.u, &b.u)

	return c, !over
}

// Sub returns a−b. It panics when b is greater than a: compare first, or use SubFloor.
func (a Amount) Sub(b Amount) Amount {
	if a.Less(b) {
		panic(fmt.Sprintf("chain: amount below zero: %s - %s", a, b))
	}

	var c Amount
	c.u.Sub(&a.u, &b.u)

	return c
}

// SubFloor returns a−b, or 0 when b is greater than a.
func (a Amount) SubFloor(b Amount) Amount {
	if a.Less(b) {
		return Amount{}
	}

	return a.Sub(b)
}

// Mul returns a·n and panics on overflow. It is for fee arithmetic (gas × price), whose factors are bounded.
func (a Amount) Mul(n uint64) Amount {
	var c Amount

	f := Units(n)
	if _, over := c.u.MulOverflow(&a.u, &f.u); over {
		panic(fmt.Sprintf("chain: amount overflow: %s * %d", a, n))
	}

	return c
}

// Share returns a·num/den rounded down, without intermediate overflow; den must not be 0 and num ≤ den.
func (a Amount) Share(num, den Amount) Amount {
	var c Amount
	if _, over := c.u.MulDivOverflow(&a.u, &num.u, &den.u); over {
		panic(fmt.Sprintf("chain: share overflow: %s * %s / %s", a, num, den))
	}

	return c
}

// RoundUpTo returns the smallest multiple of step that is at least a; step must not be 0.
func (a Amount) RoundUpTo(step Amount) Amount {
	var r Amount
	r.u.Mod(&a.u, &step.u)

	if r.IsZero() {
		return a
	}

	return a.Add(step.Sub(r))
}

// Pow10 returns 10^n; n at most 77.
func Pow10(n uint8) Amount {
	var c Amount
	c.u.Exp(uint256.NewInt(10), uint256.NewInt(uint64(n)))

	return c
}

// MarshalText writes the digits.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads digits as ParseAmount does.
func (a *Amount) UnmarshalText(b []byte) error {
	v, err := ParseAmount(string(b))
	if err != nil {
		return err
	}

	*a = v

	return nil
}
