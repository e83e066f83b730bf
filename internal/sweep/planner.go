package sweep

import (
	"cmp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The planner decides; it reads nothing and writes nothing.

// maxGroup bounds how many settlements one release takes.
const maxGroup = 50

// group is the settlements of one place that may be released together, oldest first.
type group []settlement.Settlement

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

func networkFees(steps []chain.ReleaseStep) (sum chain.Amount) {
	for _, s := range steps {
		sum = sum.Add(s.NetworkFee)
	}

	return sum
}

// paysFee is the platform fee that a plan pays.
func paysFee(steps []chain.ReleaseStep) (sum chain.Amount) {
	for _, s := range steps {
		sum = sum.Add(s.PaysFee)
	}

	return sum
}

// notWorthSending reports whether a transaction that does nothing but pay the platform fee costs
// more than it pays.
func notWorthSending(steps []chain.ReleaseStep) bool {
	for _, s := range steps {
		if s.Kind == chain.StepFee && !s.NetworkFee.Less(s.PaysFee) {
			return true
		}
	}

	return false
}

// fromMaster is what a step can take from the master wallet's native coin.
func fromMaster(step chain.ReleaseStep, master chain.Address, nativeID string) (sum chain.Amount) {
	payer := step.Order.From.Address
	if step.Order.FeePayer != nil {
		payer = step.Order.FeePayer.Address
	}

	if payer == master {
		sum = sum.Add(step.Order.MaxFee)
	}

	if step.Order.From.Address == master {
		for _, o := range step.Order.Outputs {
			if o.AssetID == nativeID {
				sum = sum.Add(o.Amount)
			}
		}
	}

	return sum
}

// allFromMaster is what a plan can take from the master wallet: the platform fee, the top-up, and
// network fees with their headroom. It is what the wallet has to hold, and what is reserved there.
func allFromMaster(steps []chain.ReleaseStep, master chain.Address, nativeID string) (sum chain.Amount) {
	for _, s := range steps {
		sum = sum.Add(fromMaster(s, master, nativeID))
	}

	return sum
}

// check makes sure that a plan does what was asked and nothing else: a driver with a fault must not
// move money.
func checkPlan(r chain.Release, steps []chain.ReleaseStep, nativeID string) error {
	wrong := func(what string) error {
		return fault.New(
			fault.Invalid, "not_releasable",
			"the driver's plan for %s of %s at %s %s; it was not carried out",
			r.Amount, r.Asset.Symbol, r.Deposit.Address, what,
		)
	}
	if len(steps) == 0 || steps[len(steps)-1].Kind != chain.StepSweep {
		return wrong("does not end with a sweep")
	}

	if fee := paysFee(steps); !fee.IsZero() && fee != r.Fee {
		return wrong("pays another platform fee than asked")
	}

	for i, s := range steps {
		if len(s.Order.Outputs) == 0 || s.Order.MaxFee.IsZero() ||
			(s.Kind == chain.StepSweep && i != len(steps)-1) {
			return wrong("has a step without a payment or a maximum fee, or after the sweep")
		}

		from := r.Deposit.Address
		if s.Kind == chain.StepTopUp || (s.Kind == chain.StepFee && r.Asset.ID != nativeID) {
			from = r.Master.Address
		}

		if s.Order.From.Address != from {
			return wrong("pays its " + string(s.Kind) + " from another wallet")
		}

		if p := s.Order.FeePayer; p != nil && p.Address != r.Deposit.Address &&
			p.Address != r.Master.Address {
			return wrong("has its network fees paid by another wallet")
		}

		var swept, paid chain.Amount

		for _, o := range s.Order.Outputs {
			switch {
			case s.Kind == chain.StepTopUp && o.To == r.Deposit.Address && o.AssetID == nativeID:
			case s.Kind == chain.StepSweep && o.To == r.Master.Address && o.AssetID == r.Asset.ID:
				swept = swept.Add(o.Amount)
			case s.Kind != chain.StepTopUp && o.To == r.FeeAddress && o.AssetID == nativeID:
				paid = paid.Add(o.Amount)
			default:
				return wrong("pays " + string(o.To))
			}
		}

		if paid != s.PaysFee {
			// A merchant whose master wallet is the fee address cannot be told apart; the sum is.
			if r.FeeAddress != r.Master.Address {
				return wrong("pays another platform fee than it says")
			}
		}

		if r.Amount.Less(swept) || (s.Kind == chain.StepSweep && swept.IsZero()) {
			return wrong("sweeps more than the deposits, or nothing")
		}
	}

	return nil
}

// nextCheck is when a held settlement is planned again: soon when it only waits for the wallet to be filled.
func nextCheck(reason settlement.Reason, now time.Time) time.Time {
	if reason == settlement.InsufficientMasterBalance {
		return now.Add(time.Minute)
	}

	return now.Add(5 * time.Minute)
}
