package gate_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
)

// Two equal payouts whose signatures use up the same are explained by each other once: no more is paid than was
// accepted.
func TestEqualPayoutsExplainOnePaymentEach(t *testing.T) {
	e := newExpiring(t, func(w *sim.Windows) driver { return w })

	other := e.db.payout
	other.ID = "other"

	pay := func() (signed chain.Signed) {
		t.Helper()

		signed, err := e.sign(t)
		if err != nil {
			t.Fatal(err)
		}

		spent := chain.Spend{Sender: e.from.Address, By: signed.TxHash, Shared: true}
		e.db.payout.Signing.Spent = append(e.db.payout.Signing.Spent, chaindata.SpendKey(spent))
		e.gate.Stored(e.db.payout.ID, signed)

		return signed
	}

	first := pay()
	e.db.payout, other = other, e.db.payout

	if same := pay(); same.TxHash != first.TxHash {
		t.Fatal("equal payouts have other bytes")
	}

	for _, signed := range []chain.Signed{first, {}} {
		if signed.TxHash == "" {
			e.db.others = []payout.Payout{other}
			signed = pay()
		}

		if err := e.driver.Broadcast(t.Context(), signed); err != nil {
			t.Fatal(err)
		}

		e.mine(40) // it would have expired
	}

	for range 2 { // both are paid
		if _, err := e.sign(t); fault.Code(err) != paidAlready {
			t.Errorf("a third payment of two payouts is signed: %v", err)
		}

		e.db.payout, e.db.others[0] = e.db.others[0], e.db.payout
	}
}
