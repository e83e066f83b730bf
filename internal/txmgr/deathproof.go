package txmgr

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// terminalProof is the proof that no attempt of a transaction can be included any more.
type terminalProof struct {
	reason chain.TerminalReason
	// conflict is the transaction that replaced the newest attempt; zero for an expiry.
	conflict wallet.Conflict
	// inherited is set when only parents ended: nobody else spent any of the transaction's own coins.
	inherited bool
	// rows are the spends by others that prove it, one for each attempt with a rival; blocks are all final
	// blocks that the proof needs.
	rows   []wallet.Outgoing
	blocks []chain.Ref
}

// proveTerminal reports whether blocks that were read prove every attempt of a transaction dead. One of these
// proves an attempt dead, in a final block: another transaction spent its nonce or one of its coins, its
// nonce account holds another value, the network refuses durable nonces, or its validity has ended. A node's
// answer about a hash proves nothing.
func (d *walletWorker) proveTerminal(
	ctx context.Context,
	t wallet.Transaction,
	cursor scan.Cursor,
) (proof terminalProof, dead bool, err error) { // spec D5.7
	rows, err := d.rowsOfAttempts(ctx, t)
	if err != nil {
		return terminalProof{}, false, err
	}

	final, ok := finalHeight(cursor, d.network)
	if !ok {
		return terminalProof{}, false, nil
	}

	last := newestAt(cursor, final)
	proof.reason, proof.inherited = chain.ReasonExpired, true

	for _, a := range t.Attempts {
		row, spent := rival(d.usedUp(a.Signed), rows, final)

		switch {
		case spent && walletstate.AttemptIndex(&t, row.TxHash) >= 0:
			return terminalProof{}, false, nil // a block that was just read holds it
		case spent:
			proof.reason, proof.conflict.TxHash = chain.ReasonConflict, row.TxHash
			proof.inherited = proof.inherited && !slices.ContainsFunc(
				a.Signed.Inputs,
				func(in chain.Outpoint) bool { return chaindata.SpendKey(chain.Spend{Outpoint: in}) == row.Key },
			)
			proof.rows, proof.blocks = append(proof.rows, row), append(proof.blocks, row.Block)
		case expired(a.Signed, last):
			proof.inherited = false
			proof.blocks = append(proof.blocks, last)
		default:
			used, at, err := d.nonceUsed(ctx, t, a.Signed, cursor.At)
			if err == nil && used {
				proof.reason = chain.ReasonConflict
			} else if err == nil {
				used, at, err = d.nonceRefused(ctx, t, a.Signed, cursor.At)
			}

			if err != nil || !used {
				return terminalProof{}, false, err
			}

			proof.inherited = false
			proof.blocks = append(proof.blocks, at)
		}
	}

	if stands, err := d.stands(ctx, t, proof); err != nil || !stands {
		return terminalProof{}, false, err
	}

	if proof.reason == chain.ReasonConflict && proof.conflict.TxHash != "" {
		proof.conflict.Own, err = d.isOwn(ctx, t.Network, proof.conflict.TxHash)
	}

	return proof, err == nil, err
}

// stands reports whether a proof holds: two nodes have its blocks. If some attempt has no rival in a block, all
// blocks since must have been read, and no node may have an attempt either. On such networks no hash commits to
// the contents of a block, so one node may have left the attempt out.
func (d *walletWorker) stands(ctx context.Context, t wallet.Transaction, proof terminalProof) (bool, error) {
	for _, block := range proof.blocks {
		if !d.isAgreed(ctx, t, block) {
			return false, nil
		}
	}

	if len(proof.rows) == len(t.Attempts) {
		return true, nil
	}

	if passed, err := d.isPassed(ctx, t); err != nil || passed {
		return false, err
	}

	known, _, err := d.lookUp(ctx, t)

	return known == "", err
}

// maxRanges bounds the ranges that are looked at.
const maxRanges = 10_000

