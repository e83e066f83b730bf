package auditor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/payout"
)

// This file compares payouts with their transactions, and refunds with their payouts.

// payouts checks that each payout has one transaction, which pays its output within its maximum network fee
// and has the matching state.
func (a *auditor) payouts(ctx context.Context, owner event.Owner) error {
	f := payout.Filter{Owner: owner, Networks: []string{a.network.Slug}, Limit: pageSize}
	for {
		page, err := a.store.Payouts(ctx, f)
		if err != nil {
			return err
		}

		for _, p := range page {
			message, t, err := a.payout(ctx, p)
			if err != nil {
				return err
			}

			if message != "" {
				a.reportMismatch(
					message,
					audit.Record{Object: "payout", ID: p.ID, TxHash: p.TxHash, Out: p.Amount},
					audit.Record{
						Object: "transaction",
						ID:     t.ID,
						TxHash: t.TxHash,
						Height: t.Block.Height,
						Out:    p.Amount,
					},
				)
			}
		}

		if len(page) < pageSize {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// payout compares one payout with its transaction and its batch. On a mismatch it re-reads all of them, up to
// 3 times, to rule out a concurrent change.
func (a *auditor) payout(
	ctx context.Context,
	p payout.Payout,
) (message string, t wallet.Transaction, err error) {
	t, known := a.ledger.payouts[p.ID]
	batch, batched := a.ledger.batches[t.BatchedBy]

	known = known && batched == (t.BatchedBy != "")
	for try := 0; ; try++ {
		if !known || try > 0 {
			if p, err = a.store.PayoutByID(ctx, p.ID); err != nil {
				return "", t, err
			}

			if t, err = a.store.Transaction(ctx, p.TransactionID); err != nil {
				return "", t, err
			}

			if t.BatchedBy != "" {
				if batch, err = a.store.Transaction(ctx, t.BatchedBy); err != nil {
					return "", t, err
				}
			}
		}

		known = true

		if p.MaxNetworkFee, err = a.maxFee(ctx, p, t); err != nil {
			return "", t, err
		}

		if message = payoutMismatch(p, t); message == "" && t.BatchedBy != "" {
			message = batchMismatch(p, t, batch)
		}

		if message == "" || try == 3 {
			return message, t, nil
		}
	}
}

// maxFee returns the most that a payout may cost, in base units of the native coin. This is its maximum, or
// the fee of the transaction that a person acknowledged as the payout: lost records signed it, within a
// maximum of their own.
func (a *auditor) maxFee(ctx context.Context, p payout.Payout, t wallet.Transaction) (chain.Amount, error) {
	if !p.MaxNetworkFee.Less(walletstate.OwnFee(t)) {
		return p.MaxNetworkFee, nil
	}

	rows, err := a.store.OutgoingByHash(ctx, a.network.Slug, []string{t.TxHash})
	if err != nil {
		return chain.Amount{}, err
	}

	for _, row := range rows {
		if row.Unrecorded && slices.Contains(strings.Split(row.Acknowledged, ","), p.ID) {
			return walletstate.OwnFee(t), nil
		}
	}

	return p.MaxNetworkFee, nil
}

// payoutMismatch returns how a payout and its transaction disagree, or "".
func payoutMismatch(p payout.Payout, t wallet.Transaction) string {
	want := []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}}
	if t.ID != p.TransactionID || t.Kind != wallet.Payout || !slices.Equal(walletstate.OwnOutputs(t), want) {
		return fmt.Sprintf("transaction %s does not pay what payout %s says", t.ID, p.ID)
	}

	if message := signedMismatch(p, t); message != "" {
		return message
	}

	if p.MaxNetworkFee.Less(walletstate.OwnFee(t)) && !showsCancel(t) { // a cancel has its own maximum
		return fmt.Sprintf(
			"payout %s cost %s, more than the %s it may",
			p.ID,
			walletstate.OwnFee(t),
			p.MaxNetworkFee,
		)
	}

	updated := p
	_, err := updated.Follow(t, p.ConfirmedAt)

	if err != nil || updated.Status != p.Status || updated.TxHash != p.TxHash {
		return fmt.Sprintf(
			"payout %s is %s (%s), its transaction %s (%s)",
			p.ID, p.Status, p.TxHash, t.State, t.TxHash,
		)
	}

	return ""
}

// showsCancel reports whether the fee of a transaction is that of the cancel at its nonce. A transaction that
// was reverted in a block which left the chain shows that fee before the cancel is final, and it is a
// conflict.
func showsCancel(t wallet.Transaction) bool {
	return t.Failure == wallet.FailConflict || t.Failure == wallet.FailExpired ||
		t.Failure == wallet.FailReverted && t.Block.IsZero()
}

// signedMismatch returns which signed bytes of a transaction do not pay exactly the payout's output within
// its maximum network fee, or "". The payout is that of the transaction or of a batch member.
func signedMismatch(p payout.Payout, t wallet.Transaction) string {
	want := []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}}
	for _, attempt := range t.Attempts {
		outputs, maxFee := walletstate.BatchShare(t, attempt, p.TransactionID)
		if !slices.Equal(outputs, want) || len(attempt.Signed.Outputs) != 1+len(t.BatchMembers) {
			return fmt.Sprintf(
				"the signed bytes %s do not pay what payout %s says",
				attempt.Signed.TxHash, p.ID,
			)
		}

		if p.MaxNetworkFee.Less(maxFee) {
			return fmt.Sprintf(
				"the signed bytes %s may cost payout %s %s, it allows %s",
				attempt.Signed.TxHash, p.ID, maxFee, p.MaxNetworkFee,
			)
		}
	}

	return ""
}

