package settlement_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook/event"
)

func TestNativeDepositIsReleasedToTheBaseUnit(t *testing.T) {
	w := newWorld(t, account.Settings{})
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "SIM", coin(1), 2000)
	if opened.Status != settlement.Pending || opened.FeeSource != settlement.FromDeposit {
		t.Fatalf("opened as %+v", opened)
	}
	w.check("fee", opened.FeeNative, milli(5)) // 0.5 % of 1 coin
	s := w.until(opened.ID, settlement.Released)
	w.check("fee paid", s.FeePaid, milli(5))
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), milli(5))
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	if s.FeeTx == "" || s.SweepTx == "" || s.TopUpTx != "" || s.MasterWalletAddress != w.master().Address || s.ReleasedAt.IsZero() {
		t.Errorf("released as %+v", s)
	}
	if w.told(event.SettlementReleased) != 1 || s.Sequence != 1 {
		t.Errorf("told %d times, sequence %d", w.told(event.SettlementReleased), s.Sequence)
	}
}

func TestTokenDepositIsReleased(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.check("fee", opened.FeeNative, milli(1)) // 2 USD at 2000
	s := w.until(opened.ID, settlement.Released)
	w.check("fee paid", s.FeePaid, milli(1))
	w.check("net released", *s.NetReleased, dollars(400))
	w.check("tokens at the master wallet", w.chain.Balance(w.master().Address, "USDX"), dollars(400))
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), milli(1))
	residue := w.chain.Balance(deposit.Address, "SIM")
	w.check("native coin in all", w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(residue), coin(1))
	if s.FeeTx == "" || s.SweepTx == "" || s.TopUpTx == "" || s.RequiredNative == nil {
		t.Errorf("released as %+v", s)
	}
	b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
	if err != nil || !b.Reserved.IsZero() {
		t.Errorf("balance row is %+v, %v: nothing should be reserved any more", b, err)
	}
	w.check("balance row", b.OnChain, w.chain.Balance(w.master().Address, "SIM"))
	// What is left of the top-up is counted before the next one.
	again := w.until(w.pay("p2", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("net released", *again.NetReleased, dollars(400))
	if left := w.chain.Balance(deposit.Address, "SIM"); residue.Less(left) {
		t.Errorf("the residue grew from %s to %s", residue, left)
	}
}
