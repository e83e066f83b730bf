// Package wallet holds the records of our own transactions and of the wallets that pay them, and the
// interfaces that a store implements for them.
//
// A payout, refund, platform fee, top-up or sweep is one Transaction. It is queued in the transaction of the
// object that needs it, and signed with its bytes stored before the first broadcast. From then on, what the
// network proves moves it. The moves (internal/walletstate) are pure functions. internal/txmgr makes them.
package wallet

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
)

// FreezeReason says why nothing new is signed for a wallet.
type FreezeReason string

// The reasons; empty for a wallet that is not frozen.
const (
	// FrozenUnrecorded is the reason after a transaction of the wallet that is not on record.
	FrozenUnrecorded FreezeReason = "unrecorded_transaction"
	// FrozenPaidTwice is the reason after a block that holds a second attempt of a transaction of ours.
	FrozenPaidTwice FreezeReason = "paid_twice"
	// FrozenEpoch is the reason after the host has raised payments.Config.Epoch.
	FrozenEpoch FreezeReason = "epoch"
)

// ForeignPolicy selects the effect of a master wallet's transaction that is not on record.
type ForeignPolicy string

// The policies.
const (
	// FreezeWallet freezes the wallet until a person has acknowledged the transaction.
	FreezeWallet ForeignPolicy = ""
	// Tolerate freezes it only for a transaction that equals a waiting payout: for merchants who also
	// spend by hand.
	Tolerate ForeignPolicy = "tolerate"
)

// Wallet is an address that pays, with the nonce counter of its network.
type Wallet struct {
	Network string
	Party   chain.Party
	// NextNonce is the nonce after the highest one that we signed; it only rises.
	NextNonce uint64
	// Since is the height of the network when the wallet was registered. Transactions of the wallet up to
	// that height need not be on record.
	Since uint64
	// Epoch is the newest payments.Config.Epoch in which a person compared the wallet with its
	// network, or in which it was registered.
	Epoch uint64
	// Frozen is why nothing new is signed for the wallet; empty while it is not frozen.
	Frozen FreezeReason
	// FrozenBy is the hash of the first transaction that is not on record, or of a second attempt in a block;
	// empty for other reasons.
	FrozenBy string
	// FrozenAt is when the wallet was frozen.
	FrozenAt time.Time
	Version  int64
}
