package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/invoice"
)

const usd = "USD"

// pair is an asset's price symbol and a currency.
type pair struct{ base, currency string }

// prices holds the prices that were read before a transaction. A pair without a valid price has none.
type prices map[pair]decimal.NullDecimal

func (p prices) want(base, currency string) { p[pair{base, currency}] = decimal.NullDecimal{} }

// wantUSD adds the pairs that a payment of an asset needs when it confirms.
func (p prices) wantUSD(asset chain.Asset, network chain.Network) {
	p.want(chaindata.PriceSymbol(asset), usd)

	if native, ok := network.Native(); ok {
		p.want(chaindata.PriceSymbol(native), usd)
	}
}

// pricesFor is how long one batch waits for prices. It is longer than the engine waits for one of them.
const pricesFor = 15 * time.Second

// fill reads the price of every pair. Prices that cannot be read within pricesFor stay invalid; only the end of ctx is
// an error.
func (s *Ingester) fill(ctx context.Context, p prices) error {
	if len(p) == 0 {
		return nil
	}

	limited, cancel := context.WithTimeout(ctx, pricesFor)
	defer cancel()

	for want := range p {
		q, err := s.rates.Quote(limited, want.base, want.currency)

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

		p[want] = decimal.NewNullDecimal(q.Rate)
	}

	return nil
}

// remember stores a pair that a batch of a network needs, for the next time it is prepared.
func (s *Ingester) remember(network string, want pair) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.wanted[network] == nil {
		s.wanted[network] = map[pair]bool{}
	}

	s.wanted[network][want] = true
}

// recall moves the pairs that were remembered into p.
func (s *Ingester) recall(network string, p prices) {
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
			"the price of %s in %s: %w", base, currency, invoice.ErrUnprepared,
		)
	}

	return p.Decimal, p.Valid, nil
}

// priceUSD returns the prepared price of an asset in USD, null where there is no fresh one.
func (l *ledger) priceUSD(a chain.Asset) (decimal.NullDecimal, error) {
	price, ok, err := l.price(chaindata.PriceSymbol(a), usd)
	return decimal.NullDecimal{Decimal: price, Valid: ok}, err
}
