package wallet

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Coin is an output of ours with who reserved and who spent it. Its height is 0 while it is in no
// block; then it is change of a transaction of ours that waits in the pool.
type Coin struct {
	chain.Coin
	Network string
	// ReservedBy is the transaction that may spend it (an id).
	ReservedBy string
	// SpentBy is the transaction that spends it in a block (a hash), and SpentAt the height of that block.
	SpentBy string
	SpentAt uint64
	// Depth is how many waiting transactions of ours it rests on; 0 in a block.
	Depth   int
	Version int64
}
