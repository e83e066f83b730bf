package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// TestLateApprovalWaitsForMoney: a wallet that looks empty has its time from the approval on. The payout could not be
// signed before.
func TestLateApprovalWaitsForMoney(t *testing.T) {
	r := newRemoval(t, 0)
	none := decimal.Decimal{}

	if _, err := r.before.Accounts.UpdateSettings(
		t.Context(), r.owner.AccountID, account.Settings{ApproveAboveUSD: &none},
	); err != nil {
		t.Fatal(err)
	}

	p := r.pay("SIM")
	r.now = r.now.Add(15 * time.Minute)

	by := payout.Approver{Requester: payout.Requester{Type: "user", ID: "another"}}
	if _, err := r.before.Payouts.Approve(t.Context(), r.owner, p.ID, by); err != nil {
		t.Fatal(err)
	}

	r.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBuild {
			return fault.New(fault.State, "insufficient_balance", "this node lags")
		}

		return nil
	})

	for _, c := range []struct {
		after time.Duration
		want  payout.Status
	}{
		{0, payout.Pending},
		{9 * time.Minute, payout.Pending},
		{6 * time.Minute, payout.Failed},
	} {
		r.now = r.now.Add(c.after)
		r.stepAll(r.before)

		if got, err := r.before.Payouts.Get(t.Context(), r.owner, p.ID); err != nil || got.Status != c.want {
			t.Errorf("%s later it is %s %s (%v), want %s", c.after, got.Status, got.FailureCode, err, c.want)
		}
	}
}
