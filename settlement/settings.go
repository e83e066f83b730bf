package settlement

import (
	"context"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/event"
)

// Settings are what this package needs to know of an account.
type Settings struct {
	FeeBPS int
	// SweepMinUSD holds deposits that are worth less.
	SweepMinUSD decimal.Decimal
	// AutoRelease false leaves settlements pending until Service.ReleaseNow.
	AutoRelease bool
	// Index is the account's index, which names its master wallets.
	Index uint32
}

// settingsPage is how many settlements are read at a time when settings changed.
const settingsPage = 500

// SettingsTx says that the settings of an account changed, in the transaction that changes them:
// what is held goes into the next planning run, and so does what was left to a person when releases
// are automatic now. What is queued already stays queued, also when releases are left to a person
// from now on.
func (s *Service) SettingsTx(ctx context.Context, tx Tx, owner event.Owner) error {
	settings, err := tx.SettlementSettings(ctx, owner.AccountID)
	if err != nil {
		return err
	}

	if err := s.planTx(ctx, tx, owner, Held); err != nil || !settings.AutoRelease {
		return err
	}

	return s.planTx(ctx, tx, owner, Pending)
}

// planTx puts every settlement of a status that is in no release and not due yet into the next planning run.
func (s *Service) planTx(ctx context.Context, tx Tx, owner event.Owner, status Status) error {
	now := s.now()

	for f := (Filter{Owner: owner, Statuses: []Status{status}, Limit: settingsPage}); ; {
		page, err := tx.Settlements(ctx, f)
		if err != nil {
			return err
		}

		for i := range page {
			waits := &page[i]

			queued := !waits.DueAt.IsZero() && !waits.DueAt.After(now)
			if waits.ReleaseID != "" || waits.Simulated || queued {
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
