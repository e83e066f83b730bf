package wallet

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Coin is an output of ours (UTXO) with its reservation and its spend. Its height is 0 while it is in no
// block: it is change of a transaction of ours in the pool, or a payment that a CPFP bump spends.
type Coin struct {
	chain.Coin
	Network string
	// ReservedBy is the id of the transaction that may spend it.
	ReservedBy string
	// SpentBy is the hash of the transaction that spends it in a block, SpentAt the height of that block.
	SpentBy string
	SpentAt uint64
	// Depth is the number of waiting transactions of ours that it depends on; 0 in a block.
	Depth int
	// MatureAt is the lowest tip height at which a block reward may be spent; 0 for other coins.
	MatureAt uint64
	Version  int64
}
