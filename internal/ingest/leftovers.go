package ingest

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
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

	borne := map[string]bool{} // releases between their fee transactions and their sweeps

	for _, s := range settlements {
		switch {
		case s.Simulated || s.Network != network:
		case s.Status == settlement.Released && sent[s.SweepTx]:
			k.moved[s.PaymentID] = true
			k.addReturned(s, native.ID)
		case isOrphaned(s) && sent[s.SweepTx]: // its sweep stands, and what that took is owed
		case paysItself(s) && s.AssetID == native.ID:
			shown, err := leftBlocks(ctx, tx, network, address)
			if err != nil || !shown {
				return k, false, err
			}

			if err := k.addUnpaid(ctx, tx, s, borne); err != nil {
				return k, false, err
			}
		case isOut(s) && (s.AssetID != native.ID || showsWhatItPaid(s)):
			known, err := k.addLeft(ctx, tx, s, native.ID, address, at)
			if err != nil || !known {
				return k, false, err
			}
		case s.Status == settlement.Released,
			s.Status == settlement.Releasing,
			s.Status == settlement.Reverted,
			s.SweepID != "",
			s.FeeTx != "",
			s.TopUpTx != "",
			s.SweepTx != "":
			return k, false, nil
		}
	}

	if err := k.addBorne(ctx, tx, native.ID, borne); err != nil {
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
	nativeID string,
	address chain.Address,
	at chain.Ref,
) (ok bool, err error) {
	switch {
	case s.SweepID != "":
		ok, err = hasEnded(ctx, tx, s.SweepID, at)
	case s.FeeTx != "" || s.SweepTx != "":
		ok, err = leftBlocks(ctx, tx, s.Network, address)
	default:
		ok = true
	}

	if ok && s.AssetID == nativeID {
		k.taken[nativeID] = k.taken[nativeID].Add(s.FeePaid).Add(s.NetworkFees)
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

// isOrphaned reports whether a settlement's payment left the chain once its release had begun.
func isOrphaned(s settlement.Settlement) bool {
	return (s.Status == settlement.Reverted || s.Status == settlement.Failed) &&
		s.Reason == settlement.PaymentOrphaned
}

// paysItself reports whether a settlement of native coin is between its fee transactions and its sweep: what it
// has paid left the address, the rest is there.
func paysItself(s settlement.Settlement) bool {
	return s.FeeSource == settlement.FromDeposit && s.FeeTx != "" && s.TopUpTx == "" && s.SweepTx == "" &&
		s.Status != settlement.Released && s.Status != settlement.Reverted
}

// isOut reports whether a settlement is in no release that is under way: its deposit is where it was, but for what
// releases paid of it.
func isOut(s settlement.Settlement) bool {
	return s.Status == settlement.Failed ||
		s.SweepID == "" && (s.Status == settlement.Pending || s.Status == settlement.Held)
}

// showsWhatItPaid reports whether what a settlement of native coin shows as paid is what its deposit paid. Of one whose
// payment is gone, that may be owed at the address instead.
func showsWhatItPaid(s settlement.Settlement) bool {
	return s.FeeSource == settlement.FromDeposit && s.Reason != settlement.PaymentOrphaned
}

// isOwed reports whether what a settlement paid is in the residue: its payment is gone, and its release ended.
func isOwed(ctx context.Context, tx Tx, s settlement.Settlement) (bool, error) {
	if s.SweepID == "" || s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
		return false, nil
	}

	r, err := tx.Sweep(ctx, s.SweepID)

	return r.Done, err
}

// hasEnded reports whether a release ended, with all its transactions in blocks up to one.
func hasEnded(ctx context.Context, tx Tx, sweepID string, at chain.Ref) (bool, error) {
	r, err := tx.Sweep(ctx, sweepID)
	if err != nil || !r.Done {
		return false, err
	}

	for _, step := range r.Steps {
		t, err := tx.Transaction(ctx, step.TransactionID)
		if err != nil || walletstate.Live(t) || t.Block.Height > at.Height {
			return false, err
		}
	}

	return true, nil
}

// leftBlocks reports whether blocks show what leaves an address: those up to the cursor then say what did.
func leftBlocks(ctx context.Context, tx Tx, network string, address chain.Address) (bool, error) {
	rows, err := tx.OutgoingOf(ctx, network, address, 0, 1)

	return len(rows) > 0, err
}

// sweptBy returns the sweeps of released settlements that are in blocks up to one, by hash. The rows of what
// left our addresses prove it: a sweep is the last transaction of its release. Where blocks do not show
// senders there are no such rows, and a release that is older than clocks may differ counts.
func sweptBy(
	ctx context.Context,
	tx Tx,
	network string,
	settlements []settlement.Settlement,
	at chain.Ref,
) (map[string]bool, error) {
	var hashes []string

	for _, s := range settlements {
		if (s.Status == settlement.Released || isOrphaned(s)) && s.Network == network && s.SweepTx != "" {
			hashes = append(hashes, s.SweepTx)
		}
	}

	rows, err := tx.OutgoingByHash(ctx, network, hashes)
	if err != nil {
		return nil, err
	}

	outgoing := map[string]wallet.Outgoing{}
	for _, row := range rows {
		outgoing[row.TxHash] = row
	}

	sent := map[string]bool{}

	for _, s := range settlements {
		if s.Status != settlement.Released && !isOrphaned(s) {
			continue
		}

		row, shown := outgoing[s.SweepTx]
		older := s.Status == settlement.Released && s.ReleasedAt.Before(at.Time.Add(-maxClockSkew))
		sent[s.SweepTx] = shown && row.Block.Height <= at.Height || !shown && older
	}

	return sent, nil
}

// addUnrecorded adds what transactions of our wallets that are not on record left at an address, as of a block, but
// what is a payment of its own or stored as dust. What those of the address itself took counts once they are foreign.
// One that fulfilled a payout or a settlement is on record now.
func (k *leftovers) addUnrecorded(
	ctx context.Context,
	tx Tx,
	n chain.Network,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) error {
	rows, err := tx.UnrecordedOutgoing(ctx, n.Slug, "", time.Time{})
	if err != nil {
		return err
	}

	native, _ := n.Native()
	counted := map[string]bool{}

	paid := map[invoice.TransferKey]bool{}
	for _, p := range payments {
		paid[invoicestate.PaymentKey(p)] = true
	}

	for _, row := range rows {
		if row.Block.Height > at.Height || counted[row.TxHash] {
			continue
		}

		counted[row.TxHash] = true

		foreign := walletstate.IsForeign(row)
		if !foreign && !walletstate.IsOpen(row) {
			continue
		}

		if foreign && row.Address == address {
			k.taken[native.ID] = k.taken[native.ID].Add(row.Fee)
		}

		if row.Failed {
			continue
		}

		for _, t := range row.Transfers {
			if t.To == address && !paid[invoicestate.KeyOf(t)] && !isTokenDust(n, t) {
				k.brought[t.AssetID] = k.brought[t.AssetID].Add(t.Amount)
			}

			switch {
			case t.From != address:
			case foreign:
				k.taken[t.AssetID] = k.taken[t.AssetID].Add(t.Amount)
			default:
				k.unclear[t.AssetID] = true
			}
		}
	}

	return nil
}

// isTokenDust reports whether a transfer is of a token and too small to be a payment.
func isTokenDust(n chain.Network, t chain.Transfer) bool {
	asset, enabled := n.AssetByID(t.AssetID)

	return enabled && asset.Kind == chain.Token && t.Amount.Less(asset.Dust)
}