// batchMismatch returns how a payout's transaction and its batch disagree, or "".
func batchMismatch(p payout.Payout, t, batch wallet.Transaction) string {
	if len(t.Attempts) > 0 || len(t.BatchMembers) > 0 || len(batch.Attempts) == 0 ||
		!slices.Contains(batch.BatchMembers, t.ID) {
		return fmt.Sprintf(
			"payout %s is to be paid by transaction %s, which does not carry it",
			p.ID, batch.ID,
		)
	}

	updated := t
	err := walletstate.JoinBatch(&updated, batch)

	if err != nil || updated.State != t.State || updated.TxHash != t.TxHash || updated.Fee != t.Fee {
		return fmt.Sprintf(
			"transaction %s of payout %s is %s (%s), transaction %s that carries it %s (%s)",
			t.ID, p.ID, t.State, t.TxHash, batch.ID, batch.State, batch.TxHash,
		)
	}

	return signedMismatch(p, batch)
}

// refunds checks that each refund has the state of its payout.
func (a *auditor) refunds(ctx context.Context, owner event.Owner) error {
	f := payout.RefundFilter{Owner: owner, Limit: pageSize}
	for {
		page, err := a.store.Refunds(ctx, f)
		if err != nil {
			return err
		}

		for _, r := range page {
			if r.Network != a.network.Slug || r.PayoutID == "" {
				continue
			}

			if err := a.refund(ctx, r); err != nil {
				return err
			}
		}

		if len(page) < pageSize {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// refund compares one refund with its payout. On a mismatch it re-reads both, up to 3 times.
func (a *auditor) refund(ctx context.Context, r payout.Refund) error {
	for try := 0; ; try++ {
		p, err := a.store.PayoutByID(ctx, r.PayoutID)
		if err != nil {
			return err
		}

		updated := r
		_, err = updated.Follow(p, r.CreatedAt)

		sameState := err == nil && updated.Status == r.Status
		sameOutput := p.Amount == r.Amount && p.Destination == r.Destination && p.AssetID == r.AssetID

		if sameState && p.RefundID == r.ID && sameOutput {
			return nil
		}

		if try == 3 {
			a.reportMismatch(
				fmt.Sprintf("refund %s is %s, its payout %s %s", r.ID, r.Status, p.ID, p.Status),
				audit.Record{Object: "refund", ID: r.ID, Out: r.Amount},
				audit.Record{Object: "payout", ID: p.ID, TxHash: p.TxHash, Out: p.Amount},
			)

			return nil
		}

		if r, err = a.store.RefundByID(ctx, r.ID); err != nil {
			return err
		}
	}
}
