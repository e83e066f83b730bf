// Package audit holds the report of Engine.Audit: what the records say of every address of ours
// beside what the networks hold, with each difference and the records that it is about.
package audit

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// Report is what Engine.Audit found, one entry per network.
type Report struct {
	Networks []Network
}

// Clean reports whether every network was compared and no difference found.
func (a Report) Clean() bool {
	for _, n := range a.Networks {
		if n.Unchecked != "" || len(n.Differences) > 0 {
			return false
		}
	}

	return true
}

// Differences returns those of all networks.
func (a Report) Differences() []Difference {
	var all []Difference
	for _, n := range a.Networks {
		all = append(all, n.Differences...)
	}

	return all
}

// Network is the comparison of one network at one block.
type Network struct {
	Network string
	// At is the block whose state was compared: the newest whose payments are stored.
	At chain.Ref
	// Unchecked says why balances were not compared (the driver cannot read them); the records
	// were, among themselves.
	Unchecked string
	// Payments, Transactions and Holdings count what was added up and how many balances were compared.
	Payments, Transactions, Holdings int
	// Wallets are the master wallets.
	Wallets     []Wallet
	Differences []Difference
}

// Wallet is one asset of a master wallet.
type Wallet struct {
	Owner   event.Owner
	Address chain.Address
	Asset   string
	AssetID string
	// OnChain is what the wallet holds at the block.
	OnChain chain.Amount
	// In and Out are what our own transactions brought and took, network fees included.
	In, Out chain.Amount
	// Outside = OnChain + Out − In: what came from elsewhere, such as the merchant's own top-ups,
	// of which there are no records. From one audit to the next it changes only by what the
	// merchant put in or took out.
	Outside chain.Amount
	// Reserved is what payouts and releases may still take.
	Reserved chain.Amount
}

// Kind says what does not agree.
type Kind string

// The kinds.
const (
	// MoneyMissing: an address holds less than the records explain.
	MoneyMissing Kind = "money_missing"
	// MoneyUnexplained: a deposit address holds more than the records explain. A payment that only
	// a balance shows is one until the follower has found it.
	MoneyUnexplained Kind = "money_unexplained"
	// ForeignTransaction: somebody else used the key of an address of ours.
	ForeignTransaction Kind = "foreign_transaction"
	// RecordsDisagree: two records contradict each other.
	RecordsDisagree Kind = "records_disagree"
	// ReservationLeft: a balance is promised to something that is over.
	ReservationLeft Kind = "reservation_left"
)

// Difference is one thing that does not agree, with the records that it is about.
type Difference struct {
	Kind    Kind
	Network string
	// Address and AssetID say where; empty when records disagree.
	Address chain.Address
	AssetID string
	// Expected is what the records come to, Found what the network holds, in base units of the asset.
	Expected, Found chain.Amount
	// Message is a sentence for a person.
	Message string
	// Records are those that were added up, the newest first, at most maxRecords of them.
	Records []Record
}

// Record is a record that moved money or should have.
type Record struct {
	// Object is "payment", "transaction", "payout", "refund", "settlement" or "release".
	Object, ID string
	TxHash     string
	Height     uint64
	// In and Out are what it brought to and took from the address, in base units of the asset.
	In, Out chain.Amount
}
