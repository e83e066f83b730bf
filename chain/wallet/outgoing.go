package wallet

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Outgoing is what a transaction in a block took from an address of ours: one nonce, one coin, or on
// networks with neither its signature. The follower stores these rows in the transaction that moves the
// network's cursor, and a fork deletes those above it. So they are what the canonical chain says of our
// wallets, as far as it was read: the proof that a transaction of ours is included, failed or dead, and
// the sign that somebody else has the key.
type Outgoing struct {
	// Network and Key identify the row: a chain holds at most one transaction per key. Key is
	// "<txid>:<vout>" of an output, "<sender>/<nonce>", "<account>/<value>" of a durable nonce, or "<sender>/<hash>" of
	// what many transactions may use up (chain.Spend.Shared).
	Network, Key string
	// Address is ours: the sender, or the owner of the coin.
	Address chain.Address
	// Nonce is the sender's; 0 where there are none.
	Nonce uint64
	// Outpoint is the coin that was spent; zero on account networks.
	Outpoint chain.Outpoint
	// TxHash is the transaction.
	TxHash string
	// Block is where it is.
	Block chain.Ref
	// Failed is set when its execution failed: it took its nonce and its fee, and moved nothing.
	Failed bool
	// Unrecorded is set when the transaction is none of ours, made after the wallet was registered, or a second
	// attempt of one of ours.
	Unrecorded bool
	// Transfers are what an Unrecorded transaction moved, as far as its block shows.
	Transfers []chain.Transfer
	// Fee is the network fee of an acknowledged transaction, in base units of the native coin.
	Fee chain.Amount
	// Acknowledged is what a person said that an Unrecorded transaction was: ids of payouts, refunds
	// and settlements separated by commas, or Foreign, which ids may follow; empty until then.
	Acknowledged string
	// Version is the store's; see store.Tx.
	Version int64
}

// Foreign acknowledges a transaction that fulfils nothing on record. Ids after it name objects that the
// transaction equals but does not pay, or that had ended.
const Foreign = "foreign"
