package invoice

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// ErrUnprepared says that a transaction turned out to need a price that was not read before it
// began. Prepare the same batch again: what was missing is remembered.
var ErrUnprepared error = fault.New(
	fault.Unavailable, "price_unprepared", "a price is needed that was not prepared",
)

const usd = "USD"

// pair names a price.
type pair struct{ base, currency string }

// prices are what was read before a transaction. A pair without a valid price was asked for and has none.
type prices map[pair]decimal.NullDecimal

func (p prices) want(base, currency string) { p[pair{base, currency}] = decimal.NullDecimal{} }

// wantUSD asks for what a payment of an asset needs when it confirms.
func (p prices) wantUSD(asset chain.Asset, network chain.Network) {
	p.want(priceOf(asset), usd)

	if native, ok := network.Native(); ok {
		p.want(priceOf(native), usd)
	}
}

// priceOf is the symbol under which an asset is quoted.
func priceOf(a chain.Asset) string {
	if a.Price != "" {
		return a.Price
	}

	return a.Symbol
}

// quote reads one price; that it is not fresh is fault.Unavailable with code price_unavailable.
func (s *Service) quote(ctx context.Context, base, currency string) (decimal.Decimal, error) {
	q, err := s.rates.Quote(ctx, base, currency)
	if err != nil {
		return decimal.Decimal{}, err
	}

	if _, ok := rate.Round(q.Rate); !ok || (!q.ExpiresAt.IsZero() && !s.now().Before(q.ExpiresAt)) {
		return decimal.Decimal{}, rate.Unavailable(base, currency, nil)
	}

	return q.Rate, nil
}

// fill reads every pair that was asked for. Prices that cannot be had stay invalid; only the end of
// ctx is an error.
func (s *Service) fill(ctx context.Context, p prices) error {
	for want := range p {
		r, err := s.quote(ctx, want.base, want.currency)
		if ctx.Err() != nil {
			return ctx.Err()
		}

		if err != nil {
			s.log.LogAttrs(
				ctx, slog.LevelWarn, "no price", slog.String("base", want.base),
				slog.String("currency", want.currency), slog.Any("error", err),
			)

			continue
		}

		p[want] = decimal.NewNullDecimal(r)
	}

	return nil
}

// remember keeps a pair that a batch of a network needs, for the next time it is prepared.
func (s *Service) remember(network string, want pair) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.wanted[network] == nil {
		s.wanted[network] = map[pair]bool{}
	}

	s.wanted[network][want] = true
}

// recall takes the pairs that were remembered.
func (s *Service) recall(network string, p prices) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for want := range s.wanted[network] {
		p[want] = decimal.NullDecimal{}
	}

	delete(s.wanted, network)
}

// price returns a price that was read before the transaction; ok is false when there is none.
func (l *ledger) price(base, currency string) (r decimal.Decimal, ok bool, err error) {
	want := pair{base, currency}

	p, prepared := l.prices[want]
	if !prepared {
		l.s.remember(l.network, want)

		return decimal.Decimal{}, false, fmt.Errorf(
			"the price of %s in %s: %w", base, currency, ErrUnprepared,
		)
	}

	return p.Decimal, p.Valid, nil
}
