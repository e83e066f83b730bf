// Package wire writes the values of API objects as specification 2.1 requires: timestamps, decimals and ids.
// It is the one place for httpapi, events and the checkout page.
package wire

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

const timeLayout = "2006-01-02T15:04:05.000Z"

// Time writes RFC 3339 in UTC with milliseconds, or "" for the zero time (the field is then omitted).
func Time(t time.Time) string { // spec D1.8
	if t.IsZero() {
		return ""
	}

	return t.UTC().Format(timeLayout)
}

// ParseTime reads RFC 3339 with any offset and precision; anything else is fault.Invalid naming param.
func ParseTime(param, s string) (time.Time, error) { // spec 2.1.5
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fault.Param(
			param, "parameter_invalid", "%q is not a timestamp: write it like 2026-01-31T12:00:00Z",
			s,
		)
	}

	return t.UTC(), nil
}

// Decimal writes a decimal without exponent and trailing zeros. It does not round: records hold at
// most 8 places.
func Decimal(d decimal.Decimal) string { return d.String() } // spec D1.7

// OptionalDecimal writes a decimal, or "" if it is absent (the field is then omitted).
func OptionalDecimal(d decimal.NullDecimal) string { // spec 2.1.6
	if !d.Valid {
		return ""
	}

	return d.Decimal.String()
}

// ParseDecimal reads a positive or zero decimal of at most 8 places and 40 characters, without sign or
// exponent; anything else is fault.Invalid naming param.
func ParseDecimal(param, s string) (decimal.Decimal, error) { // spec 2.1.4
	bad := func() (decimal.Decimal, error) {
		if len(s) > 50 {
			s = s[:50] + "…"
		}

		return decimal.Decimal{}, fault.Param(
			param, "parameter_invalid",
			"%q is not a decimal number: write digits with at most 8 places after the point, such as 12.5",
			s,
		)
	}
	if s == "" || len(s) > 40 {
		return bad()
	}

	dot, places := false, 0

	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && !dot && i > 0 && i < len(s)-1:
			dot = true
		case c >= '0' && c <= '9':
			if dot {
				places++
			}
		default:
			return bad()
		}
	}

	if places > 8 || (len(s) > 1 && s[0] == '0' && s[1] != '.') {
		return bad()
	}

	d, err := decimal.NewFromString(s)
	if err != nil {
		return bad()
	}

	return d, nil
}

// Cut returns the first n characters of s.
func Cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}

		n--
	}

	return s
}
