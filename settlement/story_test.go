package settlement_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/fault"
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
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	var ids []string
	var gross chain.Amount
	for i, usd := range []int64{100, 33, 17} {
		amount := dollars(uint64(usd))
		ids = append(ids, w.pay(string(rune('a'+i)), deposit, "USDX", amount, usd).ID)
		gross = gross.Add(amount)
	}
	var fees, paid, owed, net chain.Amount
	var first settlement.Settlement
	for i, id := range ids {
		s := w.until(id, settlement.Released)
		if i == 0 {
			first = s
		}
		if s.SweepTx != first.SweepTx || s.ReleaseID != first.ReleaseID {
			t.Errorf("settlement %d has a sweep of its own", i)
		}
		fees, paid, owed, net = fees.Add(s.NetworkFees), paid.Add(s.FeePaid), owed.Add(s.FeeNative), net.Add(*s.NetReleased)
	}
	w.check("released", net, gross)
	w.check("paid", paid, owed)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), owed)
	left := w.chain.Balance(deposit.Address, "SIM")
	w.check("native coin in all", w.chain.Balance(w.master().Address, "SIM").Add(paid).Add(fees).Add(left), coin(1))
}

func TestTwoNativeDepositsBalanceToTheBaseUnit(t *testing.T) {
	w := newWorld(t, account.Settings{})
	deposit := w.deposit(1)
	a := w.pay("a", deposit, "SIM", milli(333), 666)
	b := w.pay("b", deposit, "SIM", milli(778), 1556)
	a, b = w.until(a.ID, settlement.Released), w.until(b.ID, settlement.Released)
	w.check("the sum", a.NetReleased.Add(*b.NetReleased).Add(a.FeePaid).Add(b.FeePaid).Add(a.NetworkFees).Add(b.NetworkFees), milli(1111))
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), a.NetReleased.Add(*b.NetReleased))
}

func TestHeldUntilTheMasterWalletIsFilled(t *testing.T) {
	w := newWorld(t, account.Settings{})
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	held := w.until(opened.ID, settlement.Held)
	if held.Reason != settlement.InsufficientMasterBalance || held.RequiredNative == nil || held.RequiredNative.Cmp(held.FeeNative) <= 0 || held.HeldSince.IsZero() {
		t.Fatalf("held as %+v", held)
	}
	for range 10 {
		w.pass(2 * time.Minute)
		w.work()
	}
	if n := w.told(event.SettlementHeld); n != 1 {
		t.Errorf("told %d times that it is held for one reason", n)
	}
	// What it asks for is exactly enough.
	w.chain.Fund(w.master().Address, "SIM", *held.RequiredNative)
	s := w.until(opened.ID, settlement.Released)
	if s.Reason != "" || !s.HeldSince.IsZero() {
		t.Errorf("released as %+v", s)
	}
}

// Pitfall 19.
func TestUneconomicIsHeldUntilFeesFall(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(10))
	w.chain.SetFee(100_000*sim.DefaultBaseFee, sim.DefaultPriority)
	token := w.pay("p1", w.deposit(1), "USDX", dollars(9), 9)
	native := w.pay("p2", w.deposit(2), "SIM", milli(2), 4)
	for _, s := range []settlement.Settlement{token, native} {
		if held := w.until(s.ID, settlement.Held); held.Reason != settlement.Uneconomic {
			t.Errorf("held for %s", held.Reason)
		}
	}
	w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
	w.until(token.ID, settlement.Released)
	w.until(native.ID, settlement.Released)
}

func TestBelowSweepMinWaitsForCompany(t *testing.T) {
	w := newWorld(t, account.Settings{SweepMinUSD: decimal.NewFromInt(50)})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	small := w.pay("p1", deposit, "USDX", dollars(20), 20)
	if held := w.until(small.ID, settlement.Held); held.Reason != settlement.BelowSweepMin {
		t.Fatalf("held for %s", held.Reason)
	}
	large := w.pay("p2", deposit, "USDX", dollars(60), 60)
	w.now = w.now.Add(6 * time.Minute)
	a, b := w.until(small.ID, settlement.Released), w.until(large.ID, settlement.Released)
	if a.SweepTx != b.SweepTx {
		t.Error("they did not go together")
	}
}

