package settlementstate

import (
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Pay moves amount (native base units) from FeeCarried to FeePaid; their sum stays.
func Pay(s *settlement.Settlement, amount chain.Amount) { // spec D4.14
	s.FeeCarried, s.FeePaid = s.FeeCarried.Sub(amount), s.FeePaid.Add(amount)
}

// Unpay moves amount (native base units) from FeePaid back to FeeCarried: its transaction is proven dead.
func Unpay(s *settlement.Settlement, amount chain.Amount) {
	s.FeePaid, s.FeeCarried = s.FeePaid.Sub(amount), s.FeeCarried.Add(amount)
}

// CarryIn adds the platform fee of earlier settlements (native base units) to this one's.
func CarryIn(s *settlement.Settlement, amount chain.Amount) {
	s.CarriedIn, s.FeeCarried = s.CarriedIn.Add(amount), s.FeeCarried.Add(amount)
}

// DueFee returns the part of its platform fee that a settlement must pay itself, in native base units: the
// unpaid part, without the part that it left to later releases.
func DueFee(s settlement.Settlement) chain.Amount { return s.FeeCarried.SubFloor(s.CarriedOut) }

// CarryOut leaves amount (native base units) of the due fee to a later release.
func CarryOut(s *settlement.Settlement, amount chain.Amount) { s.CarriedOut = s.CarriedOut.Add(amount) }

// TakeBack makes amount (native base units) due again that was left to later releases.
func TakeBack(s *settlement.Settlement, amount chain.Amount) { s.CarriedOut = s.CarriedOut.Sub(amount) }

// GiveBack removes the unpaid part of the carried fee, at most the due fee minus waits, and returns it. All
// are native base units.
func GiveBack(s *settlement.Settlement, waits chain.Amount) chain.Amount {
	back := chaindata.Min(s.CarriedIn, DueFee(*s).SubFloor(waits))
	s.CarriedIn, s.FeeCarried = s.CarriedIn.Sub(back), s.FeeCarried.Sub(back)

	return back
}

// FeeUSD returns the platform fee of a deposit in USD: value × bps / 10000, rounded down to 8 places.
func FeeUSD(value decimal.Decimal, bps int) decimal.Decimal { // spec D4.9
	return value.Mul(decimal.NewFromInt(int64(bps))).Shift(-4).Truncate(8)
}

// FeeNative returns a fee in native base units at the coin's price in USD, rounded down. Without a price
// it returns fault.Unavailable.
func FeeNative(feeUSD, price decimal.Decimal, decimals uint8) (chain.Amount, error) { // spec 2.8.14, D4.10
	if feeUSD.IsZero() {
		return chain.Amount{}, nil
	}

	if !price.IsPositive() {
		return chain.Amount{}, fault.New(
			fault.Unavailable, "price_unavailable",
			"a platform fee of %s USD cannot be counted in native coin without a price",
			feeUSD,
		)
	}
	// exact; rounding down drops the remainder
	units, _ := feeUSD.Shift(int32(decimals)).QuoRem(price, 0)

	return chain.AmountFromBig(units.BigInt())
}

// Split divides an amount by weights, each share rounded down and the remainder added to the first:
// the shares sum to the amount. The weights must not all be zero.
func Split(amount chain.Amount, weights []chain.Amount) []chain.Amount {
	var sum, given chain.Amount
	for _, w := range weights {
		sum = sum.Add(w)
	}

	shares := make([]chain.Amount, len(weights))
	for i, w := range weights {
		shares[i] = amount.Share(w, sum)
		given = given.Add(shares[i])
	}

	shares[0] = shares[0].Add(amount.Sub(given))

	return shares
}
