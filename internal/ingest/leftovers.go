package ingest

import (
	"context"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// maxClockSkew is how far the time of a block may be from ours.
const maxClockSkew = 15 * time.Minute

// leftovers is what our own transactions left at an address.
type leftovers struct {
	// moved are the payments, by id, whose money is not there any more.
	moved map[string]bool
	// coin is what they left of native coin beside the payments, missing what they took of it too much, in
	// base units.
	coin, missing chain.Amount
	// brought is what transactions of ours that are not on record left there, by asset and in base units. It is
	// read only where there is an excess; see unrecordedAt.
	brought map[string]chain.Amount
}

// leftoversAt returns what our own transactions left at an address of its payments, as of a block.
//
// ok is false when that is unknown: while a transaction of ours touches the address, after one that is
// above the block, and while a sweep is under way or was given up after transactions of its own.
func leftoversAt(
	ctx context.Context,
	tx Tx,
	network string,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) (k leftovers, ok bool, err error) {
	live, err := tx.LiveTransactions(ctx, network, address)
	if err != nil || len(live) > 0 {
		return k, false, err
	}

	above, err := tx.OutgoingOf(ctx, network, address, at.Height+1, 1)
	if err != nil || len(above) > 0 {
		return k, false, err
	}

	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}

	settlements, err := tx.SettlementsOfPayments(ctx, ids)
	if err != nil {
		return k, false, err
	}

	sent, err := sweptBy(ctx, tx, network, settlements, at)
	if err != nil {
		return k, false, err
	}

	k.moved = map[string]bool{}

	for _, s := range settlements {
		switch {
		case s.Simulated || s.Network != network:
		case s.Status == settlement.Released && sent[s.SweepTx]:
			k.moved[s.PaymentID] = true
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

	residue, _, err := tx.Residue(ctx, network, address)
	k.coin, k.missing = residue.Amount, residue.Owed

	return k, err == nil, err
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
		if s.Status == settlement.Released && s.Network == network && s.SweepTx != "" {
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
		if s.Status != settlement.Released {
			continue
		}

		row, shown := outgoing[s.SweepTx]
		older := s.ReleasedAt.Before(at.Time.Add(-maxClockSkew))
		sent[s.SweepTx] = shown && row.Block.Height <= at.Height || !shown && older
	}

	return sent, nil
}

// unrecordedAt returns what transactions of our wallets that are not on record left at an address, by asset, as
// of a block: what they moved is no payment. What those of the address itself took counts once they are foreign.
// One that fulfilled a payout or a settlement is on record now.
func unrecordedAt(
	ctx context.Context,
	tx Tx,
	n chain.Network,
	address chain.Address,
	at chain.Ref,
) (map[string]chain.Amount, error) {
	rows, err := tx.UnrecordedOutgoing(ctx, n.Slug, "", time.Time{})
	if err != nil {
		return nil, err
	}

	native, _ := n.Native()
	in, out := map[string]chain.Amount{}, map[string]chain.Amount{}
	counted := map[string]bool{}

	for _, row := range rows {
		if row.Block.Height > at.Height || row.Failed || counted[row.TxHash] {
			continue
		}

		counted[row.TxHash] = true

		foreign := strings.HasPrefix(row.Acknowledged, wallet.Foreign)
		if !foreign && !row.Open() {
			continue
		}

		if foreign && row.Address == address {
			out[native.ID] = out[native.ID].Add(row.Fee)
		}

		for _, t := range row.Transfers {
			if t.To == address {
				in[t.AssetID] = in[t.AssetID].Add(t.Amount)
			}

			if t.From == address && foreign {
				out[t.AssetID] = out[t.AssetID].Add(t.Amount)
			}
		}
	}

	for asset, amount := range in {
		in[asset] = amount.SubFloor(out[asset])
	}

	return in, nil
}
