package invoicestate

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// usdOf returns what an amount is worth in USD, rounded down to 8 places.
func usdOf(amount chain.Amount, decimals uint8, rate decimal.Decimal) decimal.Decimal {
	return invoice.CreditOf(amount, decimals, rate).RoundDown(8)
}
