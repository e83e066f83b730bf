package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// maxClockSkew is how far the time of a block may be from ours.
const maxClockSkew = 15 * time.Minute

// leftovers is what our own transactions left at an address.
type leftovers struct {
	// moved are the payments, by id, whose money is not there any more.
	moved map[string]bool
	// brought is what they left there beside the payments, and taken what they took of those, by asset and in
	// base units. What transactions did that are not on record is added by addUnrecorded.
	brought, taken map[string]chain.Amount
	// returned is the most that tokens may have given back of sweeps, or else have kept: it may explain an excess,
	// and makes no payment smaller.
	returned map[string]chain.Amount
	// unclear are the assets of which a transaction took some that waits for a person: taken lacks that.
	unclear map[string]bool
}

// leftoversAt returns what our own transactions left at an address of its payments, as of a block.
//
// ok is false when that is unknown: while a transaction of ours touches the address, after one that is
// above the block, and while a sweep is under way or was given up before its transactions ended.
func leftoversAt(
	ctx context.Context,
	tx Tx,
	n chain.Network,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) (k leftovers, ok bool, err error) {
	network := n.Slug

	if known, err := isAtRest(ctx, tx, network, address, at); err != nil || !known {
		return k, false, err
	}

	settlements, err := settlementsOf(ctx, tx, payments)
	if err != nil {
		return k, false, err
	}

	sent, err := sweptBy(ctx, tx, network, settlements, at)
	if err != nil {
		return k, false, err
	}

	native, _ := n.Native()
	k = leftovers{
		moved:    map[string]bool{},
		brought:  map[string]chain.Amount{},
		taken:    map[string]chain.Amount{},
		returned: map[string]chain.Amount{},
		unclear:  map[string]bool{},
	}

	view := settled{
		nativeID: native.ID,
		address:  address,
		at:       at,
		sent:     sent,
		borne:    map[string]bool{},
	}

	for _, of := range settlements {
		if of.Simulated || of.Network != network {
			continue
		}

		known, err := k.addSettlement(ctx, tx, of, view)
		if err != nil || !known {
			return k, false, err
		}
	}

	if err := k.addBorne(ctx, tx, native.ID, view.borne); err != nil {
		return k, false, err
	}

	err = k.addResidue(ctx, tx, n, address)

	return k, err == nil, err
}

// isAtRest reports whether no transaction of ours touches an address, or did so above a block.
func isAtRest(ctx context.Context, tx Tx, network string, address chain.Address, at chain.Ref) (bool, error) {
	live, err := tx.LiveTransactions(ctx, network, address)
	if err != nil || len(live) > 0 {
		return false, err
	}

	above, err := tx.OutgoingOf(ctx, network, address, at.Height+1, 1)

	return len(above) == 0, err
}

// settlementsOf returns the settlements of payments.
func settlementsOf(ctx context.Context, tx Tx, payments []invoice.Payment) ([]settlement.Settlement, error) {
	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}

	return tx.SettlementsOfPayments(ctx, ids)
}

// settled is what the settlements of an address are looked at with.
type settled struct {
	nativeID string
	address  chain.Address
	at       chain.Ref
	// sent are the sweeps that are in blocks up to at, by hash.
	sent map[string]bool
	// borne are the releases between their fee transactions and their sweeps.
	borne map[string]bool
}

// addSettlement adds what the releases of a settlement left and took. ok is false when that is unknown.
func (k *leftovers) addSettlement(
	ctx context.Context,
	tx Tx,
	s settlement.Settlement,
	view settled,
) (ok bool, err error) {
	isNative := s.AssetID == view.nativeID

	switch {
	case s.Status == settlement.Released && view.sent[s.SweepTx]:
		k.moved[s.PaymentID] = true
		k.addReturned(s, view.nativeID)

		return true, nil
	case isOrphaned(s) && view.sent[s.SweepTx]:
		return true, nil // its sweep stands, and what that took is owed
	case paysItself(s) && isNative:
		shown, err := leftBlocks(ctx, tx, s.Network, view.address)
		if err != nil || !shown {
			return false, err
		}

		return true, k.addUnpaid(ctx, tx, s, view.borne)
	case isOut(s) && (!isNative || showsWhatItPaid(s)):
		return k.addLeft(ctx, tx, s, view)
	}

	touched := s.Status == settlement.Released || s.Status == settlement.Releasing ||
		s.Status == settlement.Reverted || s.SweepID != "" || s.FeeTx != "" || s.TopUpTx != "" || s.SweepTx != ""

	return !touched, nil
}

// addUnpaid adds the platform fee and the network fees of a settlement of native coin that its own deposit bore,
// unless they are owed at the address. It notes the settlement's release in borne.
func (k *leftovers) addUnpaid(
	ctx context.Context,
	tx Tx,
	s settlement.Settlement,
	borne map[string]bool,
) error {
	owed, err := isOwed(ctx, tx, s)
	if err != nil || owed {
		return err
	}

	k.taken[s.AssetID] = k.taken[s.AssetID].Add(s.FeePaid).Add(s.NetworkFees)
	borne[s.SweepID] = true

	return nil
}

// addLeft adds what a settlement took of its deposit in releases that it is out of: of native coin what it paid. Of a
// token that is in the residue of the address. ok is false when something of that may be above the check's block.
func (k *leftovers) addLeft(
	ctx context.Context,
	tx Tx,
	s settlement.Settlement,
	view settled,
) (ok bool, err error) {
	switch {
	case s.SweepID != "":
		ok, err = isStill(ctx, tx, s.SweepID, view.at)
	case s.FeeTx != "" || s.SweepTx != "":
		ok, err = leftBlocks(ctx, tx, s.Network, view.address)
	default:
		ok = true
	}

	if ok && s.AssetID == view.nativeID {
		k.taken[s.AssetID] = k.taken[s.AssetID].Add(s.FeePaid).Add(s.NetworkFees)
	}

	return ok, err
}

// addResidue adds the residue of an address: what lies there, and what is owed.
func (k *leftovers) addResidue(ctx context.Context, tx Tx, n chain.Network, address chain.Address) error {
	residue, _, err := tx.ResidueForUpdate(ctx, n.Slug, address)
	if err != nil {
		return err
	}

	native, _ := n.Native()
	k.brought[native.ID] = residue.Amount
	k.taken[native.ID] = k.taken[native.ID].Add(residue.Owed)

	for _, token := range residue.Tokens {
		k.brought[token.AssetID] = k.brought[token.AssetID].Add(token.Amount)
		k.taken[token.AssetID] = k.taken[token.AssetID].Add(token.Owed)
	}

	return nil
}

// addReturned adds what a sweep of a token sent and the master wallet did not get. A token may have given it back,
// which is no payment; where it kept it, that much of a later excess is left to the audit.
func (k *leftovers) addReturned(s settlement.Settlement, nativeID string) {
	if s.AssetID == nativeID || s.NetReleased == nil {
		return
	}

	k.returned[s.AssetID] = k.returned[s.AssetID].Add(s.Gross.SubFloor(*s.NetReleased))
}

// addBorne adds what releases bear of earlier transactions, in base units of the native coin.
func (k *leftovers) addBorne(ctx context.Context, tx Tx, nativeID string, releases map[string]bool) error {
	for id := range releases {
		if id == "" {
			continue
		}

		r, err := tx.Sweep(ctx, id)
		if err != nil {
			return err
		}

		k.taken[nativeID] = k.taken[nativeID].Add(r.Owed)
	}

	return nil
}
