package moneyout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
)

// lostPayout has a payout pay a new deposit address, and restores records that know the address and not the payout.
func (w *harness) lostPayout(
	symbol string,
	amount chain.Amount,
	dump, restore func(),
) (to invoice.DepositAddress, paid payout.Payout) {
	w.t.Helper()
	w.fund(1, 100)
	w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
	w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)

	to, err := w.engine.Invoices.CreateDeposit(
		w.t.Context(), invoice.DepositParams{Owner: w.owner, Network: network},
	)
	w.must(err)
	dump()

	params := w.params(symbol, amount)
	params.Destination = string(to.Address)
	paid, err = w.engine.Payouts.Create(w.t.Context(), params)
	w.must(err)

	paid = w.goesTo(paid.ID, payout.Confirmed)

	restore()

	if by := w.frozen().FrozenBy; by != paid.TxHash {
		w.t.Fatalf("frozen by %s", by)
	}

	return to, paid
}

// paymentsTo returns the payments to a deposit address that count, without those that were dropped.
func (w *harness) paymentsTo(id string) []invoice.Payment {
	w.t.Helper()

	all, err := internal.Of(w.engine).Store().Payments(
		w.t.Context(), invoice.PaymentFilter{Owner: w.owner, DepositAddressID: id, Limit: 100},
	)
	w.must(err)

	return slices.DeleteFunc(all, func(p invoice.Payment) bool { return p.Status == invoice.Dropped })
}

// unread returns what Health names as waiting on the network.
func (w *harness) unread() []health.Unread {
	w.t.Helper()

	report, err := w.engine.Health(w.t.Context())
	w.must(err)

	return report.Networks[0].Follower.Unread
}

// wantPaid waits until one payment to a deposit address is confirmed, and checks that it is what a transaction brought.
func (w *harness) wantPaid(to invoice.DepositAddress, hash string, amount chain.Amount) {
	w.t.Helper()
	w.steps("it is confirmed", func() bool {
		all := w.paymentsTo(to.ID)
		return len(all) > 0 && all[0].Status == invoice.Confirmed
	})
	w.idle(70 * time.Minute) // balances are compared

	if all := w.paymentsTo(to.ID); len(all) != 1 || all[0].TxHash != hash || all[0].Amount != amount {
		w.t.Errorf("the payments are %+v", all)
	}

	if got := w.unread(); len(got) != 0 {
		w.t.Errorf("health still names %+v", got)
	}

	if got := w.audited(); len(got) != 0 {
		w.t.Errorf("the audit finds %v", got)
	}
}

// A payout to a deposit address of ours is lost with the records: it is a payment there all the same. Tokens are never
// top-ups, so it is credited before anybody says what the transaction was, and whatever it is said to be.
func TestLostPaymentToADepositAddress(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		to, paid := w.lostPayout("USDX", dollars(7), dump, restore)
		w.steps("it is confirmed", func() bool {
			all := w.paymentsTo(to.ID)
			return len(all) == 1 && all[0].Status == invoice.Confirmed
		})
		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, payments.Foreign))
		w.wantPaid(to, paid.TxHash, dollars(7))

		// What comes beside it is explained by nothing.
		w.chain.Pay(to.Address, "USDX", dollars(2))
		w.steps("the next payment is confirmed", func() bool {
			all := w.paymentsTo(to.ID)
			return len(all) == 2 && all[0].Status == invoice.Confirmed && all[1].Status == invoice.Confirmed
		})

		if got := w.audited(); len(got) != 0 {
			t.Errorf("the audit finds %v", got)
		}
	})
}

// Coin that a lost transaction brought to a deposit address may have been a top-up, or a payment: it is withheld and
// named, and a person says which.
func TestLostPaymentThatMayBeATopUp(t *testing.T) {
	settings := account.Settings{ManualRelease: true}

	for name, c := range map[string]struct {
		// says are what the person says, one call each; "to" is the deposit address.
		says   [][]string
		credit bool
	}{
		"a payment":                           {[][]string{{payments.Foreign, "to"}}, true},
		"a top-up":                            {[][]string{{payments.Foreign}}, false},
		"a top-up, and then it was a payment": {[][]string{{payments.Foreign}, {payments.Foreign, "to"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
				to, paid := w.lostPayout("SIM", milli(7), dump, restore)
				w.idle(10 * time.Minute)

				if got := w.paymentsTo(to.ID); len(got) != 0 {
					t.Fatalf("before a person spoke it is a payment: %+v", got)
				}

				got := w.unread()
				if len(got) != 1 || got[0].TxHash != paid.TxHash || got[0].Address != string(to.Address) {
					t.Fatalf("health names %+v", got)
				}

				wantFault(
					t, w.engine.Acknowledge(t.Context(), network, paid.TxHash, to.ID),
					fault.State, "transaction_mismatch",
				)

				for _, as := range c.says {
					as = slices.Clone(as)
					for i := range as {
						if as[i] == "to" {
							as[i] = to.ID
						}
					}

					w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, as...))
					w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, as...))
					w.idle(10 * time.Minute)
				}

				w.thawed()

				if c.credit {
					w.wantPaid(to, paid.TxHash, milli(7))
					return
				}

				w.idle(70 * time.Minute)

				if all := w.paymentsTo(to.ID); len(all) != 0 || len(w.unread()) != 0 {
					t.Errorf("a top-up is a payment: %+v, and %+v waits", all, w.unread())
				}

				if got := w.audited(); len(got) != 0 {
					t.Errorf("the audit finds %v", got)
				}
			})
		})
	}
}
