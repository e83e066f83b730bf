package walletstate

import (
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// Mature reports whether the coin may be spent in the block after the one at a height.
func Mature(c wallet.Coin, height uint64) bool { return c.MatureAt <= height }
