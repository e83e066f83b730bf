package wallet

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Outgoing records that a transaction in a block used up a nonce or a coin of an address of ours. On networks
// with neither, it records that the address signed. The follower stores these rows in the transaction that
// moves the network's cursor. A fork deletes the rows above the common block. So the rows show what the
// canonical chain, as far as it was read, holds of our wallets. They prove that a transaction of ours is
// included, failed or dead. A transaction of somebody else in them shows that somebody else has the key.
type Outgoing struct {
	// Network and Key identify the row: a chain holds at most one transaction per key. Key is "<txid>:<vout>"
	// for an output, "<sender>/<nonce>" for a nonce, "<account>/<value>" for a durable nonce, or
	// "<sender>/<hash>" for a shared spend (chain.Spend.Shared).
	Network, Key string
	// Address is ours: the sender, or the owner of the coin.
	Address chain.Address
	// Nonce is the sender's nonce; 0 on networks without nonces.
	Nonce uint64
	// Outpoint is the coin that was spent; zero on account networks.
	Outpoint chain.Outpoint
	// TxHash is the transaction.
	TxHash string
	// Block is where it is.
	Block chain.Ref
	// Failed is set when the execution failed: the transaction used its nonce and paid its fee, but
	// transferred nothing.
	Failed bool
	// Unrecorded is set for a transaction that is not ours and was made after the wallet was registered. It
	// is also set for a second attempt of a transaction of ours.
	Unrecorded bool
	// Transfers are the transfers of an Unrecorded transaction, as far as its block shows them.
	Transfers []chain.Transfer
	// Fee is the network fee of an acknowledged transaction, in base units of the native coin.
	Fee chain.Amount
	// Acknowledged records which objects an Unrecorded transaction fulfilled, as a person declared; empty until
	// then. It lists ids of payouts, refunds and settlements separated by commas, or is Foreign, which ids may
	// follow.
	Acknowledged string
	// Version is the store's; see store.Tx.
	Version int64
}

// Foreign acknowledges a transaction that fulfils nothing on record. Ids after it name objects whose payments
// equal the transaction's but are not made by it, or objects that had ended.
const Foreign = "foreign"
