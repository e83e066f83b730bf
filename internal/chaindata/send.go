package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// The asset ids of outputs that move no coin, on Tron: so much of the sender's stake, in base units of the native
// coin, is delegated to the destination, which may use its energy, or taken back from it.
const (
	DelegateEnergy   = "energy:delegate"
	UndelegateEnergy = "energy:undelegate"
)

// MovesCoin reports whether an output pays its destination. One of DelegateEnergy or UndelegateEnergy does not.
func MovesCoin(o chain.Output) bool {
	return o.AssetID != DelegateEnergy && o.AssetID != UndelegateEnergy
}