func TestFeeTooSmallIsCarriedToTheNextRelease(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	// 0.5 % of 1 USD is 0.005 USD = 2.5e-6 coins; a transfer costs 2.3e-5.
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)
	if !first.FeePaid.IsZero() || first.FeeCarried != first.FeeNative || first.FeeTx != "" {
		t.Fatalf("the fee of a small deposit: %+v", first)
	}
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), chain.Amount{})
	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", second.CarriedIn, first.FeeNative)
	w.check("paid", second.FeePaid, first.FeeNative.Add(second.FeeNative))
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), second.FeePaid)
	third := w.until(w.pay("p3", w.deposit(3), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in a second time", third.CarriedIn, chain.Amount{})
}

func TestWithoutAFeeAddressTheFeeIsCarried(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.fee = ""
	w.boot()
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	if !s.FeePaid.IsZero() || s.FeeCarried != milli(5) || s.FeeTx != "" {
		t.Errorf("released as %+v", s)
	}
}

func TestWithoutAFeeThereIsNoFeeTransaction(t *testing.T) {
	zero := 0
	w := newWorld(t, account.Settings{FeeBPS: &zero})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	if s.FeeTx != "" || !s.FeePaid.IsZero() || !s.FeeCarried.IsZero() {
		t.Errorf("released as %+v", s)
	}
}

func TestManualReleaseWaitsForThePerson(t *testing.T) {
	w := newWorld(t, account.Settings{ManualRelease: true})
	a := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	b := w.pay("p2", w.deposit(1), "SIM", coin(1), 2000)
	for range 10 {
		w.work()
		w.pass(time.Minute)
	}
	if s := w.get(a.ID); s.Status != settlement.Pending {
		t.Fatalf("it is %s", s.Status)
	}
	if err := w.service.ReleaseNow(t.Context(), owner, a.ID); err != nil {
		t.Fatal(err)
	}
	w.until(a.ID, settlement.Released)
	if s := w.get(b.ID); s.Status != settlement.Pending {
		t.Errorf("the other one is %s", s.Status)
	}
	if err := w.service.ReleaseNow(t.Context(), owner, a.ID); !errors.Is(err, fault.State) {
		t.Errorf("releasing it again: %v", err)
	}
	if err := w.service.ReleaseNow(t.Context(), event.Owner{AccountID: "other"}, b.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("releasing somebody else's: %v", err)
	}
}

func TestSimulatedIsReleasedAtOnce(t *testing.T) {
	w := newWorld(t, account.Settings{})
	opening := settlement.Opening{
		Owner: owner, PaymentID: "p1", Network: network, Asset: w.asset("SIM"), Gross: coin(1), USDValue: decimal.NewFromInt(2000),
		NativePrice: price, ConfirmedAt: w.now, Simulated: true,
	}
	s := w.openAs(opening)
	if s.Status != settlement.Released || !strings.HasPrefix(s.SweepTx, "sim_") || !strings.HasPrefix(s.FeeTx, "sim_") || !s.NetworkFees.IsZero() {
		t.Fatalf("released as %+v", s)
	}
	w.check("the sum", s.NetReleased.Add(s.FeePaid), coin(1))
	w.lose("p1")
	if s = w.get(s.ID); s.Status != settlement.Reverted {
		t.Errorf("without its payment it is %s", s.Status)
	}
	if again := w.openAs(opening); again.ID != s.ID || again.Status != settlement.Released {
		t.Errorf("with its payment it is %+v", again)
	}
	w.get(s.ID)
	w.work()
	if n := w.chain.Calls(sim.MethodBuild); n != 0 {
		t.Errorf("%d transactions were built", n)
	}
}

func TestOpeningTwiceIsOneSettlement(t *testing.T) {
	w := newWorld(t, account.Settings{})
	a := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	if b := w.open("p1", w.deposit(1), "SIM", coin(1), 2000); b.ID != a.ID {
		t.Error("a payment has two settlements")
	}
	w.until(a.ID, settlement.Released)
	if c := w.open("p1", w.deposit(1), "SIM", coin(1), 2000); c.ID != a.ID || c.Status != settlement.Released {
		t.Errorf("opened again it is %s", c.Status)
	}
}

func TestPaymentLostBeforeTheRelease(t *testing.T) {
	w := newWorld(t, account.Settings{ManualRelease: true})
	s := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	w.lose("p1")
	w.lose("p1")
	if s = w.get(s.ID); s.Status != settlement.Failed || s.Reason != settlement.PaymentOrphaned {
		t.Fatalf("without its payment it is %s %s", s.Status, s.Reason)
	}
	if _, err := w.service.Retry(t.Context(), owner, s.ID); !errors.Is(err, fault.State) {
		t.Errorf("retrying without a payment: %v", err)
	}
	if again := w.open("p1", w.deposit(1), "SIM", coin(1), 2000); again.ID != s.ID || again.Status != settlement.Pending {
		t.Errorf("with its payment it is %s", again.Status)
	}
	w.until(s.ID, settlement.Released)
	if n := w.told(event.SettlementFailed); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// The payment goes away while the release waits for its signature; the other deposit of the address is released all the same.
func TestPaymentLostWhileItsReleaseIsQueued(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	w.chain.Pay(deposit.Address, "USDX", dollars(400))
	w.chain.Mine(3)
	a := w.open("p1", deposit, "USDX", dollars(400), 400)
	b := w.open("p2", deposit, "USDX", dollars(300), 300) // its money will not be there
	if _, err := w.service.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	// The node does not show 700 yet, so nothing was planned; the second payment turns out to be gone.
	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(400))
	if lost := w.get(b.ID); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned {
		t.Errorf("the lost one is %s %s", lost.Status, lost.Reason)
	}
}

func TestPaymentLostFromAQueuedRelease(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)
	b := w.pay("p2", deposit, "USDX", dollars(300), 300)
	if _, err := w.service.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	if s := w.get(a.ID); s.ReleaseID == "" || s.Status != settlement.Pending {
		t.Fatalf("planned as %+v", s)
	}
	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("released", *s.NetReleased, dollars(400))
	w.check("paid", s.FeePaid, s.FeeNative)
	if lost := w.get(b.ID); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned || lost.ReleaseID != "" {
		t.Errorf("the lost one is %+v", lost)
	}
	w.open("p2", deposit, "USDX", dollars(300), 300)
	w.until(b.ID, settlement.Released)
	w.check("in all", w.chain.Balance(w.master().Address, "USDX"), dollars(700))
}

