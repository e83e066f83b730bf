package walletstate

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// Reserve reserves an amount (base units) for an object. Reserving again for the object replaces the
// amount. More than is available is fault.State with code insufficient_balance, and nothing changes.
func Reserve(b *wallet.Balance, objectID string, amount chain.Amount) error { // spec D5.13
	ofObject := func(r wallet.Reservation) bool { return r.ObjectID == objectID }
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
		rest = append(rest, wallet.Reservation{ObjectID: objectID, Amount: amount})
	}

	set(b, rest)

	return nil
}

// Unreserve marks the reservation of an object as released. It ends with the next balance read: an earlier
// balance may be older than the failure of the object.
func Unreserve(b *wallet.Balance, objectID string) {
	rest := slices.Clone(b.Reservations)
	for i := range rest {
		if rest[i].ObjectID == objectID {
			rest[i].Unreserved = true
		}
	}

	set(b, rest)
}

// Debit records the height at which an object's transaction was included; its reservation ends with a balance
// read at or above it. Height 0 reverts that: a reservation that has ended is restored with the amount (base
// units), even if the balance does not cover it, because the money will still leave.
func Debit(b *wallet.Balance, objectID string, height uint64, amount chain.Amount) {
	rest := slices.Clone(b.Reservations)

	i := slices.IndexFunc(rest, func(r wallet.Reservation) bool { return r.ObjectID == objectID })
	switch {
	case i >= 0:
		rest[i].SpentAt = height
	case height == 0 && !amount.IsZero():
		rest = append(rest, wallet.Reservation{ObjectID: objectID, Amount: amount})
	}

	set(b, rest)
}

// UpdateBalance sets the balance (base units) that a node gave for a block; see SetBalance. It reports
// whether it did. It ignores a block below the last one, because a node that lags must not restore money that
// was spent. After a fork see RewindBalance.
func UpdateBalance(b *wallet.Balance, at chain.Ref, amount chain.Amount) bool {
	if at.Height < b.At.Height {
		return false
	}

	SetBalance(b, at, amount)

	return true
}

// SetBalance sets the balance (base units) as of a block. It ends the reservations that were released, and
// those whose transaction was included up to that block.
func SetBalance(b *wallet.Balance, at chain.Ref, amount chain.Amount) { // spec D5.10
	b.OnChain, b.At = amount, at
	set(b, slices.DeleteFunc(slices.Clone(b.Reservations), func(r wallet.Reservation) bool {
		spent := r.SpentAt != 0 && r.SpentAt <= at.Height
		return spent || (r.Unreserved && r.SpentAt == 0)
	}))
}

// RewindBalance records that the block of a balance left the chain, which forked at a height. Until the
// balance is read again it belongs to no block. Only the height of the fork stays, to refuse older readings.
// It reports whether it changed the balance.
func RewindBalance(b *wallet.Balance, fork uint64) bool {
	if b.At.Height <= fork {
		return false
	}

	b.At = chain.Ref{Height: fork}

	return true
}

// set replaces the reservations and their sum.
func set(b *wallet.Balance, rest []wallet.Reservation) {
	b.Reservations, b.Reserved = rest, total(rest)
}

// total returns the sum of reservations, in base units.
func total(rs []wallet.Reservation) chain.Amount {
	var sum chain.Amount
	for _, r := range rs {
		sum = sum.Add(r.Amount)
	}

	return sum
}
