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

// Foreign acknowledges a transaction that fulfils nothing on record. Ids after it name objects that the
// transaction equals but does not pay, or that had ended.
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

// Pays reports whether the transaction paid one of the outputs: it moved its amount to its destination, or its
// amount left the wallet and a token took a part of it on the way.
func (o Outgoing) Pays(outputs []chain.Output) bool {
	return slices.ContainsFunc(outputs, func(out chain.Output) bool {
		return Payments(o.Transfers, "", out) > 0 || Payments(o.Transfers, o.Address, out) > 0
	})
}

// Payments returns how often the transfers of a transaction pay an output from an address, or from any where it is
// empty. A token may take a part on the way: what left the address is the amount then, and some of it arrived.
func Payments(transfers []chain.Transfer, from chain.Address, out chain.Output) (n int) {
	for _, t := range transfers {
		if t.To == out.To && t.AssetID == out.AssetID && t.Amount == out.Amount &&
			(from == "" || t.From == from || t.From == "") {
			n++
		}
	}

	if n > 0 || from == "" || from == out.To {
		return n
	}

	returned, sent, ok := sums(transfers, out.AssetID, from)
	arrived, moved, both := sums(transfers, out.AssetID, out.To)

	left, kept := sent.SubFloor(returned), arrived.SubFloor(moved)
	if ok && both && left == out.Amount && !kept.IsZero() && !left.Less(kept) {
		return 1
	}

	return 0
}

// sums returns what transfers of an asset brought an address, and what they took from it; ok is false where a sum is
// larger than an amount can be, as a token may claim.
func sums(transfers []chain.Transfer, assetID string, address chain.Address) (in, out chain.Amount, ok bool) {
	ok = true

	for _, t := range transfers {
		if t.AssetID != assetID {
			continue
		}

		fits := true

		if t.To == address {
			in, fits = in.AddOK(t.Amount)
		}

		ok = ok && fits

		if t.From == address {
			out, fits = out.AddOK(t.Amount)
		}

		ok = ok && fits
	}

	return in, out, ok
}