// What is queued pays the fee of both: it is canceled, and the release planned again.
func TestPaymentLostFromAQueuedNativeRelease(t *testing.T) {
	w := newWorld(t, account.Settings{})
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "SIM", coin(1), 2000)
	b := w.pay("p2", deposit, "SIM", coin(2), 4000)
	if _, err := w.service.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	w.lose("p2")
	s := w.until(a.ID, settlement.Released)
	w.check("paid", s.FeePaid, s.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("left for the other", w.chain.Balance(deposit.Address, "SIM"), coin(2))
	w.open("p2", deposit, "SIM", coin(2), 4000)
	s = w.until(b.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(2))
}

// The payment goes away between the plan and its transaction.
func TestPaymentLostWhileTheReleaseIsPlannedOn(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.pay("p2", deposit, "USDX", dollars(300), 300)
	w.run("the fee is on its way", func() bool { return w.get(a.ID).FeeTx != "" })
	lost := false
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodPlanRelease && !lost {
			lost = true
			w.lose("p2")
		}
		return nil
	})
	s := w.until(a.ID, settlement.Released)
	if !lost {
		t.Fatal("it was never planned on")
	}
	w.check("released", *s.NetReleased, dollars(400))
	w.check("left for the other", w.chain.Balance(deposit.Address, "USDX"), dollars(300))
}

