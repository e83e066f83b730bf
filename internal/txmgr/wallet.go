package txmgr

import (
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// Every nonce below Wallet.NextNonce has bytes of ours on record: NextNonce only rises in the transaction
// that stores them. The chain's count may be ahead: somebody else has the key and used it, or the store was
// restored from a backup. It may be behind: our transactions wait, or the node lags.

// nextNonce returns the nonce of the wallet's next new transaction: the nonce after the ones signed here, or
// the chain's count if that is higher.
func nextNonce(w wallet.Wallet, counted uint64) uint64 { return max(w.NextNonce, counted) }

// advanceNonce raises NextNonce above a signed nonce.
func advanceNonce(w *wallet.Wallet, nonce uint64) { w.NextNonce = max(w.NextNonce, nonce+1) }

// maxGapDepth is the number of nonces below the wallet's next one among which gaps are searched.
const maxGapDepth = 4 * maxInFlight

// freeNonces returns the nonces below next that neither a live transaction of the wallet nor a queued cancel
// has. They are at most maxGapDepth below next, highest first.
func freeNonces(next uint64, live []wallet.Transaction) []uint64 {
	held := make(map[uint64]bool, len(live))

	for _, t := range live {
		if len(t.Attempts) > 0 {
			held[t.Nonce] = true
		} else if t.Kind == wallet.Cancel {
			held[t.Order.Nonce] = true
		}
	}

	var free []uint64

	for nonce := next; nonce > 0 && next-nonce < maxGapDepth; nonce-- {
		if !held[nonce-1] {
			free = append(free, nonce-1)
		}
	}

	return free
}

// lowestNonce reports whether no other waiting transaction of the wallet has a lower nonce. Only the lowest
// can be stuck because of its own fee.
func lowestNonce(t wallet.Transaction, live []wallet.Transaction) bool {
	for _, other := range live {
		if other.ID != t.ID && len(other.Attempts) > 0 && other.State != wallet.Included &&
			other.Nonce < t.Nonce {
			return false
		}
	}

	return true
}
