package sweep

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
)

// maxGroup bounds how many settlements one release takes.
const maxGroup = 50

// group is the settlements of one place that may be released together, oldest first.
type group []settlement.Settlement

func (g group) gross() (sum chain.Amount) {
	for _, s := range g {
		sum = sum.Add(s.Gross)
	}

	return sum
}

// fee is the platform fee of the group that is not paid yet.
func (g group) fee() (sum chain.Amount) {
	for _, s := range g {
		sum = sum.Add(s.FeeCarried)
	}

	return sum
}

// spent is what earlier, failed releases already took out of native deposits.
func (g group) spent() (sum chain.Amount) {
	if g[0].FeeSource != settlement.FromDeposit {
		return sum
	}

	for _, s := range g {
		sum = sum.Add(s.FeePaid).Add(s.NetworkFees)
	}

	return sum
}

// bearing returns the group with what is owed at its address as a network fee of the oldest, if
// that pays its own way.
func (g group) withResidueOwed(owed chain.Amount) group {
	if owed.IsZero() || g[0].FeeSource != settlement.FromDeposit {
		return g
	}

	g = slices.Clone(g)
	g[0].NetworkFees = g[0].NetworkFees.Add(owed)

	return g
}

func (g group) ids() []string {
	ids := make([]string, len(g))
	for i, s := range g {
		ids[i] = s.ID
	}

	return ids
}

// belowMin reports whether every deposit of the group is worth less than the account's sweep
// minimum. One that is worth enough takes the others along.
func (g group) belowMin(minimum decimal.Decimal) bool {
	for _, s := range g {
		if !s.USDValue.LessThan(minimum) {
			return false
		}
	}

	return true
}

// uneconomic reports whether the network fees exceed half of what the group is worth. Native
// deposits are compared in base units, tokens in USD at the newest snapshot of the group.
func (g group) uneconomic(steps []chain.ReleaseStep, nativeDecimals uint8) bool {
	fees := networkFees(steps)
	if g[0].FeeSource == settlement.FromDeposit {
		return g.gross().Less(fees.Add(fees))
	}

	var worth decimal.Decimal
	for _, s := range g {
		worth = worth.Add(s.USDValue)
	}

	cost := fees.Decimal(nativeDecimals).Mul(g[len(g)-1].NativePrice)

	return cost.Add(cost).GreaterThan(worth)
}

// gather picks, of all that waits at a place, what one release may take: what is not in a release already and
// was not left to an operator, of one owner.
func eligible(at []settlement.Settlement) group {
	var g group
	for _, s := range at {
		if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.ReleaseID != "" ||
			s.DueAt.IsZero() ||
			s.Simulated ||
			len(g) == maxGroup {
			continue
		}

		if len(g) > 0 && g[0].Owner != s.Owner {
			continue
		}

		g = append(g, s)
	}

	slices.SortFunc(g, func(a, b settlement.Settlement) int { return cmp.Compare(a.ID, b.ID) })

	return g
}

// place is what a group shares: an address and an asset; where coins are spent, an owner and an asset.
type releaseKey struct {
	address chain.Address
	owner   event.Owner
	assetID string
}

// String names the place in logs.
func (p releaseKey) String() string { return string(p.address) + p.owner.AccountID }

func keyOf(s settlement.Settlement, spendsCoins bool) releaseKey {
	if spendsCoins {
		return releaseKey{owner: s.Owner, assetID: s.AssetID}
	}

	return releaseKey{address: s.Deposit.Address, assetID: s.AssetID}
}

// of returns the settlements that are at the place.
func (p releaseKey) of(all []settlement.Settlement) (at group) {
	for _, s := range all {
		if keyOf(s, p.address == "") == p {
			at = append(at, s)
		}
	}

	return at
}

// places returns where due settlements are, the oldest first.
func keysOf(due []settlement.Settlement, spendsCoins bool) []releaseKey {
	var out []releaseKey
	for _, s := range due {
		if p := keyOf(s, spendsCoins); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}

	return out
}
