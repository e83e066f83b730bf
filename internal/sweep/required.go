package sweep

import (
	"github.com/seed-8ee7f392/payments/chain"
)

func networkFees(steps []chain.SweepStep) (sum chain.Amount) {
	for _, s := range steps {
		sum = sum.Add(s.NetworkFee)
	}

	return sum
}

// paysFee returns the platform fee that a plan pays, in native base units.
func paysFee(steps []chain.SweepStep) (sum chain.Amount) {
	for _, s := range steps {
		sum = sum.Add(s.PaysFee)
	}

	return sum
}

// fromMaster returns what a step can take from the master wallet at most, in native base units.
func fromMaster(step chain.SweepStep, master chain.Address, nativeID string) (sum chain.Amount) {
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

// allFromMaster returns what a plan can take from the master wallet at most, in native base units:
// platform fee, top-up, and network fees with headroom. The wallet must hold it, and it is reserved
// there.
func allFromMaster(steps []chain.SweepStep, master chain.Address, nativeID string) (sum chain.Amount) {
	// spec D4.11
	for _, s := range steps {
		sum = sum.Add(fromMaster(s, master, nativeID))
	}

	return sum
}
