package moneyout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// heldBy checks that Health names a wallet which a transaction in the pool keeps from signing.
func (w *harness) heldBy(address, txHash string) {
	w.t.Helper()

	h, err := w.engine.Health(w.t.Context())
	w.must(err)

	for _, held := range h.Wallets {
		if held.Address == address && strings.Contains(held.Reason, txHash) && !held.Frozen {
			return
		}
	}

	w.t.Errorf("Health does not name %s, which waits for %s: %+v", address, txHash, h.Wallets)
}

// A transaction of lost records waits in the pool for ever: what it may cost is too little. Its deposit address signs
// again once a person has said that it is foreign, and takes its place.
func TestLostTransactionThatStaysInThePool(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		s := w.deposited("SIM", milli(500))
		now := func() settlement.Settlement { return w.settlements()[0] }

		dump()
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))

		w.steps("its fee is on its way", func() bool { return now().FeeTx != "" })

		lost := now().FeeTx

		w.chain.SetFee(4*sim.DefaultBaseFee, sim.DefaultPriority)

		restore()
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))
		w.idle(20 * time.Minute)

		if got := now(); got.FeeTx != "" || got.Status != settlement.Pending {
			t.Fatalf("it is %s, and signed %s", got.Status, got.FeeTx)
		}

		w.heldBy(string(s.Deposit.Address), lost)
		wantFault(
			t,
			w.engine.Acknowledge(t.Context(), network, lost, s.ID),
			fault.State,
			"transaction_not_final",
		)
		w.must(w.engine.Acknowledge(t.Context(), network, lost, payments.Foreign))
		w.must(w.engine.Acknowledge(t.Context(), network, lost, payments.Foreign))
		w.steps("it is released", func() bool { return now().Status == settlement.Released })
		w.thawed()

		if got := w.audited(); len(got) != 0 {
			t.Errorf("the audit finds %v", got)
		}
	})
}

// What a master wallet has in the pool may be a payout that waits to be paid at another nonce: it is not foreign before
// a block holds it.
func TestLostPayoutThatStaysInThePool(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)

		p := w.pay("SIM", milli(2))

		dump()

		w.steps("it is on its way", func() bool { return w.get(p.ID).TxHash != "" })

		lost := w.get(p.ID).TxHash
		w.chain.SetFee(4*sim.DefaultBaseFee, sim.DefaultPriority)

		restore()
		w.idle(20 * time.Minute)

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Fatalf("it is %s", got.Status)
		}

		wantFault(
			t,
			w.engine.Acknowledge(t.Context(), network, lost, payments.Foreign),
			fault.State,
			"transaction_not_final",
		)
		wantFault(
			t,
			w.engine.Acknowledge(t.Context(), network, "unknown", payments.Foreign),
			fault.NotFound,
			"transaction_unknown",
		)
	})
}
