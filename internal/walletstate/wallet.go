package walletstate

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// Freeze freezes the wallet for a reason. The reason of a new epoch replaces that of a transaction that is
// not on record, whose hash stays. Otherwise the first reason stays.
func Freeze(w *wallet.Wallet, reason wallet.FreezeReason, txHash string, now time.Time) {
	if w.FrozenBy == "" {
		w.FrozenBy = txHash
	}

	if w.Frozen == "" || reason == wallet.FrozenEpoch && w.Frozen != wallet.FrozenEpoch {
		w.Frozen, w.FrozenAt = reason, now
	}
}

// Unfreeze ends the freeze.
func Unfreeze(w *wallet.Wallet) { w.Frozen, w.FrozenBy, w.FrozenAt = "", "", time.Time{} }

// Holds reports whether a payout made at a time is older than the epoch that froze the wallet. It then waits
// until a person has compared the wallet with its network.
func Holds(w *wallet.Wallet, createdAt time.Time) bool { // spec D11.25
	return w.Frozen == wallet.FrozenEpoch && !createdAt.After(w.FrozenAt)
}
