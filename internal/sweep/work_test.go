package sweep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A release of native coin is stalled, and one of a token goes on at its address. A second of that token waits for the
// first: none counts on the native coin of another.
func TestStalledReleaseLetsOneOtherGoOn(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	height := w.chain.MineEmpty(5).Height
	w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Releasing)

	tip := w.chain.MineEmpty(1).Height
	w.chain.Fork(sim.Fork{Depth: tip - height, Length: tip - height + 1, Fate: sim.DropOrphan})
	w.chain.Pay(w.master().Address, "SIM", coin(1))
	w.chain.Mine(3)
	w.read()
	w.lose("p1")
	w.now = w.now.Add(20 * time.Minute)

	first := w.pay("p2", deposit, "USDX", dollars(100), 100)
	goOn := w.stopPlanning(func() bool { return w.get(first.ID).TopUpTx != "" })
	w.run("it is topped up", func() bool { return w.get(first.ID).TopUpTx != "" })

	second := w.pay("p3", deposit, "USDX", dollars(100), 100)

	goOn()

	w.run("the first is released", func() bool {
		w.check("releases under way", chain.Units(uint64(min(w.live(deposit), 3))), chain.Units(2))
		w.pass(time.Minute)

		return w.get(first.ID).Status == settlement.Released
	})
	w.until(second.ID, settlement.Released)
}

// A release of native coin bears what an earlier sweep took. A fork takes both payments and that sweep away, and the
// release is stalled: its address holds nothing, and the next release of a token there is topped up.
func TestStalledReleaseBearsWhatIsGone(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
	w.until(w.pay("p1", deposit, "SIM", coin(2), 4000).ID, settlement.Released)
	w.lose("p1")
	w.chain.Pay(deposit.Address, "SIM", coin(2))
	w.chain.Mine(3)
	w.until(w.open("p2", deposit, "SIM", coin(4), 8000).ID, settlement.Releasing)

	w.forkAll(height)
	w.lose("p2")
	w.now = w.now.Add(20 * time.Minute)

	s := w.pay("p3", deposit, "USDX", dollars(100), 100)
	for until := w.now.Add(8 * time.Hour); w.now.Before(until); w.pass(time.Minute) {
		w.work()
	}

	if s = w.get(s.ID); s.Status != settlement.Released {
		t.Errorf("the token is %s, and topped up by %q", s.Status, s.TopUpTx)
	}

	w.check("left", w.chain.Balance(deposit.Address, "SIM"), w.residue(deposit))
}

// Fees fell since a transaction of a stalled release was signed, and no node has it any more. What comes to its address
// later pays for its cancel at the price of then, and is released.
func TestStalledReleaseIsCanceledAtLowerFees(t *testing.T) {
	for symbol, amount := range map[string]chain.Amount{"USDX": dollars(100), "SIM": milli(1)} {
		t.Run(symbol, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			w.chain.SetFee(500*sim.DefaultBaseFee, 500*sim.DefaultPriority)

			deposit, height := w.deposit(1), w.chain.MineEmpty(5).Height
			w.until(w.pay("p1", deposit, "SIM", coin(20), 40000).ID, settlement.Releasing)

			w.forkAll(height)
			w.lose("p1")
			w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
			w.now = w.now.Add(20 * time.Minute)

			s := w.pay("p2", deposit, symbol, amount, 100)
			for until := w.now.Add(24 * time.Hour); w.now.Before(until); w.pass(5 * time.Minute) {
				w.work()
			}

			if s = w.get(s.ID); s.Status != settlement.Released {
				t.Errorf("the next payment is %s", s.Status)
			}
		})
	}
}

// What waits at an address says why once it has waited for a minute: for a release that goes on or is stalled, and for
// the balance that a payment there needs. What is let go says so no more.
func TestWhatWaitsAtAnAddressSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		symbol string
		amount chain.Amount
		begin  func(w *harness, deposit chain.Party) (end func())
		code   string
	}{
		"a release that goes on": {
			"USDX", dollars(100),
			func(w *harness, deposit chain.Party) func() {
				first := w.pay("p1", deposit, "USDX", dollars(100), 100)
				goOn := w.stopPlanning(func() bool { return w.get(first.ID).TopUpTx != "" })
				w.run("it is topped up", func() bool { return w.get(first.ID).TopUpTx != "" })

				return goOn
			},
			"release_under_way",
		},
		"a release that is stalled": {
			"SIM", milli(1),
			func(w *harness, deposit chain.Party) func() {
				return w.stall(deposit, "p1")
			},
			"release_stalled",
		},
		"a stalled release, beside what can be claimed of less": {
			"SIM", milli(3),
			func(w *harness, deposit chain.Party) func() {
				w.until(w.pay("p0", deposit, "SIM", milli(2), 4000).ID, settlement.Released)
				defer w.lose("p0")

				return w.stall(deposit, "p1")
			},
			"release_stalled",
		},
		"a balance that is not read": {
			"SIM", coin(1),
			func(w *harness, deposit chain.Party) func() {
				w.unread = map[chain.Address]time.Time{deposit.Address: w.now}
				return func() { w.unread = nil }
			},
			"balance_unread",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))

			deposit := w.deposit(1)
			end := c.begin(w, deposit)
			s := w.pay("waits", deposit, c.symbol, c.amount, 2000)

			w.work()
			w.says(s.ID, "")

			w.pass(90 * time.Second)
			w.work()
			w.says(s.ID, c.code)

			before := w.get(s.ID)
			w.pass(30 * time.Second)
			w.work()

			if after := w.get(s.ID); after.DueAt.Equal(before.DueAt) && after.Version != before.Version {
				t.Errorf("what is said already was written again: %+v", after)
			}

			end()

			for until := w.now.Add(24 * time.Hour); w.now.Before(until); w.pass(5 * time.Minute) {
				if w.work(); w.get(s.ID).Status == settlement.Released {
					break
				}
			}

			s = w.get(s.ID)
			if s.Status != settlement.Released || s.ReasonMessage != "" || !s.WaitingSince.IsZero() {
				t.Errorf("it is %s, and says %q since %s", s.Status, s.ReasonMessage, s.WaitingSince)
			}
		})
	}
}

// stall has a fork take a payment, and what its release signed, and lets the release stall: what a cancel costs is not
// there until end makes it cheap.
func (w *harness) stall(deposit chain.Party, paymentID string) (end func()) {
	w.t.Helper()
	w.chain.SetFee(500*sim.DefaultBaseFee, 500*sim.DefaultPriority)

	height := w.chain.MineEmpty(5).Height
	w.until(w.pay(paymentID, deposit, "SIM", coin(20), 40_000).ID, settlement.Releasing)

	w.forkAll(height)
	w.lose(paymentID)
	w.now = w.now.Add(20 * time.Minute)

	return func() { w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority) }
}

// says checks the code of why a settlement waits, and that it says since when.
func (w *harness) says(settlementID, want string) {
	w.t.Helper()

	s := w.get(settlementID)

	code, _, _ := strings.Cut(s.ReasonMessage, ":")
	if code != want || (want == "") != s.WaitingSince.IsZero() {
		w.t.Errorf("%s, says %q since %s, want %q", s.Status, s.ReasonMessage, s.WaitingSince, want)
	}
}
