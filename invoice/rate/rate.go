// Package rate gives prices: the price of one unit of an asset in a currency.
//
// A Source answers for one pair at a time. The engine caches it: a fresh price is not read again, and
// concurrent calls share one read of a pair. Fixed serves tests, demos and stable test networks. Prices are
// decimals with at most 8 places. A price with fewer than 3 significant digits at 8 places counts as none, so
// that rounding never decides how much somebody pays.
package rate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/fault"
)

// Quote is a price and how long it may be used.
type Quote struct {
	// Base is the symbol of the priced asset, Currency the currency of the price (ISO 4217, upper case).
	Base, Currency string
	// Rate is the price of one whole unit of Base, above 0, at most 8 places.
	Rate decimal.Decimal
	// FetchedAt is when the price was fetched; from ExpiresAt on it is not fresh any more.
	FetchedAt, ExpiresAt time.Time
}

// Source prices assets. An unknown pair is fault.Invalid with code currency_unsupported; no fresh price is
// fault.Unavailable with code price_unavailable. The engine passes the answers of the host's source through
// Fresh.
type Source interface {
	Quote(ctx context.Context, base, currency string) (Quote, error)
}

// Fresh asks a source and returns its quote, the rate rounded down to 8 places. The engine asks every source
// of a host through it.
//
// Errors: fault.Unavailable with code price_unavailable for a quote that has expired, or whose rate is not
// above 0 or has fewer than 3 significant digits at 8 places; those of the source.
func Fresh(ctx context.Context, from Source, base, currency string, now func() time.Time) (Quote, error) {
	q, err := from.Quote(ctx, base, currency)
	if err != nil {
		return Quote{}, err
	}

	if !now().Before(q.ExpiresAt) {
		return Quote{}, Unavailable(
			base,
			currency,
			errors.New("the source answered a price that had already expired"),
		)
	}

	rounded, ok := round(q.Rate)
	if !ok {
		return Quote{}, Unavailable(
			base,
			currency,
			fmt.Errorf("the source answered %s, which is no price", q.Rate),
		)
	}

	q.Rate = rounded

	return q, nil
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

// round rounds a price down to 8 places and reports whether at least 3 significant digits are left.
func round(d decimal.Decimal) (decimal.Decimal, bool) { // spec 2.2.6, D2.2.12
	d = d.RoundDown(8)
	return d, d.Sign() > 0 && d.Shift(8).Cmp(decimal.NewFromInt(100)) >= 0
}

// normal returns the pair in the form that sources use.
func normal(base, currency string) (string, string) {
	return strings.ToUpper(base), strings.ToUpper(currency)
}
