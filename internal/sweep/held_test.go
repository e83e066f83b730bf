package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

func TestHeldUntilTheMasterWalletIsFilled(t *testing.T) {
	w := newHarness(t, account.Settings{})
	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)

	held := w.until(opened.ID, settlement.Held)
	if held.Reason != settlement.InsufficientMasterBalance || held.RequiredNative == nil ||
		held.RequiredNative.Cmp(held.FeeNative) <= 0 ||
		held.HeldSince.IsZero() {
		t.Fatalf("held as %+v", held)
	}

	for range 10 {
		w.pass(2 * time.Minute)
		w.work()
	}

	if n := w.published(event.SettlementHeld); n != 1 {
		t.Errorf("published %d times that it is held for one reason", n)
	}
	// What it asks for is exactly enough.
	w.chain.Fund(w.master().Address, "SIM", *held.RequiredNative)

	s := w.until(opened.ID, settlement.Released)
	if s.Reason != "" || !s.HeldSince.IsZero() {
		t.Errorf("released as %+v", s)
	}
}

func TestReservedMoneyReleasesNothing(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	if err := w.outbox.RefreshBalances(t.Context(), network, w.master()); err != nil {
		t.Fatal(err)
	}

	native := w.asset("SIM").ID

	err := w.update(t.Context(), w.services, func(ctx context.Context, tx store.Tx) error {
		return w.outbox.ReserveTx(ctx, tx, owner, network, w.master().Address, native, "payout", coin(1))
	})
	if err != nil {
		t.Fatal(err)
	}

	opened := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
	if held := w.until(opened.ID, settlement.Held); held.Reason != settlement.InsufficientMasterBalance {
		t.Errorf("held for %s", held.Reason)
	}
}

// Pitfall 19.
func TestUneconomicIsHeldUntilFeesFall(t *testing.T) {
	w := newHarness(t, account.Settings{})
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

// The fees of a token cost what the native coin costs now, not what it cost at the confirmation.
func TestUneconomicIsHeldUntilTheNativePriceFalls(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(100))
	w.chain.SetFee(100_000*sim.DefaultBaseFee, sim.DefaultPriority)

	token := w.pay("p1", w.deposit(1), "USDX", dollars(9), 9)
	if held := w.until(token.ID, settlement.Held); held.Reason != settlement.Uneconomic {
		t.Errorf("held for %s", held.Reason)
	}

	w.nativeUSD = decimal.NewNullDecimal(decimal.New(1, -2))
	w.until(token.ID, settlement.Released)
}

func TestBelowSweepMinWaitsForCompany(t *testing.T) {
	w := newHarness(t, account.Settings{SweepMinUSD: decimal.NewFromInt(50)})
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
