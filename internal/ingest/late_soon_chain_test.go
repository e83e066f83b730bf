package ingest_test

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// A token payment confirms with the next block within seconds of its balance being readable, however long it was not.
func TestUnmeasuredPaymentConfirmsSoonAfterItsBalanceIsReadable(t *testing.T) {
	for outage, within := range map[time.Duration]time.Duration{
		10 * time.Second: 4 * time.Second,
		5 * time.Minute:  8 * time.Second,
		16 * time.Minute: 20 * time.Second,
	} {
		t.Run(outage.String(), func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			inv := w.sell("USDX", dollars(5))
			w.set(&w.failing, true)
			w.chain.Pay(addressOf(inv), "USDX", dollars(5))
			w.mine(5)
			w.idle(outage)
			w.want(inv, invoice.Pending, chain.Amount{}, dollars(5))

			w.set(&w.failing, false)
			w.idle(within)
			w.mine(1)
			w.want(inv, invoice.Paid, dollars(5), chain.Amount{})
		})
	}
}

// A payment that came while another release of its address was under way confirms with the next block within
// seconds of its end, where nodes know recent balances only.
func TestUnmeasuredPaymentConfirmsSoonAfterTheReleaseOfAnother(t *testing.T) {
	w := newHarness(t, sim.Config{})
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.mine(10)
	w.wantSum(d.ID, dollars(100), 0)

	w.set(&w.recent, true)
	w.chain.Fund(w.master(), "SIM", coin(1))
	w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, w.settlementOf(d).ID))
	w.mine(1)
	w.chain.Pay(d.Address, "USDX", dollars(50))
	w.set(&w.failing, true)
	w.set(&w.stuck, true) // its top-up is included, its sweep cannot be planned
	w.mine(10)
	w.idle(9 * time.Minute)
	w.wantSum(d.ID, dollars(100), 1)
	w.set(&w.failing, false)
	w.set(&w.stuck, false)

	for range 100 {
		if w.settlementOf(d).Status == settlement.Released {
			break
		}

		w.mine(1)
	}

	w.idle(12 * time.Second)
	w.mine(1)
	w.wantSum(d.ID, dollars(150), 0)
}

// No release is begun at an address where a payment waits to be measured, for ten minutes at most.
func TestReleaseWaitsForAnUnmeasuredPayment(t *testing.T) {
	for name, c := range map[string]struct {
		outage time.Duration
		want   settlement.Status
	}{
		"a moment":    {time.Minute, settlement.Pending},
		"ten minutes": {11 * time.Minute, settlement.Releasing},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{})
			w.readable = w.master()
			w.chain.Fund(w.readable, "SIM", coin(1))
			d := w.deposit()
			w.chain.Pay(d.Address, "USDX", dollars(100))
			w.mine(10)

			w.set(&w.failing, true)
			w.chain.Pay(d.Address, "USDX", dollars(50))
			w.mine(4)
			w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, w.settlementOf(d).ID))
			w.idle(c.outage)
			w.wantSum(d.ID, dollars(100), 1)

			if got := w.settlementOf(d).Status; got != c.want {
				t.Errorf("the other settlement is %s, want %s", got, c.want)
			}

			w.set(&w.failing, false)
			w.idle(4 * time.Second)
			w.mine(1)

			if c.want == settlement.Pending {
				w.wantSum(d.ID, dollars(150), 0)
			}

			w.mine(20)
			w.wantSum(d.ID, dollars(150), 0)

			if got := w.settlementOf(d).Status; got != settlement.Released {
				t.Errorf("in the end the settlement is %s", got)
			}
		})
	}
}

// A token whose contract does not answer holds up no payment in another one to the same address.
func TestUnreadableTokenHoldsUpNoOther(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.badToken = "USDY"
	d := w.deposit()
	w.chain.PayMany(w.output(d.Address, "USDX", dollars(7)), w.output(d.Address, "USDY", dollars(9)))
	w.mine(6)
	w.wantSum(d.ID, dollars(7), 1)
}

// Coin that no transfer shows confirms soon after a release at its address, which hides it, too.
func TestHiddenCoinConfirmsSoonAfterTheReleaseOfAnother(t *testing.T) {
	w := newHarness(t, sim.Config{})
	w.chain.Fund(w.master(), "SIM", coin(1))
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(100))
	w.mine(10)
	w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, w.settlementOf(d).ID))
	w.mine(1)
	w.set(&w.stuck, true)
	w.chain.PayInternal(d.Address, coin(2))

	for range 70 { // it is compared hourly
		w.pass(time.Minute)
		w.mine(1)
	}

	w.wantSum(d.ID, dollars(100), 0)
	w.set(&w.stuck, false)

	for range 400 {
		if w.settlementOf(d).Status == settlement.Released {
			break
		}

		w.mine(1)
	}

	w.idle(31 * time.Second)
	w.mine(16)
	w.wantSum(d.ID, coin(2).Add(dollars(100)), 0)
}

// master returns the address of the account's master wallet.
func (w *harness) master() chain.Address {
	w.t.Helper()

	a, err := w.engine.Accounts.Get(w.t.Context(), w.owner.AccountID)
	w.must(err)
	master, err := internal.Of(w.engine).Transactions.MasterWallet(w.t.Context(), network, a.Index)
	w.must(err)

	return master.Address
}

// settlementOf returns the oldest settlement of a deposit address.
func (w *harness) settlementOf(d invoice.DepositAddress) settlement.Settlement {
	w.t.Helper()

	page, err := w.store.Settlements(
		w.t.Context(), settlement.Filter{Owner: w.owner, DepositAddressID: d.ID, Limit: 10},
	)
	w.must(err)

	if len(page) == 0 {
		w.t.Fatal("no settlement")
	}

	return page[len(page)-1]
}

// idle lets time pass without blocks, a second at a time.
func (w *harness) idle(d time.Duration) {
	w.t.Helper()

	for range d / time.Second {
		w.pass(time.Second)
		w.work()
	}
}
