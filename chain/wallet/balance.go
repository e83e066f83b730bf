package wallet

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// Balance is what a wallet holds of one asset and what of it is promised.
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
	// Reservations are what queued and running transactions may take. One ends only in the write of a balance
	// that was read at a block which includes its transaction.
	Reservations []Reservation
	Version      int64
}

// Reservation is one promise against a balance.
type Reservation struct {
	ObjectID string       `json:"object_id"`
	Amount   chain.Amount `json:"amount"`
	// SpentAt is the height of the block that includes the transaction; 0 before.
	SpentAt uint64 `json:"spent_at,omitempty"`
	// Released is set when the object failed: the reservation ends with the next write.
	Released bool `json:"released,omitempty"`
}

// Available returns what may still be promised: the balance less what is reserved.
func (b Balance) Available() chain.Amount { return b.OnChain.SubFloor(b.Reserved) }

// Reserve promises an amount to an object; reserving again for the same object sets the amount
// anew. More than is available is fault.State with code insufficient_balance, and nothing changes.
func (b *Balance) Reserve(objectID string, amount chain.Amount) error {
	rest := slices.DeleteFunc(
		slices.Clone(b.Reservations), func(r Reservation) bool { return r.ObjectID == objectID },
	)
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

// Release gives a promise back. It ends with the next balance written, as what was read before may
// be older than whatever made the object fail.
func (b *Balance) Release(objectID string) {
	rest := slices.Clone(b.Reservations)
	for i := range rest {
		if rest[i].ObjectID == objectID {
			rest[i].Released = true
		}
	}

	b.set(rest)
}

// Spend records at which height the transaction of an object was included, so that the promise ends
// once a balance read there shows the money gone. Height 0 takes that back; a promise that has
// ended since is made again with the amount, whether it is covered or not: the money is on its way
// out.
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

// Read takes a balance read at a block, and ends the promises that it shows fulfilled and those
// given back. A block below the one read last is not taken: a node that lags must not bring back
// money that was spent. It reports whether the balance was taken.
func (b *Balance) Read(at chain.Ref, amount chain.Amount) bool {
	if at.Height < b.At.Height {
		return false
	}

	b.OnChain, b.At = amount, at
	b.set(slices.DeleteFunc(slices.Clone(b.Reservations), func(r Reservation) bool {
		spent := r.SpentAt != 0 && r.SpentAt <= at.Height
		return spent || (r.Released && r.SpentAt == 0)
	}))

	return true
}

func (b *Balance) set(rest []Reservation) { b.Reservations, b.Reserved = rest, total(rest) }

func total(rs []Reservation) chain.Amount {
	var sum chain.Amount
	for _, r := range rs {
		sum = sum.Add(r.Amount)
	}

	return sum
}
