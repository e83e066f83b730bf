package moneyout_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// toppedUp runs a release of a token until its top-up is in a block that is not final, and returns both.
func (w *harness) toppedUp() (s settlement.Settlement, topUp wallet.Transaction) {
	w.t.Helper()

	s = w.deposited("USDX", dollars(400))
	w.must(w.engine.Settlements.ReleaseNow(w.t.Context(), w.owner, s.ID))
	w.until("its top-up is in a block", func() bool {
		s = w.settlements()[0]
		if s.SweepID == "" {
			return false
		}

		all, err := internal.Of(w.engine).Store().TransactionsOf(w.t.Context(), s.SweepID)
		w.must(err)

		for _, topUp = range all {
			if topUp.Kind == wallet.TopUp {
				return topUp.State == wallet.Included
			}
		}

		return false
	})

	return s, topUp
}

// dropPayment has a fork take a payment out of the chain, and its sender pay nobody instead. All else stays.
func (w *harness) dropPayment(id string) {
	w.t.Helper()

	payment := func() invoice.Payment {
		p, err := internal.Of(w.engine).Store().PaymentByID(w.t.Context(), id)
		w.must(err)

		return p
	}

	paid := payment()
	head, err := w.chain.Head(w.t.Context())
	w.must(err)

	w.chain.Fork(sim.Fork{
		Depth: head.Tip.Height - paid.Block.Height + 1,
		Fate:  sim.Reinclude,
		Each:  map[string]sim.OrphanFate{paid.TxHash: sim.ReturnToPool},
	})
	w.readAll(w.engine)
	w.chain.Replace(paid.TxHash)
	w.chain.Mine(1)
	w.readAll(w.engine)

	if got := payment(); got.Status != invoice.Dropped {
		w.t.Fatalf("the payment is %s", got.Status)
	}
}

// compared has the balances of all addresses compared, and returns the payments in a currency to a deposit address.
func (w *harness) compared(depositID, symbol string) (found []invoice.Payment) {
	w.t.Helper()

	time.Sleep(time.Hour) // an address that waits for no money is compared hourly

	for range 3 {
		_, err := internal.Of(w.engine).Ingester.CheckBalances(w.t.Context(), network)
		w.must(err)
		time.Sleep(time.Minute)
	}

	all, err := internal.Of(w.engine).Store().Payments(
		w.t.Context(), invoice.PaymentFilter{Owner: w.owner, DepositAddressID: depositID, Limit: 100},
	)
	w.must(err)

	for _, p := range all {
		if p.Asset == symbol {
			found = append(found, p)
		}
	}

	return found
}

// Seed 67 of the soak of four processes: a fork takes a payment away, and with it the only record that names the
// top-up of its release. What that brings is no payment: before it is final nothing is concluded from the balance,
// afterwards it is residue.
func TestTopUpOfADroppedPaymentIsNoPayment(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	inTime(t, settings, sim.Config{NoFinality: true}, func(t *testing.T, w *harness) {
		w.fund(1, 0)

		s, topUp := w.toppedUp()
		w.dropPayment(s.PaymentID)

		brought := w.chain.Balance(s.Deposit.Address, "SIM")
		if want := topUp.Order.Outputs[0].Amount; brought != want {
			t.Fatalf("the top-up brought %s, want %s", brought, want)
		}

		if got := w.compared(s.DepositAddressID, "SIM"); len(got) != 0 {
			t.Fatalf("before it is final it is a payment: %+v", got)
		}

		// A customer's coin beside it is not lost: it is found when the top-up has ended.
		w.chain.PayInternal(s.Deposit.Address, milli(7))
		w.live("the coin is found", func() bool { return len(w.compared(s.DepositAddressID, "SIM")) == 1 })
		w.live("it is confirmed", func() bool {
			return w.compared(s.DepositAddressID, "SIM")[0].Status == invoice.Confirmed
		})

		if got := w.compared(s.DepositAddressID, "SIM"); len(got) != 1 || got[0].Amount != milli(7) {
			t.Errorf("the payments of coin are %+v", got)
		}

		if got := w.audited(); len(got) != 0 {
			t.Errorf("the audit finds %v", got)
		}
	})
}

// A top-up that becomes final while balances are compared is no payment either, whatever was read before it did.
func TestTopUpThatBecomesFinalMeanwhile(t *testing.T) {
	for name, updates := range map[string]int{
		"after the balances were read":     0,
		"after the live top-ups were read": 1,
	} {
		t.Run(name, func(t *testing.T) {
			settings := account.Settings{ManualRelease: true}
			inTime(t, settings, sim.Config{NoFinality: true}, func(t *testing.T, w *harness) {
				w.fund(1, 0)

				s, topUp := w.toppedUp()
				w.dropPayment(s.PaymentID)

				over := &watched{
					Store: w.store,
					chain: w.chain,
					reads: w.chain.Calls(sim.MethodBalances),
					skip:  updates,
				}
				over.then = func() {
					w.until("the top-up is final", func() bool {
						now, err := w.store.Transaction(t.Context(), topUp.ID)
						w.must(err)

						return now.State == wallet.Confirmed
					})
				}
				watching := w.other(over)

				time.Sleep(time.Hour)

				_, err := internal.Of(watching).Ingester.CheckBalances(t.Context(), network)
				w.must(err)

				if !over.called {
					t.Fatal("nothing was compared")
				}

				if got := w.compared(s.DepositAddressID, "SIM"); len(got) != 0 {
					t.Errorf("it is a payment: %+v", got)
				}
			})
		})
	}
}

// watched is a store that calls then once, before an update after balances were read; skip says before which.
type watched struct {
	store.Store
	chain *sim.Chain
	// reads are the calls for balances before the comparison.
	reads, skip int
	then        func()
	called      bool
}

func (s *watched) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	if s.chain.Calls(sim.MethodBalances) > s.reads && !s.called {
		if s.called = s.skip == 0; s.called {
			s.then()
		}

		s.skip--
	}

	return s.Store.Update(ctx, f)
}

// other starts a process beside the harness's own, over another connection to the store.
func (w *harness) other(over store.Store) *payments.Engine {
	w.t.Helper()

	w.open = func() store.Store { return over }
	defer func() { w.open = nil }()

	return w.boot()
}
