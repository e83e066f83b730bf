// Package send makes transactions of ours happen: money out.
//
// Payouts, refunds, platform fees, top-ups and sweeps are all rows of one outbox. A row is queued in the
// transaction of the object that wants it; the worker takes the lease of the wallet that pays, reserves
// the nonce or the coins, has the transaction signed, and stores the signed bytes together with their
// hash and nonce before the first broadcast. From then on the row is only ever moved by what the
// network proves: the same bytes are sent again until a block has them, replaced by bytes at the same
// nonce (or sharing a coin) that pay more, or given up when a final block proves that none of them can
// be included any more. A time-out at broadcast is not a failure.
//
// Nonces, coins and the balance reservations of wallets live here; drivers keep no state. Owners of rows
// hear of progress through the fact event.FactTransaction, inside the transaction that stores it.
package send

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Wallet is an address that pays, with the nonce counter of its network.
type Wallet struct {
	Network string
	Party   chain.Party
	// NextNonce is the nonce after the highest one that we signed; it only rises.
	NextNonce uint64
	Version   int64
}
