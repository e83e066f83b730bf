package sweep_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

func TestManualReleaseWaitsForThePerson(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
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

	if err := w.service.ReleaseNow(
		t.Context(), event.Owner{AccountID: "other"}, b.ID,
	); !errors.Is(
		err, fault.NotFound,
	) {
		t.Errorf("releasing somebody else's: %v", err)
	}
}

func TestSimulatedIsReleasedAtOnce(t *testing.T) {
	w := newHarness(t, account.Settings{})
	params := sweep.OpenParams{
		Owner:       owner,
		PaymentID:   "p1",
		Network:     network,
		Asset:       w.asset("SIM"),
		Gross:       coin(1),
		USDValue:    decimal.NewFromInt(2000),
		NativePrice: price,
		ConfirmedAt: w.now,
		Simulated:   true,
	}

	s := w.openAs(params)
	if s.Status != settlement.Released || !strings.HasPrefix(s.SweepTx, "sim_") ||
		!strings.HasPrefix(s.FeeTx, "sim_") ||
		!s.NetworkFees.IsZero() {
		t.Fatalf("released as %+v", s)
	}

	w.check("the sum", s.NetReleased.Add(s.FeePaid), coin(1))
	w.lose("p1")

	if s = w.get(s.ID); s.Status != settlement.Reverted {
		t.Errorf("without its payment it is %s", s.Status)
	}

	if again := w.openAs(params); again.ID != s.ID || again.Status != settlement.Released {
		t.Errorf("with its payment it is %+v", again)
	}

	w.get(s.ID)
	w.work()

	if n := w.chain.Calls(sim.MethodBuild); n != 0 {
		t.Errorf("%d transactions were built", n)
	}
}

func TestOpeningTwiceIsOneSettlement(t *testing.T) {
	w := newHarness(t, account.Settings{})

	a := w.pay("p1", w.deposit(1), "SIM", coin(1), 2000)
	if b := w.open("p1", w.deposit(1), "SIM", coin(1), 2000); b.ID != a.ID {
		t.Error("a payment has two settlements")
	}

	w.until(a.ID, settlement.Released)
	w.now = a.ConfirmedAt

	if c := w.open(
		"p1",
		w.deposit(1),
		"SIM",
		coin(1),
		2000,
	); c.ID != a.ID ||
		c.Status != settlement.Released {
		t.Errorf("opened again it is %s", c.Status)
	}
}

func TestListPages(t *testing.T) {
	w := newHarness(t, account.Settings{ManualRelease: true})
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
