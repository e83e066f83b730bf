package checkout

// Amounts and prices as people read them: exact, by moving the decimal point in a string of digits.

import (
	"strings"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// units writes an amount in whole units of an asset with the given decimals: exact, with at least
// places digits after the point and no more zeros than that. An amount that was rounded to places
// has exactly that many.
func formatUnits(a chain.Amount, decimals, places uint8) string {
	digits := a.String()
	if missing := int(decimals) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}

	point := len(digits) - int(decimals)

	whole, fraction := digits[:point], digits[point:]
	for len(fraction) > int(places) && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}

	if fraction == "" {
		return whole
	}

	return whole + "." + fraction
}

// minorUnits are the places of ISO 4217 currencies that do not have two.
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

// groupSpace separates thousands: a narrow space that does not break, so that neither a comma nor a point can
// be taken for the other.
const groupSpace = "\u202f"

// money writes a price with the places its currency has, more where the price has more, and its
// thousands apart. The currency is not part of it.
func formatMoney(d decimal.Decimal, currency string) string {
	places := placesOf(currency)

	whole, fraction, _ := strings.Cut(d.String(), ".")
	for len(fraction) < places {
		fraction += "0"
	}

	var out strings.Builder

	for i, digit := range whole {
		if left := len(whole) - i; i > 0 && left%3 == 0 && len(whole) > 4 {
			out.WriteString(groupSpace)
		}

		out.WriteRune(digit)
	}

	if fraction != "" {
		out.WriteString("." + fraction)
	}

	return out.String()
}

// placesOf is how many places the prices of a currency have.
func placesOf(currency string) int {
	if places, known := minorUnits[currency]; known {
		return places
	}

	return 2
}

// moneyUp writes what is missing of a price, with as many places as the price is written with and
// rounded up: nobody who reads it takes too little for enough. What is to be paid is said by an
// amount, not by this.
func formatMoneyCeil(d, price decimal.Decimal, currency string) string {
	return formatMoney(d.RoundCeil(max(int32(placesOf(currency)), -price.Exponent())), currency)
}

// estimateStep is how estimateStep an estimate may be, in units of the currency: what quotes are rounded to as well.
var estimateStep = decimal.New(1, -3)

// estimate returns about how much of an asset a price is, rounded up to the places that a quote
// would have; ok is false without a usable price. It is for choosing only: what is due comes from
// the quote.
func estimate(price, rate decimal.Decimal, decimals uint8) (text string, ok bool) {
	if rate.Sign() <= 0 || price.Sign() <= 0 {
		return "", false
	}

	places := int32(0)
	for places < int32(decimals) && rate.Shift(-places).GreaterThan(estimateStep) {
		places++
	}

	q, rest := price.QuoRem(rate, places)
	if !rest.IsZero() {
		q = q.Add(decimal.New(1, -places))
	}

	return q.StringFixed(places), true
}

// mustDecimal reads back a decimal that a State carries, which was written from one.
func mustDecimal(s string) decimal.Decimal { return decimal.RequireFromString(s) }
