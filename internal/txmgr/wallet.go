package txmgr

import (
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// Every nonce below Wallet.NextNonce has bytes of ours on record: NextNonce only rises in the transaction
// that stores them. The chain's count may be ahead (somebody else has the key and used it, or the store was
// restored from a backup) or behind (our transactions wait, or the node lags).

// nextNonce returns the nonce of the wallet's next new transaction: the higher of what was signed here and
// what the chain has counted.
func nextNonce(w wallet.Wallet, counted uint64) uint64 { return max(w.NextNonce, counted) }

// advanceNonce raises NextNonce above a signed nonce.
func advanceNonce(w *wallet.Wallet, nonce uint64) { w.NextNonce = max(w.NextNonce, nonce+1) }

// gap returns the nonce that blocks the wallet's waiting transactions although no live transaction of ours
// has it: a foreign transaction that used it left the chain with its block. ok is false when there is none.
func gap(counted uint64, live []wallet.Transaction) (nonce uint64, ok bool) {
	waiting := false

	for _, t := range live {
		if t.State == wallet.Queued && t.Kind == wallet.Cancel && t.Order.Nonce == counted {
			return 0, false // a cancel fills it
		}

		if len(t.Attempts) == 0 {
			continue
		}

		if t.Nonce == counted {
			return 0, false
		}

		waiting = waiting || (t.Nonce > counted && t.State != wallet.Included)
	}

	return counted, waiting
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
