// Package rate gives prices: what one unit of an asset costs in a currency.
//
// A Source answers for one pair at a time. Cache puts freshness and one-refresh-at-a-time over any
// source; Fixed serves tests, demos and stable test networks. Prices are decimals with at most 8 places;
// a price with fewer than 3 significant digits at 8 places counts as none, so that rounding never decides
// how much somebody pays.
package rate

import (
	"context"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

// Quote is a price with the time it may be used.
type Quote struct {
	// Base is the symbol that is priced, Currency what it is priced in (ISO 4217, upper case).
	Base, Currency string
	// Rate is the price of one whole unit of Base, above 0, at most 8 places.
	Rate decimal.Decimal
	// FetchedAt is when the price was had; from ExpiresAt on it is not fresh any more.
	FetchedAt, ExpiresAt time.Time
}

// Source prices assets. An unknown pair is fault.Invalid with code currency_unsupported;
// no fresh price is fault.Unavailable with code price_unavailable.
type Source interface {
	Quote(ctx context.Context, base, currency string) (Quote, error)
}

// Fresh returns the price of one unit of base in currency from a source. One that has expired at now, or
// cannot be shown with 8 decimal places, is fault.Unavailable with code price_unavailable.
func Fresh(ctx context.Context, from Source, base, currency string, now time.Time) (decimal.Decimal, error) {
	q, err := from.Quote(ctx, base, currency)
	if err != nil {
		return decimal.Decimal{}, err
	}

	if _, ok := round(q.Rate); !ok || (!q.ExpiresAt.IsZero() && !now.Before(q.ExpiresAt)) {
		return decimal.Decimal{}, Unavailable(base, currency, nil)
	}

	return q.Rate, nil
}

// Unavailable is the error of a pair that has no fresh price now.
func Unavailable(base, currency string, cause error) error { // spec 4.9.2
	return fault.Wrap(
		cause, fault.Unavailable, "price_unavailable",
		"there is no fresh price of %s in %s; try again shortly",
		base, currency,
	)
}

// Unsupported is the error of a pair that a source never prices.
func Unsupported(base, currency string) error {
	return fault.New(
		fault.Invalid, "currency_unsupported",
		"no price of %s in %s is to be had; use another currency or asset",
		base, currency,
	)
}

// round brings a price to 8 places, rounded down, and reports whether at least 3 significant digits are left.
func round(d decimal.Decimal) (decimal.Decimal, bool) { // spec 2.2.6, D2.2.12
	d = d.RoundDown(8)
	return d, d.Sign() > 0 && d.Shift(8).Cmp(decimal.NewFromInt(100)) >= 0
}

// normal returns the pair as sources know it.
func normal(base, currency string) (string, string) {
	return strings.ToUpper(base), strings.ToUpper(currency)
}
