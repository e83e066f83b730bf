package ingest

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

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

// isOwed reports whether what a settlement paid is in the residue: its payment is gone, and its release ended or it is
// in none.
func isOwed(ctx context.Context, tx Tx, s settlement.Settlement) (bool, error) {
	if s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
		return false, nil
	}

	if s.SweepID == "" {
		return true, nil
	}

	r, err := tx.Sweep(ctx, s.SweepID)

	return r.Done, err
}

// isStill reports whether all transactions of a release are in blocks up to one, or failed. It may go on: its next one
// is above that block.
func isStill(ctx context.Context, tx Tx, sweepID string, at chain.Ref) (bool, error) {
	r, err := tx.Sweep(ctx, sweepID)
	if err != nil {
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
