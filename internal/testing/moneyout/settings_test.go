package moneyout_test

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// What waits for another setting is planned in the run after the change, without waiting for its next look.
func TestSettingsThatChangeAreLookedAtAtOnce(t *testing.T) {
	minimum := account.Settings{SweepMinUSD: decimal.NewFromInt(2000)}

	manual := account.Settings{ManualRelease: true}
	for name, test := range map[string]struct {
		before, after account.Settings
		waits         settlement.Status
		planned       bool
	}{
		"a lower sweep minimum": {
			minimum,
			account.Settings{SweepMinUSD: decimal.NewFromInt(500)},
			settlement.Held,
			true,
		},
		"a minimum that is still above": {
			minimum,
			account.Settings{SweepMinUSD: decimal.NewFromInt(1500)},
			settlement.Held,
			false,
		},
		"releases become automatic": {manual, account.Settings{}, settlement.Pending, true},
		"releases stay with a person": {
			manual,
			account.Settings{ManualRelease: true, SweepMinUSD: decimal.NewFromInt(1)},
			settlement.Pending,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, test.before, sim.Config{}, func(t *testing.T, w *harness) {
				s := w.deposited("SIM", milli(500)) // 1,000 USD
				w.until("it waits", func() bool { s = w.settlements()[0]; return s.Status == test.waits })
				w.work()

				if s = w.settlements()[0]; s.SweepID != "" {
					t.Fatalf("it does not wait: %+v", s)
				}

				test.after.Name = w.account.Settings.Name
				_, err := w.engine.Accounts.UpdateSettings(t.Context(), w.owner.AccountID, test.after)
				w.must(err)
				w.work()

				if s = w.settlements()[0]; (s.SweepID != "") != test.planned {
					t.Fatalf(
						"after the change it is %s (%s), planned for %s, in release %q",
						s.Status, s.Reason, s.DueAt, s.SweepID,
					)
				}

				if test.planned {
					w.until(
						"it is released",
						func() bool { return w.settlements()[0].Status == settlement.Released },
					)
				}

				w.clean(0, 0)
			})
		})
	}
}
