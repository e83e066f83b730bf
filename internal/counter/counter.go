// Package counter names the counters that stores keep, and that ReserveNumbers of a store's transaction
// raises. If the numbers of a counter must never be given out twice, an epoch skips some.
package counter

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
)

// AccountIndex counts account.Account.Index.
const AccountIndex = "account_index"

// InvoiceNumber returns the counter of invoice numbers of an account and mode.
func InvoiceNumber(owner event.Owner) string { // spec D1.4
	return "invoice-number/" + modeOf(owner)
}

// DepositNumber returns the counter of deposit addresses of an account and mode.
func DepositNumber(owner event.Owner) string { return "deposit-number/" + modeOf(owner) }

// DerivationIndex returns the counter of derivation indexes of a key space.
func DerivationIndex(space chain.Space) string { return "index/" + space.String() } // spec D2.2.4

// modeOf returns the part of a counter's name for an account and mode.
func modeOf(owner event.Owner) string {
	mode := "test"
	if owner.Livemode {
		mode = "live"
	}

	return owner.AccountID + "/" + mode
}
