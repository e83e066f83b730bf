package txmgr

import (
	"github.com/seed-8ee7f392/payments/chain/wallet"
)

// The nonces of a wallet. Every nonce below NextNonce has bytes of ours on record: NextNonce only
// rises in the transaction that stores them. The chain's own count may be ahead (somebody else
// holds the key and used it, or this store came back from a backup) or behind (transactions of ours
// wait, or the node lags).

// nextNonce returns the nonce that the next new transaction of a wallet takes: after all that were
// signed here, and after all that the chain has counted.
func nextNonce(w wallet.Wallet, counted uint64) uint64 { return max(w.NextNonce, counted) }

// advanceNonce records that a nonce was signed.
func advanceNonce(w *wallet.Wallet, nonce uint64) { w.NextNonce = max(w.NextNonce, nonce+1) }

// gap returns the nonce that keeps the wallet's waiting transactions from being included although
// no live transaction of ours holds it: a foreign transaction that used it went away with its
// block. ok is false when there is none.
func gap(counted uint64, live []wallet.Transaction) (nonce uint64, ok bool) {
	waiting := false

	for _, t := range live {
		if t.State == wallet.Queued && t.Kind == wallet.Cancel && t.Order.Nonce == counted {
			return 0, false // is being filled
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

// foremost reports whether no other live transaction of the wallet that still waits has a lower
// nonce: the only one that can be stuck by its own fault.
func lowestNonce(t wallet.Transaction, live []wallet.Transaction) bool {
	for _, other := range live {
		if other.ID != t.ID && len(other.Attempts) > 0 && other.State != wallet.Included &&
			other.Nonce < t.Nonce {
			return false
		}
	}

	return true
}
