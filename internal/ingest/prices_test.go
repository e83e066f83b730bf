package ingest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// tardy is a source of prices that takes 10 s to say that it has none.
type tardy struct{}

func (tardy) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
	}

	return rate.Quote{}, rate.Unavailable(base, currency, nil)
}

// However many prices a batch needs, it waits for them 15 s.
func TestBatchWaitsForPricesForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Ingester{rates: tardy{}, log: slog.New(slog.DiscardHandler), clock: time.Now}

		p := prices{}
		for _, currency := range []string{"USD", "EUR", "GBP", "JPY", "CHF"} {
			p.want("ETH", currency)
		}

		began := time.Now()

		if err := s.fill(t.Context(), p); err != nil {
			t.Fatal(err)
		}

		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it waited %s", took)
		}

		for want, price := range p {
			if price.Valid {
				t.Errorf("%v has a price", want)
			}
		}
	})
}
