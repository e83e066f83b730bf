package rate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

func TestFixedPricesNameAPair(t *testing.T) {
	for pair, ok := range map[string]bool{
		"ETH/USD":     true,
		"ETH-USD":     false,
		"ETH":         false,
		"":            false,
		"/USD":        false,
		"ETH/":        false,
		"ETH/USD/EUR": false,
	} {
		_, err := rate.NewFixed(map[string]string{pair: "2500"}, time.Minute, nil)
		if (err == nil) != ok || !ok && !errors.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", pair, err)
		}
	}
}
