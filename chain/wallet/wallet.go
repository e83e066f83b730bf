// Package wallet holds the records of our own transactions and of the wallets that pay them, their state
// machines, and the roles a store plays for them.
//
// A payout, refund, platform fee, top-up or sweep is one Transaction: queued in the transaction of the
// object that wants it, signed with its bytes stored before the first broadcast, and from then on moved by
// what the network proves. The moves (transaction.go) are pure. The mechanism that makes them is
// internal/txmgr.
package wallet

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
