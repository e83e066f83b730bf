package invoicestate

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

func TestUSDValueIsRoundedDown(t *testing.T) {
	p := payment("unpriced")
	p.Amount, p.Decimals = chain.Units(1), 2

	// 0.01 × 0.00000199 = 0.0000000199.
	if _, err := Price(
		&p,
		decimal.NewNullDecimal(decimal.RequireFromString("0.00000199")),
		usdPrice(1),
	); err != nil {
		t.Fatal(err)
	}

	if want := decimal.RequireFromString("0.00000001"); !p.USDValue.Valid || !p.USDValue.Decimal.Equal(want) {
		t.Errorf("the value is %v, want %s", p.USDValue, want)
	}
}
