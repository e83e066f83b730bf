package moneyout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store"
)

// Where a part of an address's history is still to be read, the audit says so of what nothing explains there, and
// Health names the address after two minutes.
func TestUnreadHistoryIsNamed(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		s := w.deposited("SIM", milli(500))
		w.must(w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.PutRange(ctx, &scan.Range{
				ID:        "unread",
				Network:   network,
				Addresses: []chain.Address{s.Deposit.Address},
				Next:      1,
				To:        1 << 40,
				CreatedAt: time.Now(),
			})
		}))
		w.chain.Fund(s.Deposit.Address, "SIM", chain.Units(33))

		d := w.found(audit.MoneyUnexplained, s.Deposit.Address)
		if !strings.Contains(d.Message, "still to be read for it") {
			t.Errorf("the audit says %q", d.Message)
		}

		if named := w.unreadOf(s.Deposit.Address); named != "" {
			t.Errorf("at once Health says %q", named)
		}

		time.Sleep(3 * time.Minute)

		if named := w.unreadOf(s.Deposit.Address); !strings.Contains(named, "still to be read") {
			t.Errorf("after three minutes Health says %q", named)
		}
	})
}

// unreadOf returns what Health says is unread of an address.
func (w *harness) unreadOf(address chain.Address) string {
	w.t.Helper()

	report, err := w.engine.Health(w.t.Context())
	w.must(err)

	for _, u := range report.Networks[0].Follower.Unread {
		if u.Address == string(address) {
			return u.Error
		}
	}

	return ""
}
