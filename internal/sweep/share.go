package sweep

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
)

// shares splits network fees (native base units) among the settlements of a release. Where coins are spent the
// fee follows the inputs, of which each deposit is one, else the amounts. The oldest takes the remainder.
func (w *sweepUpdate) shares(total chain.Amount) []chain.Amount { // spec D4.15
	driver, err := w.registry.Driver(w.release.Network)
	if err != nil {
		return settlementstate.Split(total, grossOfEach(w.group))
	}

	if _, spendsCoins := driver.(chain.CoinReader); !spendsCoins {
		return settlementstate.Split(total, grossOfEach(w.group))
	}

	limits := make([]chain.Amount, len(w.group))
	for i, s := range w.group {
		limits[i] = s.Gross.SubFloor(s.FeeNative)
	}

	return shareByInput(total, limits)
}

// shareByInput splits an amount equally. None bears more than its limit as long as the others can; what a
// small one does not bear is split among the others, and the oldest takes the remainder.
func shareByInput(total chain.Amount, limits []chain.Amount) []chain.Amount {
	shares := make([]chain.Amount, len(limits))

	for left := total; !left.IsZero(); {
		var open []int

		for i := range shares {
			if shares[i].Less(limits[i]) {
				open = append(open, i)
			}
		}

		if len(open) == 0 { // more than all of them hold
			for i, share := range settlementstate.Split(left, limits) {
				shares[i] = shares[i].Add(share)
			}

			return shares
		}

		equal := make([]chain.Amount, len(open))
		for i := range equal {
			equal[i] = chain.Units(1)
		}

		before := left
		for i, part := range settlementstate.Split(before, equal) {
			part = chaindata.Min(part, limits[open[i]].Sub(shares[open[i]]))
			shares[open[i]] = shares[open[i]].Add(part)
			left = left.Sub(part)
		}
	}

	return shares
}
