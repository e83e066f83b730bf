package sweep

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// maxGroup bounds how many settlements one release takes.
const maxGroup = 50

// group holds the settlements of one release key that may be released together, oldest first.
type group []settlement.Settlement

func (g group) gross() (sum chain.Amount) { // spec D4.21
	for _, s := range g {
		sum = sum.Add(s.Gross)
	}

	return sum
}

// fee returns the platform fee of the group that is not paid yet and not left to others, in native base units.
func (g group) fee() (sum chain.Amount) {
	for _, s := range g {
		sum = sum.Add(settlementstate.DueFee(s))
	}

	return sum
}

// put stores the settlements of a group.
func (g group) put(ctx context.Context, tx settlement.Tx) error {
	for i := range g {
		if err := tx.PutSettlements(ctx, &g[i]); err != nil {
			return err
		}
	}

	return nil
}

// spent returns what earlier, failed releases took out of native deposits, in base units.
func (g group) spent() (sum chain.Amount) {
	if g[0].FeeSource != settlement.FromDeposit {
		return sum
	}

	for _, cost := range g.costs() {
		sum = sum.Add(cost)
	}

	return sum
}

// costs returns what each settlement bears of platform and network fees, in base units of the native coin.
func (g group) costs() []chain.Amount {
	out := make([]chain.Amount, len(g))
	for i, s := range g {
		out[i] = s.FeePaid.Add(s.NetworkFees)
	}

	return out
}

// released returns what the group's settlements show as released, in base units.
func (g group) released() (sum chain.Amount) {
	for _, s := range g {
		if s.NetReleased != nil {
			sum = sum.Add(*s.NetReleased)
		}
	}

	return sum
}

// splitReleased divides anew what the settlements of a release show as released: after a fork an earlier step of it is
// in a final block later than its sweep, and each bears what it pays itself.
func (w *sweepUpdate) splitReleased() {
	var (
		released group
		at       []int
	)

	for i, s := range w.group {
		if s.NetReleased != nil {
			released, at = append(released, s), append(at, i)
		}
	}

	for i, net := range released.net(released.released()) {
		w.group[at[i]].NetReleased = &net
	}
}

func (g group) ids() []string {
	ids := make([]string, len(g))
	for i, s := range g {
		ids[i] = s.ID
	}

	return ids
}

// eligible returns what releases may take of all that waits under a key: settlements of one owner
// that are in no release and not left to an operator.
func eligible(at []settlement.Settlement) group {
	var g group

	for _, s := range at {
		if (s.Status != settlement.Pending && s.Status != settlement.Held) || s.SweepID != "" ||
			s.DueAt.IsZero() ||
			s.Simulated {
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

// largest returns what one release takes of a group, with the coins of these settlements where there are some: at most
// maxGroup, the largest, so that many small ones hold up no large one. rest are the others. What is not worth it for
// the largest is not for the rest.
func (g group) largest(coins []chain.Coin) (taken group, spent []chain.Coin, rest group) {
	if len(g) <= maxGroup {
		return g, coins, nil
	}

	bySize := make([]int, len(g))
	for i := range bySize {
		bySize[i] = i
	}

	slices.SortFunc(bySize, func(a, b int) int {
		return cmp.Or(g[b].Gross.Cmp(g[a].Gross), cmp.Compare(g[a].ID, g[b].ID))
	})

	slices.Sort(bySize[:maxGroup]) // back in the group's order

	for i, at := range bySize {
		if i >= maxGroup {
			rest = append(rest, g[at])
			continue
		}

		taken = append(taken, g[at])
		if len(coins) > 0 {
			spent = append(spent, coins[at])
		}
	}

	return taken, spent, rest
}

// sweepKey is what a group shares: an address and an asset; where coins are spent, an owner and an
// asset.
type sweepKey struct {
	address chain.Address
	owner   event.Owner
	assetID string
}

// String returns the key as logs show it.
func (p sweepKey) String() string { return string(p.address) + p.owner.AccountID }

func keyOf(s settlement.Settlement, spendsCoins bool) sweepKey {
	if spendsCoins {
		return sweepKey{owner: s.Owner, assetID: s.AssetID}
	}

	return sweepKey{address: s.Deposit.Address, assetID: s.AssetID}
}

// of returns the settlements that have the key.
func (p sweepKey) of(all []settlement.Settlement) (at group) {
	for _, s := range all {
		if keyOf(s, p.address == "") == p {
			at = append(at, s)
		}
	}

	return at
}

// keysOf returns the distinct keys of due settlements, the oldest first.
func keysOf(due []settlement.Settlement, spendsCoins bool) []sweepKey {
	var out []sweepKey
	for _, s := range due {
		if p := keyOf(s, spendsCoins); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}

	return out
}
