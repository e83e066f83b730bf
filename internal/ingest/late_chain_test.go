package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

// A token payment whose balances cannot be read waits, however deep it is, and confirms with what arrived.
func TestTokenPaymentWaitsUntilItIsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		fee  int
		want chain.Amount
	}{
		"no fee":         {0, dollars(200)},
		"a fee of 1 %":   {100, dollars(198)},
		"a fee of 100 %": {10_000, chain.Amount{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: c.fee, Log: sim.LogGross})
			d := w.deposit()
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.set(&w.failing, true)
			w.mine(10)

			for _, p := range w.payments(d.ID) {
				if p.Status != invoice.Detected || p.Amount != dollars(100) {
					t.Errorf("unmeasured, a payment is %s with %s", p.Status, p.Amount)
				}
			}

			w.wantSum(d.ID, chain.Amount{}, 2)
			w.set(&w.failing, false)
			w.pass(time.Minute)
			w.mine(4)
			w.wantSum(d.ID, c.want, 0)
		})
	}
}

// A fork moves an unmeasured payment: it waits for the balances of its new block.
func TestUnmeasuredPaymentMovesWithItsBlock(t *testing.T) {
	w := newHarness(t, sim.Config{NoFinality: true})
	w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.LogGross})
	w.mine(8)
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.set(&w.failing, true)
	w.mine(2)
	w.fork(3)
	w.mine(5)
	w.wantSum(d.ID, chain.Amount{}, 1)

	w.set(&w.failing, false)
	w.pass(time.Minute)
	w.mine(4)
	w.wantSum(d.ID, dollars(99), 0)
}

// wantSum checks the sum of the confirmed payments of an address, and how many wait.
func (w *harness) wantSum(of string, sum chain.Amount, waiting int) {
	w.t.Helper()

	var confirmed chain.Amount

	for _, p := range w.payments(of) {
		switch p.Status {
		case invoice.Confirmed:
			confirmed = confirmed.Add(p.Amount)
		case invoice.Detected:
			waiting--
		default:
		}
	}

	if confirmed != sum || waiting != 0 {
		w.t.Errorf("%s confirmed, want %s; %d more should wait", confirmed, sum, waiting)
	}
}

// The follower has not read the branch that a hinted transaction is in: its blocks do not count yet.
func TestHintOnAnUnreadBranchIsProvisional(t *testing.T) {
	w := newHarness(t, sim.Config{NoFinality: true})
	w.set(&w.noPool, true)
	w.mine(8)

	inv := w.sell("USDX", dollars(100))
	hash := w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.chain.Mine(1)
	w.chain.Fork(sim.Fork{Depth: 7, Fate: sim.Reinclude})
	w.hint(inv, hash)

	if p := w.only(inv.ID); p.Status != invoice.Detected || !p.Block.IsZero() {
		t.Errorf("on a branch that was not read it is %s in block %d", p.Status, p.Block.Height)
	}

	w.mine(4)
	w.want(inv, invoice.Paid, dollars(100), chain.Amount{})
}

// Health names a payment that waits for its balance to be read, until it was.
func TestHealthNamesWhatIsUnmeasured(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(5))
	hash := w.chain.Pay(addressOf(inv), "USDX", dollars(5))
	w.chain.FailNext(sim.MethodBalances, sim.Unavailable(), 1)
	w.mine(1)

	unread := func() []health.Unread {
		report, err := w.engine.Health(t.Context())
		w.must(err)

		return report.Networks[0].Follower.Unread
	}

	got := unread()
	if len(got) != 1 || got[0].TxHash != hash || got[0].Address != string(addressOf(inv)) ||
		!strings.Contains(got[0].Error, "balance") || got[0].Since.IsZero() {
		t.Fatalf("health names %+v", got)
	}

	w.pass(2 * time.Minute)
	w.mine(5)
	w.want(inv, invoice.Paid, dollars(5), chain.Amount{})

	if got := unread(); len(got) != 0 {
		t.Errorf("after the payment was measured health names %+v", got)
	}
}