// The fee of a native deposit is signed when its payment leaves the chain, and is included when the payment is
// back: what it took out of the deposit counts, and nothing is swept before the payment stands.
func TestPaymentLostAfterTheFeeIsSigned(t *testing.T) {
	w := newWorld(t, account.Settings{})
	deposit := w.deposit(1)
	s := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.run("the fee is signed", func() bool { return w.get(s.ID).FeeTx != "" })
	w.lose("p1")
	w.run("the fee is paid all the same", func() bool { return !w.get(s.ID).FeePaid.IsZero() })
	for range 20 {
		w.pass(time.Minute)
		w.work()
	}
	if lost := w.get(s.ID); lost.Status != settlement.Failed || lost.Reason != settlement.PaymentOrphaned || lost.SweepTx != "" {
		t.Fatalf("without its payment it is %+v", lost)
	}
	if again := w.open("p1", deposit, "SIM", coin(1), 2000); again.ID != s.ID || again.Status != settlement.Releasing {
		t.Fatalf("with its payment it is %+v", again)
	}
	s = w.until(s.ID, settlement.Released)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(1))
	w.check("the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
	w.check("left at the address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
	if n := w.told(event.SettlementReleased); n != 1 {
		t.Errorf("%d settlement.released", n)
	}
}

func TestOneReleaseOfAnAddressAtATime(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	a := w.pay("p1", deposit, "USDX", dollars(400), 400)
	b := w.pay("p2", deposit, "SIM", coin(2), 4000)
	both := func() (done bool) {
		live, err := w.store.LiveReleases(t.Context(), network, 10)
		if err != nil || len(live) > 1 {
			t.Fatalf("%d releases at once, %v", len(live), err)
		}
		return w.get(a.ID).Status == settlement.Released && w.get(b.ID).Status == settlement.Released
	}
	for range 20 {
		if _, err := w.service.Step(t.Context(), network); err != nil {
			t.Fatal(err)
		}
		both()
	}
	w.run("both are released", both)
	s := w.get(b.ID)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), coin(2))
	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}

// The sweep leaves the chain after it was final, and comes back by the same bytes.
func TestReorganisationAfterTheRelease(t *testing.T) {
	w := newWorld(t, account.Settings{})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	before := s
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	s = w.until(s.ID, settlement.Reverted)
	if s.NetReleased != nil || !s.ReleasedAt.IsZero() || s.Resource().Reason != "" {
		t.Errorf("reverted as %+v", s)
	}
	s = w.until(s.ID, settlement.Released)
	if s.SweepTx != before.SweepTx || *s.NetReleased != *before.NetReleased || s.NetworkFees != before.NetworkFees || s.FeePaid != before.FeePaid {
		t.Errorf("released again as %+v, before as %+v", s, before)
	}
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	if w.told(event.SettlementReverted) != 1 || w.told(event.SettlementReleased) != 2 || s.Sequence != 3 {
		t.Errorf("told %d reverted, %d released, sequence %d", w.told(event.SettlementReverted), w.told(event.SettlementReleased), s.Sequence)
	}
}

// Payment and sweep leave the chain; the payment comes back, and so does the sweep of the same bytes.
func TestPaymentLostAfterTheReleaseAndBack(t *testing.T) {
	w := newWorld(t, account.Settings{})
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Released)
	w.lose("p1")
	if s = w.get(s.ID); s.Status != settlement.Reverted {
		t.Fatalf("without its payment it is %s", s.Status)
	}
	if s = w.open("p1", w.deposit(1), "SIM", coin(1), 2000); s.Status != settlement.Released {
		t.Fatalf("its sweep stands, its payment is back, and it is %s", s.Status)
	}
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	w.lose("p1")
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
	if s = w.open("p1", w.deposit(1), "SIM", coin(1), 2000); s.Status != settlement.Releasing {
		t.Fatalf("its sweep is on its way again, and it is %s", s.Status)
	}
	s = w.until(s.ID, settlement.Released)
	w.check("at the master wallet", w.chain.Balance(w.master().Address, "SIM"), *s.NetReleased)
}

