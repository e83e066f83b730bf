package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// The asset ids of outputs that move no coin, on Tron. The amount of the sender's stake, in base units of the
// native coin, is delegated to the destination, which may use its energy, or taken back from it.
const (
	DelegateEnergy   = "energy:delegate"
	UndelegateEnergy = "energy:undelegate"
)

// EnergyPrice returns the amount that the order of an energy step pays the sellers, in base units of the
// native coin.
func EnergyPrice(order chain.Order) (sum chain.Amount) {
	for _, o := range order.Outputs {
		if MovesCoin(o) {
			sum = sum.Add(o.Amount)
		}
	}

	return sum
}

// MovesCoin reports whether an output pays its destination. DelegateEnergy and UndelegateEnergy do not.
func MovesCoin(o chain.Output) bool {
	return o.AssetID != DelegateEnergy && o.AssetID != UndelegateEnergy
}
