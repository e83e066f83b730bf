package sweep_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

func TestNativeDepositIsReleasedToTheBaseUnit(t *testing.T) {
	w := newHarness(t, account.Settings{})
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

	if s.FeeTx == "" || s.SweepTx == "" || s.TopUpTx != "" || s.MasterWalletAddress != w.master().Address ||
		s.ReleasedAt.IsZero() {
		t.Errorf("released as %+v", s)
	}

	if w.published(event.SettlementReleased) != 1 || s.Sequence != 1 {
		t.Errorf("published %d times, sequence %d", w.published(event.SettlementReleased), s.Sequence)
	}
}

func TestTokenDepositIsReleased(t *testing.T) {
	w := newHarness(t, account.Settings{})
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
	w.check(
		"native coin in all",
		w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(residue),
		coin(1),
	)

	if s.FeeTx == "" || s.SweepTx == "" || s.TopUpTx == "" || s.RequiredNative == nil {
		t.Errorf("released as %+v", s)
	}

	b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
	if err != nil || !b.Reserved.IsZero() {
		t.Errorf("balance row is %+v, %v: nothing should be reserved any more", b, err)
	}

	w.check("balance row", b.OnChain, w.chain.Balance(w.master().Address, "SIM"))
	w.check("booked as residue", w.residue(deposit), residue)
	// What is left of the top-up is counted before the next one.
	again := w.until(w.pay("p2", deposit, "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("net released", *again.NetReleased, dollars(400))

	left := w.chain.Balance(deposit.Address, "SIM")
	if residue.Less(left) {
		t.Errorf("the residue grew from %s to %s", residue, left)
	}

	w.check("booked as residue", w.residue(deposit), left)
}

func TestSeveralDepositsOfOneAddressShareASweep(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)

	var (
		ids   []string
		gross chain.Amount
		each  []chain.Amount
	)

	for i, usd := range []int64{100, 33, 17} {
		amount := dollars(uint64(usd))
		each = append(each, amount)
		ids = append(ids, w.pay(string(rune('a'+i)), deposit, "USDX", amount, usd).ID)
		gross = gross.Add(amount)
	}

	var (
		fees, paid, owed, net chain.Amount
		borne                 []chain.Amount
		first                 settlement.Settlement
	)

	for i, id := range ids {
		s := w.until(id, settlement.Released)
		if i == 0 {
			first = s
		}

		if s.SweepTx != first.SweepTx || s.SweepID != first.SweepID {
			t.Errorf("settlement %d has a sweep of its own", i)
		}

		fees, paid, owed, net = fees.Add(
			s.NetworkFees,
		), paid.Add(
			s.FeePaid,
		), owed.Add(
			s.FeeNative,
		), net.Add(
			*s.NetReleased,
		)
		borne = append(borne, s.NetworkFees)
	}

	for i, share := range settlementstate.Split(fees, each) { // by gross, the remainder to the oldest
		w.check("network fees of settlement "+string(rune('a'+i)), borne[i], share)
	}

	w.check("released", net, gross)
	w.check("paid", paid, owed)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), owed)
	left := w.chain.Balance(deposit.Address, "SIM")
	w.check(
		"native coin in all",
		w.chain.Balance(w.master().Address, "SIM").Add(paid).Add(fees).Add(left), coin(1),
	)
}

func TestTwoNativeDepositsBalanceToTheBaseUnit(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	a := w.pay("a", deposit, "SIM", milli(333), 666)
	b := w.pay("b", deposit, "SIM", milli(778), 1556)
	a, b = w.until(a.ID, settlement.Released), w.until(b.ID, settlement.Released)
	w.check(
		"the sum",
		a.NetReleased.Add(*b.NetReleased).Add(a.FeePaid).Add(b.FeePaid).Add(a.NetworkFees).Add(b.NetworkFees),
		milli(1111),
	)
	w.check("the sum of a", a.NetReleased.Add(a.FeePaid).Add(a.NetworkFees), a.Gross)
	w.check("the sum of b", b.NetReleased.Add(b.FeePaid).Add(b.NetworkFees), b.Gross)
	w.check(
		"at the master wallet", w.chain.Balance(w.master().Address, "SIM"),
		a.NetReleased.Add(*b.NetReleased),
	)
}

func TestOneReleaseOfAnAddressAtATime(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)
	b := w.pay("p2", deposit, "SIM", coin(2), 4000)
	both := func() (done bool) {
		if live := w.live(deposit); live > 1 {
			t.Fatalf("%d releases at once", live)
		}

		return w.get(a.ID).Status == settlement.Released && w.get(b.ID).Status == settlement.Released
	}

	for range 20 {
		if _, err := w.sweeper.Step(t.Context(), network); err != nil {
			t.Fatal(err)
		}

		both()
	}

	w.run("both are released", both)
	s := w.get(b.ID)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(2))
	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}
