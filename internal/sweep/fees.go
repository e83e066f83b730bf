package sweep

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// releaseCost returns what a final step costs its release, in native base units: its network fee, and what it pays for
// energy.
func releaseCost(t wallet.Transaction) chain.Amount {
	if t.Kind != wallet.Delegate {
		return t.Fee
	}

	return t.Fee.Add(chaindata.EnergyPrice(t.Order))
}

// setNetworkFee sets what the network took for a step, in native base units.
func (w *sweepUpdate) setNetworkFee(step *settlement.Step, fee chain.Amount) {
	w.splitNetworkFees(func() { step.NetworkFee = fee })
}

// splitNetworkFees applies a change of the release's network fees and splits the new total among the
// settlements; see shares. What joins the release by the change had no share before.
func (w *sweepUpdate) splitNetworkFees(change func()) {
	if len(w.group) == 0 {
		change()
		return
	}

	before := w.shares(totalNetworkFees(w.release))

	change()

	before = append(before, make([]chain.Amount, len(w.group)-len(before))...)

	for i, share := range w.shares(totalNetworkFees(w.release)) {
		w.group[i].NetworkFees = w.group[i].NetworkFees.Add(share).SubFloor(before[i])
	}
}