// isPassed reports whether an attempt may be in blocks that nobody read: no node had them when the network was resumed
// above them.
func (d *walletWorker) isPassed(ctx context.Context, t wallet.Transaction) (bool, error) {
	ranges, err := d.db.Ranges(ctx, t.Network, maxRanges)
	if err != nil {
		return false, &storeError{err}
	}

	passed := slices.IndexFunc(ranges, func(r scan.Range) bool {
		return scanstate.IsGap(r) && slices.ContainsFunc(
			t.Attempts, func(a wallet.Attempt) bool { return a.SignedHeight < r.To },
		)
	})
	if passed < 0 {
		return false, nil
	}

	why := fmt.Sprintf(
		"blocks %d to %d may hold it, and were not read",
		ranges[passed].Next,
		ranges[passed].To,
	)
	d.logWait(ctx, t, why, false)

	return true, nil
}

// isOwn reports whether we signed the transaction with a hash.
func (d *walletWorker) isOwn(ctx context.Context, network, hash string) (bool, error) {
	own, err := d.db.OwnTransactions(ctx, network, []string{hash})
	if err != nil {
		return false, &storeError{err}
	}

	return len(own) > 0, nil
}

// usedUp returns the spends of an attempt and of its unconfirmed parents, each with the hash of its
// transaction.
func (d *walletWorker) usedUp(signed chain.Signed) []chain.Spend {
	if d.hasNonces() {
		return []chain.Spend{{Sender: signed.From, Nonce: signed.Nonce, By: signed.TxHash}}
	}

	out := make([]chain.Spend, 0, len(signed.Inputs)+len(signed.UnconfirmedParents))
	for _, in := range signed.Inputs {
		out = append(out, chain.Spend{Outpoint: in, By: signed.TxHash})
	}

	return append(out, signed.UnconfirmedParents...)
}

// rowsOfAttempts returns the stored rows of the spends of all attempts, by key.
func (d *walletWorker) rowsOfAttempts(
	ctx context.Context,
	t wallet.Transaction,
) (map[string]wallet.Outgoing, error) {
	var keys []string

	for _, a := range t.Attempts {
		for _, s := range d.usedUp(a.Signed) {
			keys = append(keys, chaindata.SpendKey(s))
		}
	}

	if len(keys) == 0 {
		return nil, nil
	}

	slices.Sort(keys)

	found, err := d.db.OutgoingByKey(ctx, t.Network, slices.Compact(keys))
	if err != nil {
		return nil, &storeError{err}
	}

	rows := make(map[string]wallet.Outgoing, len(found))
	for _, row := range found {
		rows[row.Key] = row
	}

	return rows, nil
}

// rival returns the row of another transaction, at or below a final height, that made one of the spends.
func rival(spends []chain.Spend, rows map[string]wallet.Outgoing, final uint64) (wallet.Outgoing, bool) {
	for _, s := range spends {
		row, ok := rows[chaindata.SpendKey(s)]
		if ok && row.TxHash != s.By && row.Block.Height <= final {
			return row, true
		}
	}

	return wallet.Outgoing{}, false
}

// finalHeight returns the height up to which blocks are final for a proof, which cannot be undone. They must
// be final by the network's configured rule, and also by its own finality where that is known.
func finalHeight(cursor scan.Cursor, n chain.Network) (height uint64, ok bool) {
	height, ok = scanstate.FinalHeight(cursor, n, n.Confirmations)
	if !cursor.Final.IsZero() {
		height = min(height, cursor.Final.Height)
	}

	return height, ok
}

// newestAt returns the newest block on record at or below a height; zero when there is none.
func newestAt(cursor scan.Cursor, height uint64) (newest chain.Ref) {
	for _, ref := range append([]chain.Ref{cursor.At, cursor.Safe, cursor.Final}, cursor.Recent...) {
		if !ref.IsZero() && ref.Height <= height && ref.Height >= newest.Height {
			newest = ref
		}
	}

	return newest
}

// expired reports whether the validity of signed bytes ended at a final block. Every block up to it was read.
func expired(signed chain.Signed, at chain.Ref) bool {
	return signed.ValidToHeight != 0 && at.Height > signed.ValidToHeight ||
		!signed.ValidTo.IsZero() && at.Time.After(signed.ValidTo)
}
