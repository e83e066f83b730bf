package ledger

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// Split divides an amount by weights, each share rounded down and the remainder added to the first: the shares sum to
// the amount. Without a weight the first has all of it, and without shares nobody has anything.
func Split(amount chain.Amount, weights []chain.Amount) []chain.Amount {
	var sum, given chain.Amount
	for _, weight := range weights {
		sum = sum.Add(weight)
	}

	shares := make([]chain.Amount, len(weights))
	if len(shares) == 0 {
		return shares
	}

	if !sum.IsZero() {
		for i, weight := range weights {
			shares[i] = amount.Share(weight, sum)
			given = given.Add(shares[i])
		}
	}

	shares[0] = shares[0].Add(amount.Sub(given))

	return shares
}

// SplitByInput divides an amount equally. None bears more than its limit as long as the others can; what a small one
// does not bear is split among the others, and the first takes the remainder.
func SplitByInput(amount chain.Amount, limits []chain.Amount) []chain.Amount {
	shares := make([]chain.Amount, len(limits))

	for !amount.IsZero() && len(shares) > 0 {
		open := make([]chain.Amount, len(limits))
		bears := false

		for i := range open {
			if shares[i].Less(limits[i]) {
				open[i], bears = chain.Units(1), true
			}
		}

		if !bears { // more than all of them hold
			for i, share := range Split(amount, limits) {
				shares[i] = shares[i].Add(share)
			}

			break
		}

		amount = addUpTo(shares, limits, open, amount)
	}

	return shares
}

// addUpTo divides an amount equally among those that are open, none above its limit, and returns what is left.
func addUpTo(shares, limits, open []chain.Amount, amount chain.Amount) (left chain.Amount) {
	left = amount

	first := 0
	for open[first].IsZero() {
		first++
	}

	for i, share := range Split(amount, open[first:]) {
		i += first
		share = chaindata.Min(share, limits[i].SubFloor(shares[i]))
		shares[i], left = shares[i].Add(share), left.Sub(share)
	}

	return left
}
