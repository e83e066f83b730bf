package invoicestate

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// CreditOf returns the value of an amount at a rate, exact.
func CreditOf(amount chain.Amount, decimals uint8, rate decimal.Decimal) decimal.Decimal { // spec D2.2.5
	return amount.Decimal(decimals).Mul(rate)
}

// usdOf returns the value of an amount in USD, rounded down to 8 places.
func usdOf(amount chain.Amount, decimals uint8, rate decimal.Decimal) decimal.Decimal {
	return CreditOf(amount, decimals, rate).RoundDown(8)
}
