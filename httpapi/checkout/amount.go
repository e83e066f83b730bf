package checkout

import (
	"strings"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// formatUnits returns an amount of base units in whole units, exact, without trailing zeros, so that due and
// paid amounts look alike.
func formatUnits(a chain.Amount, decimals uint8) string {
	digits := a.String()
	if missing := int(decimals) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}

	point := len(digits) - int(decimals)

	whole, fraction := digits[:point], digits[point:]

	fraction = strings.TrimRight(fraction, "0")
	if fraction == "" {
		return whole
	}

	return whole + "." + fraction
}

// minorUnits are the decimal places of currencies that do not have two (ISO 4217).
var minorUnits = map[string]int{
	"BHD": 3,
	"IQD": 3,
	"JOD": 3,
	"KWD": 3,
	"LYD": 3,
	"OMR": 3,
	"TND": 3,
	"BIF": 0,
	"CLP": 0,
	"DJF": 0,
	"GNF": 0,
	"ISK": 0,
	"JPY": 0,
	"KMF": 0,
	"KRW": 0,
	"PYG": 0,
	"RWF": 0,
	"UGX": 0,
	"UYI": 0,
	"VND": 0,
	"VUV": 0,
	"XAF": 0,
	"XOF": 0,
	"XPF": 0,
}

// groupSpace separates thousands: a narrow no-break space, which cannot be mistaken for a decimal separator.
const groupSpace = "\u202f"

// formatMoney returns a price with at least the currency's decimal places, and thousands separated.
// The currency is not included.
func formatMoney(d decimal.Decimal, currency string) string {
	places := placesOf(currency)

	whole, fraction, _ := strings.Cut(d.String(), ".")
	for len(fraction) < places {
		fraction += "0"
	}

	var out strings.Builder

	for i, digit := range whole {
		if digits := len(whole) - i; i > 0 && digits%3 == 0 && len(whole) > 4 {
			out.WriteString(groupSpace)
		}

		out.WriteRune(digit)
	}

	if fraction != "" {
		out.WriteString("." + fraction)
	}

	return out.String()
}

// placesOf returns the decimal places of a currency.
func placesOf(currency string) int {
	if places, known := minorUnits[currency]; known {
		return places
	}

	return 2
}

// formatMoneyCeil returns the missing part of a price, rounded up to the places of the price, so
// that it is never too little.
func formatMoneyCeil(d, price decimal.Decimal, currency string) string {
	return formatMoney(d.RoundCeil(max(int32(placesOf(currency)), -price.Exponent())), currency)
}

// estimateStep is the largest value of an estimate's last digit, in units of the currency; quotes use the
// same.
var estimateStep = decimal.New(1, -3)

// estimate returns an estimate of a price in whole units of an asset, rounded up to the places of a
// quote; ok is false without a usable rate. The amount due comes from the quote only.
func estimate(price, rate decimal.Decimal, decimals uint8) (text string, ok bool) {
	if rate.Sign() <= 0 || price.Sign() <= 0 {
		return "", false
	}

	places := int32(0)
	for places < int32(decimals) && rate.Shift(-places).GreaterThan(estimateStep) {
		places++
	}

	whole, remainder := price.QuoRem(rate, places)
	if !remainder.IsZero() {
		whole = whole.Add(decimal.New(1, -places))
	}

	return whole.String(), true // without trailing zeros, as formatUnits does
}

// mustDecimal parses a decimal of a State.
func mustDecimal(s string) decimal.Decimal { return decimal.RequireFromString(s) }
