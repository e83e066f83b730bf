package wallet

import (
	"slices"
	"strings"
	"time"

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
	// Unrecorded is set when the transaction is none of ours, made after the wallet was registered.
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

// Foreign is what a person acknowledges a transaction as that fulfils nothing on record. Ids after it name
// objects that it equals and is not, or that had ended.
const Foreign = "foreign"

// ForeignFor is how long a payout that equals a Foreign transaction waits for a person.
const ForeignFor = 7 * 24 * time.Hour // spec D11.13

// Open reports whether the row waits for a person to acknowledge it.
func (o Outgoing) Open() bool { return o.Unrecorded && o.Acknowledged == "" }

// Foreign reports whether a person acknowledged the transaction as Foreign.
func (o Outgoing) Foreign() bool {
	return o.Unrecorded && strings.HasPrefix(o.Acknowledged, Foreign)
}

// Awaits reports whether an object whose payments equal the transaction's waits for a person: nobody has
// acknowledged the transaction yet, or it was Foreign in the last ForeignFor and does not name the object.
func (o Outgoing) Awaits(objectID string, outputs []chain.Output, now time.Time) bool {
	if !o.Unrecorded || !o.Pays(outputs) {
		return false
	}

	names := strings.Split(o.Acknowledged, ",")

	return o.Open() ||
		names[0] == Foreign && !slices.Contains(names, objectID) && now.Sub(o.Block.Time) < ForeignFor
}

// Pays reports whether the transaction moved exactly one of the outputs' amounts to its destination.
func (o Outgoing) Pays(outputs []chain.Output) bool {
	return slices.ContainsFunc(outputs, func(out chain.Output) bool {
		return slices.ContainsFunc(o.Transfers, func(t chain.Transfer) bool {
			return t.To == out.To && t.AssetID == out.AssetID && t.Amount == out.Amount
		})
	})
}
