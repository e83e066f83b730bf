package walletstate

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// NewOutgoing returns the row of a spend in a block of a network. owner is the address of ours.
func NewOutgoing(network string, owner chain.Address, spend chain.Spend, block chain.Ref) wallet.Outgoing {
	return wallet.Outgoing{
		Network:  network,
		Key:      chaindata.SpendKey(spend),
		Address:  owner,
		Nonce:    spend.Nonce,
		Outpoint: spend.Outpoint,
		TxHash:   spend.By,
		Block:    block,
		Failed:   spend.Failed,
	}
}

// IsOpen reports whether the row waits for a person to acknowledge it.
func IsOpen(o wallet.Outgoing) bool { return o.Unrecorded && o.Acknowledged == "" }

// IsForeign reports whether a person acknowledged the transaction as Foreign.
func IsForeign(o wallet.Outgoing) bool {
	return o.Unrecorded && strings.HasPrefix(o.Acknowledged, wallet.Foreign)
}

// ForeignFor is the time that a payout which equals a Foreign transaction waits for a person.
const ForeignFor = 7 * 24 * time.Hour // spec D11.13

// Awaits reports whether an object whose payments equal the transaction's waits for a person. It waits if
// nobody has acknowledged the transaction yet, or if the transaction was Foreign in the last ForeignFor and
// its acknowledgement does not name the object.
func Awaits(o wallet.Outgoing, objectID string, outputs []chain.Output, now time.Time) bool {
	if !o.Unrecorded || !Pays(o, outputs) {
		return false
	}

	names := strings.Split(o.Acknowledged, ",")

	return IsOpen(o) ||
		names[0] == wallet.Foreign && !slices.Contains(names, objectID) &&
			now.Sub(o.Block.Time) < ForeignFor
}

// Pays reports whether the transaction paid one of the outputs. Its destination received its amount, or its
// amount left the wallet and a token took a part of it on the way.
func Pays(o wallet.Outgoing, outputs []chain.Output) bool {
	return slices.ContainsFunc(outputs, func(out chain.Output) bool {
		return Payments(o.Transfers, "", out) > 0 || Payments(o.Transfers, o.Address, out) > 0
	})
}

// Payments returns how often the transfers of a transaction pay an output from an address, or from any
// address if from is empty. A token may take a part on the way. Then the amount must have left the address,
// and some of it must have arrived.
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

// sums returns the sums of transfers of an asset to and from an address. ok is false if a sum is larger than
// an amount can be, as a token may claim.
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