// A foreign transaction takes the nonce of the sweep after the fee was paid: an operator retries, and the fee is not paid again.
func TestRetryDoesNotPayTheFeeAgain(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Replace(w.get(opened.ID).SweepTx)
	s := w.until(opened.ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed || s.FeePaid != s.FeeNative || s.NetReleased != nil {
		t.Fatalf("failed as %+v", s)
	}
	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}
	s = w.until(s.ID, settlement.Released)
	w.check("paid", s.FeePaid, s.FeeNative)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("net", *s.NetReleased, dollars(400))
	if _, err := w.service.Retry(t.Context(), owner, s.ID); !errors.Is(err, fault.State) {
		t.Errorf("retrying a released one: %v", err)
	}
}

func TestRetryOfANativeDepositReleasesWhatIsLeft(t *testing.T) {
	w := newWorld(t, account.Settings{})
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "SIM", coin(1), 2000)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Replace(w.get(opened.ID).SweepTx) // costs the address a network fee that no record explains
	s := w.until(opened.ID, settlement.Failed)
	missing := coin(1).Sub(s.FeePaid).Sub(s.NetworkFees).Sub(w.chain.Balance(deposit.Address, "SIM"))
	w.chain.Fund(deposit.Address, "SIM", missing)
	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}
	s = w.until(s.ID, settlement.Released)
	w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
	w.check("the sum", s.NetReleased.Add(s.FeePaid).Add(s.NetworkFees), s.Gross)
	w.check("left at the deposit address", w.chain.Balance(deposit.Address, "SIM"), chain.Amount{})
}

func TestMissingFundsNeedAnOperator(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	s := w.open("p1", w.deposit(1), "USDX", dollars(400), 400) // nobody paid
	w.work()
	if s = w.get(s.ID); s.Status != settlement.Pending {
		t.Fatalf("a node that may lag made it %s %s", s.Status, s.Reason)
	}
	w.now = w.now.Add(20 * time.Minute)
	if s = w.until(s.ID, settlement.Failed); s.Reason != settlement.FundsMissing {
		t.Errorf("failed for %s", s.Reason)
	}
}

// Pitfall 20. What arrived counts, not what the transaction says.
func TestTokenReleaseThatRevertsIsNotReleased(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	w.run("the sweep waits", func() bool { return w.get(opened.ID).SweepTx != "" })
	w.chain.Freeze(w.master().Address, "USDX", true)
	s := w.until(opened.ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed || s.NetReleased != nil {
		t.Fatalf("failed as %+v", s)
	}
	left := w.chain.Balance(deposit.Address, "SIM")
	w.check("native coin in all", w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left), coin(1))
	w.chain.Freeze(w.master().Address, "USDX", false)
	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}
	s = w.until(s.ID, settlement.Released)
	left = w.chain.Balance(deposit.Address, "SIM")
	w.check("native coin in all", w.chain.Balance(w.master().Address, "SIM").Add(s.FeePaid).Add(s.NetworkFees).Add(left), coin(1))
	w.check("paid", w.chain.Balance(w.fee, "SIM"), s.FeeNative)
}

func TestRefusalOfTheSignerNeedsAnOperator(t *testing.T) {
	w := newWorld(t, account.Settings{})
	refuse := true
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
		if refuse {
			return chain.Refuse("policy")
		}
		return nil
	})
	w.boot()
	s := w.until(w.pay("p1", w.deposit(1), "SIM", coin(1), 2000).ID, settlement.Failed)
	if s.Reason != settlement.TransactionFailed {
		t.Errorf("failed for %s", s.Reason)
	}
	refuse = false
	if _, err := w.service.Retry(t.Context(), owner, s.ID); err != nil {
		t.Fatal(err)
	}
	w.until(s.ID, settlement.Released)
}

