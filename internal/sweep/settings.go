package sweep

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
)

// settingsPage is how many settlements are read at a time when settings changed.
const settingsPage = 500

// SettingsTx says that the settings of an account changed, in the transaction that changes them:
// what is held goes into the next planning run, and so does what was left to a person when releases
// are automatic now. What is queued already stays queued, also when releases are left to a person
// from now on.
func (s *Sweeper) SettingsTx(ctx context.Context, tx settlement.Tx, owner event.Owner) error {
	settings, err := tx.SettlementSettings(ctx, owner.AccountID)
	if err != nil {
		return err
	}

	if err := s.queueTx(ctx, tx, owner, settlement.Held); err != nil || !settings.AutoRelease {
		return err
	}

	return s.queueTx(ctx, tx, owner, settlement.Pending)
}

// queueTx makes every settlement of a status that is in no release due in the next planning run.
func (s *Sweeper) queueTx(
	ctx context.Context,
	tx settlement.Tx,
	owner event.Owner,
	status settlement.Status,
) error {
	all := func(settlement.Settlement) bool { return true }

	return s.queueWhereTx(
		ctx, tx, settlement.Filter{Owner: owner, Statuses: []settlement.Status{status}}, all,
	)
}

// queueWhereTx is queueTx for the settlements of a filter for which wanted returns true.
func (s *Sweeper) queueWhereTx(
	ctx context.Context,
	tx settlement.Tx,
	f settlement.Filter,
	wanted func(settlement.Settlement) bool,
) error {
	now := s.now()

	for f.Limit = settingsPage; ; {
		page, err := tx.Settlements(ctx, f)
		if err != nil {
			return err
		}

		for i := range page {
			waits := &page[i]

			queued := !waits.DueAt.IsZero() && !waits.DueAt.After(now)
			if waits.SweepID != "" || waits.Simulated || queued || !wanted(*waits) {
				continue
			}

			waits.DueAt = now
			if err := tx.PutSettlements(ctx, waits); err != nil {
				return err
			}
		}

		if len(page) < settingsPage {
			return nil
		}

		f.After = page[len(page)-1].ID
	}
}

// FundedTx says that a master wallet has more native coin to spend, in base units: what waits for no more than
// that goes into the next planning run.
func (s *Sweeper) FundedTx(
	ctx context.Context,
	tx settlement.Tx,
	owner event.Owner,
	network string,
	available chain.Amount,
) error {
	filter := settlement.Filter{
		Owner:    owner,
		Statuses: []settlement.Status{settlement.Held},
		Networks: []string{network},
	}

	return s.queueWhereTx(ctx, tx, filter, func(waits settlement.Settlement) bool {
		return waits.Reason == settlement.InsufficientMasterBalance && waits.RequiredNative != nil &&
			!available.Less(*waits.RequiredNative)
	})
}
