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
	// chain.Spend.Key.
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
	// Acknowledged is what a person said that a transaction which is not on record was: ids of
	// payouts, refunds and settlements separated by commas, or "foreign"; empty until then.
	Acknowledged string
	// Version is the store's; see store.Tx.
	Version int64
}

// NewOutgoing returns the row of a spend in a block of a network. owner is the address of ours.
func NewOutgoing(network string, owner chain.Address, spend chain.Spend, block chain.Ref) Outgoing {
	return Outgoing{
		Network:  network,
		Key:      spend.Key(),
		Address:  owner,
		Nonce:    spend.Nonce,
		Outpoint: spend.Outpoint,
		TxHash:   spend.By,
		Block:    block,
		Failed:   spend.Failed,
	}
}
