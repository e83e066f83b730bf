package wallet

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Balance is what a wallet holds of one asset and what of it is reserved, in base units.
type Balance struct {
	Network string
	Address chain.Address
	AssetID string
	Owner   event.Owner
	// OnChain is the balance read at block At.
	OnChain chain.Amount
	At      chain.Ref
	// Reserved is the sum of Reservations.
	Reserved chain.Amount
	// Reservations are what queued and live transactions may take. One ends only with a balance that was
	// read at a block which includes its transaction.
	Reservations []Reservation
	Version      int64
}

// Reservation is an amount of a balance that an object may take.
type Reservation struct {
	ObjectID string       `json:"object_id"`
	Amount   chain.Amount `json:"amount"`
	// SpentAt is the height of the block that includes the transaction; 0 before.
	SpentAt uint64 `json:"spent_at,omitempty"`
	// Released is set when the object failed: the reservation ends with the next balance read.
	Unreserved bool `json:"unreserved,omitempty"`
}

// Available returns what may still be reserved, in base units: the balance less Reserved.
func (b Balance) Available() chain.Amount { return b.OnChain.SubFloor(b.Reserved) }

// Reserve reserves an amount (base units) for an object. Reserving again for the object replaces the
// amount. More than is available is fault.State with code insufficient_balance, and nothing changes.
func (b *Balance) Reserve(objectID string, amount chain.Amount) error { // spec D5.13
	ofObject := func(r Reservation) bool { return r.ObjectID == objectID }
	rest := slices.DeleteFunc(slices.Clone(b.Reservations), ofObject)
	others := total(rest)

	free := b.OnChain.SubFloor(others)
	if free.Less(amount) {
		return fault.New(
			fault.State,
			"insufficient_balance",
			"wallet %s on %s has %s base units of asset %s available, %s are needed: top it up with at least %s",
			b.Address,
			b.Network,
			free,
			b.AssetID,
			amount,
			amount.Sub(free),
		)
	}

	if !amount.IsZero() {
		rest = append(rest, Reservation{ObjectID: objectID, Amount: amount})
	}

	b.set(rest)

	return nil
}

// Unreserve marks the reservation of an object as released. It ends with the next balance read: an earlier
// one may be older than what made the object fail.
func (b *Balance) Unreserve(objectID string) {
	rest := slices.Clone(b.Reservations)
	for i := range rest {
		if rest[i].ObjectID == objectID {
			rest[i].Unreserved = true
		}
	}

	b.set(rest)
}

// Spend records the height at which an object's transaction was included; its reservation ends with a
// balance read there. Height 0 reverts that: a reservation that has ended is restored with the amount
// (base units), even if the balance does not cover it, as the money is still to leave.
func (b *Balance) Spend(objectID string, height uint64, amount chain.Amount) {
	rest := slices.Clone(b.Reservations)

	i := slices.IndexFunc(rest, func(r Reservation) bool { return r.ObjectID == objectID })
	switch {
	case i >= 0:
		rest[i].SpentAt = height
	case height == 0 && !amount.IsZero():
		rest = append(rest, Reservation{ObjectID: objectID, Amount: amount})
	}

	b.set(rest)
}

// Update sets the balance (base units) as of a block, and ends the reservations that were spent up to it or
// released. It reports whether it did: a block below the last one is ignored, because a node that lags must
// not restore money that was spent.
func (b *Balance) Update(at chain.Ref, amount chain.Amount) bool { // spec D5.10
	if at.Height < b.At.Height {
		return false
	}

	b.OnChain, b.At = amount, at
	b.set(slices.DeleteFunc(slices.Clone(b.Reservations), func(r Reservation) bool {
		spent := r.SpentAt != 0 && r.SpentAt <= at.Height
		return spent || (r.Unreserved && r.SpentAt == 0)
	}))

	return true
}

// set replaces the reservations and their sum.
func (b *Balance) set(rest []Reservation) { b.Reservations, b.Reserved = rest, total(rest) }

// total returns the sum of reservations, in base units.
func total(rs []Reservation) chain.Amount {
	var sum chain.Amount
	for _, r := range rs {
		sum = sum.Add(r.Amount)
	}

	return sum
}
