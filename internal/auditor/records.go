package auditor

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file compares payments with their settlements, and settlements with their sweeps.

// records compares the records of one owner with each other.
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

// reportMismatch reports records that contradict each other.
func (a *auditor) reportMismatch(message string, records ...audit.Record) {
	a.report(audit.Difference{Kind: audit.RecordsDisagree, Message: message, Records: records})
}

// payments adds payments to the ledger. A confirmed payment that has a price must have a settlement of its
// whole amount.
func (a *auditor) payments(ctx context.Context, owner event.Owner) error {
	f := invoice.PaymentFilter{Owner: owner, Networks: []string{a.network.Slug}, Limit: pageSize}
	for {
		page, err := a.store.Payments(ctx, f)
		if err != nil {
			return err
		}

		ids := make([]string, len(page))
		for i, p := range page {
			ids[i] = p.ID
			a.ledger.payment(p, a.out.At.Height)
			a.unnamed(p)
		}

		found, err := a.store.SettlementsOfPayments(ctx, ids)
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
			case !settled && p.Status == invoice.Confirmed && p.NativeUSD.Valid:
				a.reportMismatch(
					fmt.Sprintf("payment %s is confirmed and has no settlement", p.ID),
					audit.Record{Object: "payment", ID: p.ID, TxHash: p.TxHash, In: p.Amount},
				)
			case settled && s.Gross != p.Amount && (p.Status == invoice.Confirmed || !isUndone(s)):
				a.reportMismatch(
					fmt.Sprintf(
						"settlement %s is of %s base units, its payment %s of %s",
						s.ID, s.Gross, p.ID, p.Amount,
					),
					audit.Record{Object: "settlement", ID: s.ID},
					audit.Record{Object: "payment", ID: p.ID, TxHash: p.TxHash, In: p.Amount},
				)
			}
		}

		a.out.Payments += len(page)
		if len(page) < pageSize {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// unnamedAfter is the least age of a payment without a transaction that the audit names.
const unnamedAfter = 24 * time.Hour

// unnamed reports a payment that only a balance has shown for longer than unnamedAfter.
func (a *auditor) unnamed(p invoice.Payment) {
	waits := p.Status == invoice.Detected || p.Status == invoice.Confirmed
	if p.TxHash != "" || p.Simulated || !waits ||
		a.now().Sub(p.DetectedAt) < unnamedAfter {
		return
	}

	a.out.Unnamed = append(
		a.out.Unnamed,
		audit.Record{Object: "payment", ID: p.ID, Height: p.Block.Height, In: p.Amount},
	)
}

// settlements checks each settlement's fees, and the amounts of each release against its sweep.
func (a *auditor) settlements(ctx context.Context, owner event.Owner) error {
	f := settlement.Filter{Owner: owner, Networks: []string{a.network.Slug}, Limit: pageSize}
	checked := map[string]bool{}

	var shown chain.Amount

	for {
		page, err := a.store.Settlements(ctx, f)
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

			shown = shown.Add(s.NetworkFees)

			if s.Status != settlement.Released || s.Simulated || checked[s.SweepID] {
				continue
			}

			checked[s.SweepID] = true
			if err := a.release(ctx, s); err != nil {
				return err
			}
		}

		if len(page) < pageSize {
			a.networkFees(owner, shown)
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// networkFees checks that an owner's settlements show no more network fees than its releases cost (native
// base units), while none is in flight. No settlement shows the cost of a release without settlements.
func (a *auditor) networkFees(owner event.Owner, shown chain.Amount) {
	if burnt := a.releaseFees[owner]; burnt.Less(shown) && !a.releasing[owner] {
		a.reportMismatch(fmt.Sprintf(
			"the settlements of account %s show %s base units of network fees, their transactions cost %s",
			owner.AccountID, shown, burnt,
		), audit.Record{Object: "account", ID: owner.AccountID})
	}
}

// release checks that the settlements of a release share exactly the amount that its sweep brought to the
// master wallet.
func (a *auditor) release(ctx context.Context, of settlement.Settlement) error {
	r, err := a.store.Sweep(ctx, of.SweepID)
	if err != nil {
		return err
	}

	all, err := a.store.SettlementsByID(ctx, r.SettlementIDs)
	if err != nil {
		return err
	}

	arrived, swept, sweeps, err := a.sweepsOf(ctx, r)
	if err != nil {
		return err
	}

	net, credits := creditsOf(all)
	brought, shown := arrived.Add(r.Claimed()), net.Add(unclaimedOf(r))

	if !swept && len(r.Steps) > 0 || brought != shown { // a release that claims all has no transaction
		message := fmt.Sprintf(
			"the settlements of release %s were credited %s base units, its sweep brought %s",
			r.ID, shown, brought,
		)
		records := append([]audit.Record{{Object: "release", ID: r.ID}}, sweeps...)
		a.reportMismatch(message, append(records, credits...)...)
	}

	return nil
}

// sweepsOf returns the amount that the confirmed sweeps of a release brought to the master wallet (base
// units). It also returns whether there is such a sweep, and a record of each.
func (a *auditor) sweepsOf(
	ctx context.Context,
	r settlement.Sweep,
) (arrived chain.Amount, swept bool, records []audit.Record, err error) {
	for _, step := range r.Steps {
		if step.Kind != chain.StepSweep {
			continue
		}

		t, err := a.store.Transaction(ctx, step.TransactionID)
		if err != nil {
			return chain.Amount{}, false, nil, err
		}

		if t.State != wallet.Confirmed {
			continue
		}

		swept = true

		var brought, taken chain.Amount

		for _, transfer := range t.Transfers {
			switch {
			case transfer.AssetID != r.AssetID:
			case transfer.To == r.Master.Address:
				brought = brought.Add(transfer.Amount)
			case transfer.From == r.Master.Address: // a token takes its fee from the receiver
				taken = taken.Add(transfer.Amount)
			}
		}

		brought = brought.SubFloor(taken)
		if walletstate.SpentCoins(
			t,
		) { // it may also have spent coins of lost records
			brought = chaindata.Min(brought, r.Amount.SubFloor(t.Fee))
		}

		arrived = arrived.Add(brought)
		records = append(records, audit.Record{
			Object: "transaction",
			ID:     t.ID,
			TxHash: t.TxHash,
			Height: t.Block.Height,
			In:     brought,
		})
	}

	return arrived, swept, records, nil
}

// unclaimedOf returns the amount that the sweeps of a release brought for payments that are gone, in base
// units.
func unclaimedOf(r settlement.Sweep) (sum chain.Amount) {
	for _, step := range r.Steps {
		sum = sum.Add(step.Unclaimed)
	}

	return sum
}

// creditsOf returns the sum credited to released settlements (base units), and a record of each.
func creditsOf(all []settlement.Settlement) (net chain.Amount, records []audit.Record) {
	for _, s := range all {
		if s.Status == settlement.Released && s.NetReleased != nil {
			net = net.Add(*s.NetReleased)
			records = append(records, audit.Record{Object: "settlement", ID: s.ID, Out: *s.NetReleased})
		}
	}

	return net, records
}

// isUndone reports whether a settlement is of a payment that left the chain. Until the payment is confirmed
// again, its amount is the one that was confirmed. Amounts in the pool or on another branch are not settled
// meanwhile.
func isUndone(s settlement.Settlement) bool {
	return s.Status == settlement.Reverted ||
		s.Status == settlement.Failed && s.Reason == settlement.PaymentOrphaned
}
