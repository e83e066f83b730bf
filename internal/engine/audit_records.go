package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file holds the records of one owner against each other: payments against their settlements,
// settlements against their sweeps, payouts against their transactions, refunds against their
// payouts.

func (a *auditor) records(ctx context.Context, owner event.Owner) error {
	if err := a.payments(ctx, owner); err != nil {
		return err
	}

	if err := a.settlements(ctx, owner); err != nil {
		return err
	}

	if err := a.payouts(ctx, owner); err != nil {
		return err
	}

	return a.refunds(ctx, owner)
}

// disagree reports records that contradict each other.
func (a *auditor) reportMismatch(message string, records ...audit.Record) {
	a.report(audit.Difference{Kind: audit.RecordsDisagree, Message: message, Records: records})
}

// payments adds up what arrived. A confirmed payment that has a price has a settlement of its whole amount.
func (a *auditor) payments(ctx context.Context, owner event.Owner) error {
	f := invoice.PaymentFilter{Owner: owner, Networks: []string{a.network.Slug}, Limit: auditPage}
	for {
		page, err := a.config.Store.Payments(ctx, f)
		if err != nil {
			return err
		}

		ids := make([]string, len(page))
		for i, p := range page {
			ids[i] = p.ID
			a.ledger.payment(p, a.out.At.Height)
		}

		found, err := a.config.Store.SettlementsOfPayments(ctx, ids)
		if err != nil {
			return err
		}

		of := map[string]settlement.Settlement{}
		for _, s := range found {
			of[s.PaymentID] = s
		}

		for _, p := range page {
			s, settled := of[p.ID]
			switch {
			case !settled && p.Status == invoice.Confirmed && p.USDValue.Valid:
				a.reportMismatch(
					fmt.Sprintf("payment %s is confirmed and has no settlement", p.ID),
					audit.Record{Object: "payment", ID: p.ID, TxHash: p.TxHash, In: p.Amount},
				)
			case settled && s.Gross != p.Amount:
				a.reportMismatch(
					fmt.Sprintf(
						"settlement %s is of %s base units, its payment %s of %s",
						s.ID, s.Gross, p.ID, p.Amount,
					),
					audit.Record{
						Object: "settlement",
						ID:     s.ID,
					},
					audit.Record{Object: "payment", ID: p.ID, TxHash: p.TxHash, In: p.Amount},
				)
			}
		}

		a.out.Payments += len(page)
		if len(page) < auditPage {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// settlements checks each settlement's own books, and those of a release against what its sweep brought.
func (a *auditor) settlements(ctx context.Context, owner event.Owner) error {
	f := settlement.Filter{Owner: owner, Networks: []string{a.network.Slug}, Limit: auditPage}
	checked := map[string]bool{}

	for {
		page, err := a.config.Store.Settlements(ctx, f)
		if err != nil {
			return err
		}

		for _, s := range page {
			if s.FeePaid.Add(s.FeeCarried) != s.FeeNative.Add(s.CarriedIn) {
				a.reportMismatch(
					fmt.Sprintf(
						"settlement %s paid %s of its platform fee and carries %s, which is not what it "+
							"owes (%s) and took over (%s)",
						s.ID,
						s.FeePaid,
						s.FeeCarried,
						s.FeeNative,
						s.CarriedIn,
					),
					audit.Record{Object: "settlement", ID: s.ID},
				)
			}

			if s.Status != settlement.Released || s.Simulated || checked[s.ReleaseID] {
				continue
			}

			checked[s.ReleaseID] = true
			if err := a.release(ctx, s); err != nil {
				return err
			}
		}

		if len(page) < auditPage {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// release checks that the settlements of a release share exactly what its sweep brought to the master wallet.
func (a *auditor) release(ctx context.Context, of settlement.Settlement) error {
	r, err := a.config.Store.Release(ctx, of.ReleaseID)
	if err != nil {
		return err
	}

	all, err := a.config.Store.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return err
	}

	var arrived, net chain.Amount

	swept := false

	records := []audit.Record{{Object: "release", ID: r.ID}}
	for _, step := range r.Steps {
		if step.Kind != chain.StepSweep {
			continue
		}

		t, err := a.config.Store.Transaction(ctx, step.TransactionID)
		if err != nil {
			return err
		}

		if t.State != wallet.Confirmed {
			continue
		}

		swept = true

		for _, m := range t.Transfers {
			if m.To == r.Master.Address && m.AssetID == r.AssetID {
				arrived = arrived.Add(m.Amount)
			}
		}

		records = append(
			records,
			audit.Record{
				Object: "transaction",
				ID:     t.ID,
				TxHash: t.TxHash,
				Height: t.Block.Height,
				In:     arrived,
			},
		)
	}

	allReleased := true
	for _, s := range all {
		allReleased = allReleased && s.Status == settlement.Released
		if s.Status == settlement.Released && s.NetReleased != nil {
			net = net.Add(*s.NetReleased)
			records = append(records, audit.Record{Object: "settlement", ID: s.ID, Out: *s.NetReleased})
		}
	}

	if !swept || arrived.Less(net) || allReleased && arrived != net {
		a.reportMismatch(
			fmt.Sprintf(
				"the settlements of release %s were credited %s base units, its sweep brought %s",
				r.ID, net, arrived,
			),
			records...)
	}

	return nil
}

// payouts checks that each payout has one transaction, which pays what it says, at no more than it
// may cost, and that it stands where that one does.
func (a *auditor) payouts(ctx context.Context, owner event.Owner) error {
	f := payout.Filter{Owner: owner, Networks: []string{a.network.Slug}, Limit: auditPage}
	for {
		page, err := a.config.Store.Payouts(ctx, f)
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

		if len(page) < auditPage {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// payout compares one payout with its transaction and the one that carries it, all read again until
// none moved meanwhile.
func (a *auditor) payout(
	ctx context.Context,
	p payout.Payout,
) (message string, t wallet.Transaction, err error) {
	t, known := a.ledger.payouts[p.ID]
	batch, batched := a.ledger.batches[t.BatchedBy]

	known = known && batched == (t.BatchedBy != "")
	for try := 0; ; try++ {
		if !known || try > 0 {
			if p, err = a.config.Store.PayoutByID(ctx, p.ID); err != nil {
				return "", t, err
			}

			if t, err = a.config.Store.Transaction(ctx, p.TransactionID); err != nil {
				return "", t, err
			}

			if t.BatchedBy != "" {
				if batch, err = a.config.Store.Transaction(ctx, t.BatchedBy); err != nil {
					return "", t, err
				}
			}
		}

		known = true

		if message = payoutMismatch(p, t); message == "" && t.BatchedBy != "" {
			message = batchMismatch(p, t, batch)
		}

		if message == "" || try == 3 {
			return message, t, nil
		}
	}
}

// contradiction says how a payout and its transaction disagree, or "".
func payoutMismatch(p payout.Payout, t wallet.Transaction) string {
	want := []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}}
	if t.ID != p.TransactionID || t.Kind != wallet.Payout || !slices.Equal(t.OwnOutputs(), want) {
		return fmt.Sprintf("transaction %s does not pay what payout %s says", t.ID, p.ID)
	}

	if message := signedMismatch(p, t); message != "" {
		return message
	}

	if p.MaxNetworkFee.Less(t.OwnFee()) {
		return fmt.Sprintf("payout %s cost %s, more than the %s it may", p.ID, t.OwnFee(), p.MaxNetworkFee)
	}

	updated := p
	if _, err := updated.Follow(
		t, p.ConfirmedAt,
	); err != nil || updated.Status != p.Status ||
		updated.TxHash != p.TxHash {
		return fmt.Sprintf(
			"payout %s is %s (%s), its transaction %s (%s)",
			p.ID, p.Status, p.TxHash, t.State, t.TxHash,
		)
	}

	return ""
}

// unpaid says which signed bytes of a transaction do not pay a payout of its own or of one that it
// carries, and nothing else for it, at no more than it may cost; or "".
func signedMismatch(p payout.Payout, t wallet.Transaction) string {
	want := []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}}
	for _, attempt := range t.Attempts {
		outputs, maxFee := t.Part(attempt, p.TransactionID)
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

// notCarried says how a payout's transaction and the one that carries it disagree, or "".
func batchMismatch(p payout.Payout, t, batch wallet.Transaction) string {
	if len(t.Attempts) > 0 || len(t.BatchMembers) > 0 || len(batch.Attempts) == 0 ||
		!slices.Contains(batch.BatchMembers, t.ID) {
		return fmt.Sprintf(
			"payout %s is to be paid by transaction %s, which does not carry it",
			p.ID, batch.ID,
		)
	}

	updated := t
	if err := updated.JoinBatch(
		batch,
	); err != nil || updated.State != t.State || updated.TxHash != t.TxHash ||
		updated.Fee != t.Fee {
		return fmt.Sprintf(
			"transaction %s of payout %s is %s (%s), transaction %s that carries it %s (%s)",
			t.ID, p.ID, t.State, t.TxHash, batch.ID, batch.State, batch.TxHash,
		)
	}

	return signedMismatch(p, batch)
}

// refunds checks that each refund stands where its payout does.
func (a *auditor) refunds(ctx context.Context, owner event.Owner) error {
	f := payout.RefundFilter{Owner: owner, Limit: auditPage}
	for {
		page, err := a.config.Store.Refunds(ctx, f)
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

		if len(page) < auditPage {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

func (a *auditor) refund(ctx context.Context, r payout.Refund) error {
	for try := 0; ; try++ {
		p, err := a.config.Store.PayoutByID(ctx, r.PayoutID)
		if err != nil {
			return err
		}

		updated := r

		_, err = updated.Follow(p, r.CreatedAt)
		if err == nil && updated.Status == r.Status && p.RefundID == r.ID && p.Amount == r.Amount &&
			p.Destination == r.Destination &&
			p.AssetID == r.AssetID {
			return nil
		}

		if try == 3 {
			a.reportMismatch(
				fmt.Sprintf("refund %s is %s, its payout %s %s", r.ID, r.Status, p.ID, p.Status),
				audit.Record{
					Object: "refund",
					ID:     r.ID,
					Out:    r.Amount,
				},
				audit.Record{Object: "payout", ID: p.ID, TxHash: p.TxHash, Out: p.Amount},
			)

			return nil
		}

		if r, err = a.config.Store.RefundByID(ctx, r.ID); err != nil {
			return err
		}
	}
}
