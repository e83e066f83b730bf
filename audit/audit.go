// Package audit holds the report of Engine.Audit: each difference between the records and the balances of our
// addresses on the networks, with the records that it is about.
package audit

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// Report is the result of Engine.Audit, one entry per network.
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

// Differences returns the differences of all networks.
func (a Report) Differences() []Difference {
	var all []Difference
	for _, n := range a.Networks {
		all = append(all, n.Differences...)
	}

	return all
}

// Network is the audit of one network at one block.
type Network struct {
	Network string
	// At is the block whose state was compared: the newest whose payments are stored.
	At chain.Ref
	// Unchecked is why balances were not compared (the driver cannot read them). The records were still
	// compared with each other.
	Unchecked string
	// Payments and Transactions count the records, Holdings the balances that were compared.
	Payments, Transactions, Holdings int
	// Wallets are the master wallets.
	Wallets     []Wallet
	Differences []Difference
	// Unnamed are payments that only a balance shows, and for which no transaction was found within 24 hours.
	// They are not differences: many nodes do not show coin that contracts send.
	Unnamed []Record
	// Unread are blocks up to At that were not read, as no node had them when the network was resumed. They may
	// hold what is missing or unexplained. They are not differences.
	Unread []Blocks
	// Strays are money at addresses of ours in the newest block that no balance shows. They are not
	// differences: there is no record of them. Engine.Recover moves one to the master wallet.
	Strays []Stray
	// StraysUnchecked is why strays were not searched for; empty on networks that have none.
	StraysUnchecked string
	// Recoveries are the results of calls of Engine.Recover, newest first.
	Recoveries []Recovery
}

// Blocks are consecutive blocks of a network, by their heights.
type Blocks struct{ From, To uint64 }

// Stray is money at an address of ours that no balance shows.
type Stray struct {
	// Owner is the owner of the address.
	Owner event.Owner
	chain.Stray
}

// Recovery is a transaction that moves a stray to the master wallet.
type Recovery struct {
	// ID is the id of the transaction.
	ID    string
	Owner event.Owner
	// Stray is the stray that was found, Output the output to the master wallet.
	Stray  chain.Stray
	Output chain.Output
	State  wallet.State
	// TxHash is empty until it is signed.
	TxHash string
	// Failure is set when State is wallet.Failed: nothing was moved, and Engine.Recover may be called again.
	Failure string
	// Waits is why it is still unsigned, or in no block, more than a minute after it was due: a code, a colon
	// and a sentence.
	Waits string
}

// Wallet is one asset of a master wallet. Its amounts are in base units of the asset.
type Wallet struct {
	Owner   event.Owner
	Address chain.Address
	Asset   string
	AssetID string
	// OnChain is the wallet's balance at the block.
	OnChain chain.Amount
	// In and Out are the credits and debits of our own transactions, network fees included.
	In, Out chain.Amount
	// Outside is OnChain + Out − In: money from elsewhere without records, such as the merchant's own
	// top-ups. From one audit to the next it changes only by the merchant's own transfers. It is 0 if the
	// merchant's transfers took out more than they brought in.
	Outside chain.Amount
	// Reserved is the amount that payouts and releases may still spend.
	Reserved chain.Amount
}

// Kind is the kind of a difference.
type Kind string

// The kinds.
const (
	// MoneyMissing: an address holds less than the records explain.
	MoneyMissing Kind = "money_missing"
	// MoneyUnexplained: an address that was shown to payers holds more than the records explain. This
	// includes a payment that only a balance shows, until it was compared.
	MoneyUnexplained Kind = "money_unexplained"
	// ForeignTransaction: a transaction that is not on record used the key of an address of ours, and
	// nobody has acknowledged it.
	ForeignTransaction Kind = "foreign_transaction"
	// PaidTwice: two attempts of one transaction of ours are in blocks, and nobody has acknowledged the second.
	PaidTwice Kind = "paid_twice"
	// RecordsDisagree: two records contradict each other.
	RecordsDisagree Kind = "records_disagree"
	// ReservationLeft: a balance is reserved for an object that has ended.
	ReservationLeft Kind = "reservation_left"
)

// Difference is one disagreement, with the records that it is about.
type Difference struct {
	Kind    Kind
	Network string
	// Address and AssetID identify the balance; empty when records disagree.
	Address chain.Address
	AssetID string
	// Expected is the balance by the records, Found the network's balance, in base units of the asset.
	Expected, Found chain.Amount
	// Message is a sentence for a person.
	Message string
	// Records are the records in the sum, newest first, at most 100.
	Records []Record
}

// Record is a record that moved money, or should have.
type Record struct {
	// Object is "payment", "dust", "transaction", "payout", "refund", "settlement" or "release".
	Object, ID string
	TxHash     string
	Height     uint64
	// In and Out are its credit and debit at the address, in base units of the asset.
	In, Out chain.Amount
}
