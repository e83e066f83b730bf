package moneyout_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// The same over a database: a deposit is released, payouts by two processes, one canceled, and
// audits that agree.
func TestMoneyOutOverSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "payments.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()

		w := newHarnessOver(t, db, account.Settings{}, sim.Config{}, nil)
		w.fund(1, 100)
		w.deposited("USDX", dollars(400))
		w.live("it is released", func() bool { return w.settlements()[0].Status == settlement.Released })
		other := w.boot()

		var ids []string

		for i := range 40 {
			e := w.engine
			if i%2 == 1 {
				e = other
			}

			p, err := e.Payouts.Create(t.Context(), w.params("USDX", dollars(10)))
			w.must(err)

			ids = append(ids, p.ID)
		}

		_, err = other.Payouts.Cancel(t.Context(), w.owner, ids[39])
		w.must(err)
		w.live("all are paid", func() bool {
			open, _, err := w.engine.Payouts.List(t.Context(), payout.Filter{
				Owner:    w.owner,
				Statuses: []payout.Status{payout.Pending, payout.Processing, payout.Included},
				Limit:    1,
			})
			w.must(err)
			a, err := other.Audit(t.Context())
			w.must(err)

			if all := a.Differences(); len(all) > 0 {
				t.Fatalf("an audit during the work found %+v", all)
			}

			return len(open) == 0
		}, w.engine, other)

		for i, id := range ids {
			p := w.get(id)
			if want := map[bool]payout.Status{true: payout.Failed, false: payout.Confirmed}[i == 39]; p.Status != want {
				t.Errorf("payout %d is %s (%s)", i, p.Status, p.FailureCode)
			}

			w.arrived(p)
		}

		w.clean(1, 100)
	})
}