// A release that nobody signs in time is planned again by itself.
func TestUnsignedReleaseIsPlannedAgain(t *testing.T) {
	w := newWorld(t, account.Settings{})
	away := true
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error {
		if away {
			return errors.New("the HSM is away")
		}
		return nil
	})
	w.boot()
	opened := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	w.work()
	first := w.get(opened.ID).ReleaseID
	for range 20 {
		w.pass(5 * time.Minute)
		w.work()
	}
	if s := w.get(opened.ID); s.Status != settlement.Pending || s.ReleaseID == first {
		t.Fatalf("it is %s in release %s, the first was %s", s.Status, s.ReleaseID, first)
	}
	away = false
	w.until(opened.ID, settlement.Released)
}

func TestReleaseThatIsGivenUpGivesItsReservationsBack(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	w.signer = sim.NewSigner(7, func(chain.SignRequest) error { return errors.New("the HSM is away") })
	w.boot()
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	seen := map[string]bool{}
	for range 40 {
		w.work()
		s := w.get(opened.ID)
		if s.ReleaseID == "" {
			continue
		}
		seen[s.ReleaseID] = true
		b, _, err := w.store.Balance(t.Context(), network, w.master().Address, w.asset("SIM").ID)
		if err != nil || b.Reserved != *s.RequiredNative {
			t.Fatalf("release %d: %s are reserved, %s are needed (%v)", len(seen), b.Reserved, s.RequiredNative, err)
		}
		w.pass(5 * time.Minute)
	}
	if len(seen) < 3 {
		t.Fatalf("it was planned %d times", len(seen))
	}
}

// All of a release is in other blocks after a reorganisation below finality: it is booked once.
func TestReorganisationDoesNotBookTwice(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	deposit := w.deposit(1)
	opened := w.pay("p1", deposit, "USDX", dollars(400), 400)
	before := w.until(opened.ID, settlement.Released)
	tip := w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: tip.Height, Length: tip.Height + 5, Fate: sim.Reinclude})
	w.now = w.now.Add(2 * time.Minute)
	w.work()
	s := w.get(opened.ID)
	if s.Status != settlement.Released || s.FeePaid != before.FeePaid || s.NetworkFees != before.NetworkFees || w.told(event.SettlementReverted) != 1 {
		t.Errorf("afterwards %+v", s)
	}
	w.check("booked as residue", w.residue(deposit), w.chain.Balance(deposit.Address, "SIM"))
}

// A carried fee is carried once, however often the sweep comes and goes.
func TestReorganisationDoesNotCarryTwice(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	first := w.until(w.pay("p1", w.deposit(1), "USDX", dollars(1), 1).ID, settlement.Released)
	w.chain.Fork(sim.Fork{Depth: 3, Fate: sim.Forget})
	w.until(first.ID, settlement.Reverted)
	w.until(first.ID, settlement.Released)
	second := w.until(w.pay("p2", w.deposit(2), "USDX", dollars(400), 400).ID, settlement.Released)
	w.check("carried in", second.CarriedIn, first.FeeNative)
}

func TestListPages(t *testing.T) {
	w := newWorld(t, account.Settings{ManualRelease: true})
	for _, p := range []string{"a", "b", "c", "d"} {
		w.open(p, w.deposit(1), "SIM", coin(1), 2000)
	}
	var seen []string
	f := settlement.Filter{Owner: owner, Limit: 3}
	for {
		page, more, err := w.service.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			seen = append(seen, s.PaymentID)
		}
		if !more {
			break
		}
		f.After = page[len(page)-1].ID
	}
	if got := strings.Join(seen, ""); got != "dcba" {
		t.Errorf("listed %s", got)
	}
	of, err := w.service.OfPayments(t.Context(), []string{"a", "c", "x"})
	if err != nil || len(of) != 2 {
		t.Errorf("of payments: %d, %v", len(of), err)
	}
}

func TestNodeWithoutAnswerIsNotAskedInALoop(t *testing.T) {
	w := newWorld(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	w.chain.FailNext(sim.MethodPlanRelease, sim.Unavailable(), 5)
	w.work()
	if n := w.chain.Calls(sim.MethodPlanRelease); n != 1 {
		t.Errorf("it was asked %d times at once", n)
	}
	w.until(opened.ID, settlement.Released)
}
