package wallet

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Balance is a wallet's balance of one asset, in base units, with the reservations on it.
type Balance struct {
	Network string
	Address chain.Address
	AssetID string
	Owner   event.Owner
	// OnChain is the balance read at block At. When a fork removes that block, At keeps the height of the
	// common block, without a hash, until the balance is read again.
	OnChain chain.Amount
	At      chain.Ref
	// Reserved is the sum of Reservations.
	Reserved chain.Amount
	// Reservations are the amounts that queued and live transactions may spend. Once its transaction is included,
	// a reservation ends only with a balance read at that block or above.
	Reservations []Reservation
	Version      int64
}

// Reservation is an amount of a balance that an object may take.
type Reservation struct {
	ObjectID string       `json:"object_id"`
	Amount   chain.Amount `json:"amount"`
	// SpentAt is the height of the block that includes the transaction; 0 before.
	SpentAt uint64 `json:"spent_at,omitempty"`
	// Unreserved is set when the object failed: the reservation ends with the next balance read.
	Unreserved bool `json:"unreserved,omitempty"`
}

// Available returns what may still be reserved, in base units: the balance less Reserved.
func (b Balance) Available() chain.Amount { return b.OnChain.SubFloor(b.Reserved) }
