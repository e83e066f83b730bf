package e2e

import (
	"testing"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// TestTronAssetsOfTRC10AreSeenAndNotCredited sends TRC-10 tokens to an invoice's address and the master wallet: the
// audit lists them by their id, nobody is credited, and what is paid beside them is.
func TestTronAssetsOfTRC10AreSeenAndNotCredited(t *testing.T) {
	t.Parallel()

	s := startTron(t)
	s.pay(s.master.Address, "TRX", chain.Units(10_000_000_000))
	s.mine(6)

	inv := s.order("100", "TRX", s.slug)
	due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
	half := due.Share(chain.Units(1), chain.Units(2))

	s.pay(to, "TRX", half) // which makes the address active
	s.until("underpaid", func() (bool, string) {
		v := s.invoice(inv.ID)
		return v.Status == "underpaid", v.Status
	})

	want := map[chain.Address]int{to: 100_000_000, s.master.Address: 7}
	for address, units := range want {
		s.control("token", map[string]any{
			"address": testenv.TronHex(string(address)),
			"key":     "1005416",
			"value":   units,
		})
	}

	s.mine(8)

	report := s.auditOf(t, func(n audit.Network) bool { return len(n.Strays) == len(want) })
	for _, stray := range report.Strays {
		if stray.Contract != "1005416" || stray.Amount != chain.Units(uint64(want[stray.Address])) ||
			stray.Owner.AccountID != s.account.ID {
			t.Errorf("listed is %+v, sent was %v", stray, want)
		}
	}

	if v := s.invoice(inv.ID); v.Status != "underpaid" || len(s.payments(inv.ID)) != 1 {
		t.Errorf("with tokens that are no payment the invoice is %+v", v)
	}

	_, err := s.engine.Recover(t.Context(), s.slug, string(to), string(to)+"/1005416")
	if err == nil {
		t.Error("what nothing moves is recovered")
	}

	s.pay(to, "TRX", due.Sub(half))
	s.paid(inv.ID)
	s.settled(inv.ID, 2, "released")

	if left := s.auditOf(t, func(audit.Network) bool { return true }).Strays; len(left) != len(want) {
		t.Errorf("after the release listed is %+v", left)
	}
}
