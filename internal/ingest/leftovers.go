package ingest

import (
	"context"
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

	residue, err := tx.Residue(ctx, network, address)
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
