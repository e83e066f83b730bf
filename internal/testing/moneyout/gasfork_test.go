package moneyout_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// dear are rules of gas by which everything takes more than before.
var dear = sim.GasRules{
	Native:     2 * sim.GasNative,
	Token:      2 * sim.GasToken,
	NewAccount: 183_600,
	NewSlot:    98_000,
}

// A payout that was signed before gas became dearer, and runs out of it after, has failed as reverted, with its fee.
// What the wallet signs then has gas enough.
func TestPayoutThatRunsOutOfGasIsToldAsReverted(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(100, 1_000)

			amount := coin(1)
			if symbol == "USDX" {
				amount = dollars(10)
			}

			crossing := w.pay(symbol, amount)
			w.work()
			w.chain.ForkGas(dear)

			failed := w.becomes(crossing.ID, payout.Failed)
			if failed.FailureCode != "reverted" || failed.NetworkFee.IsZero() {
				t.Errorf(
					"%s: it failed as %q, with a fee of %s",
					symbol,
					failed.FailureCode,
					failed.NetworkFee,
				)
			}

			w.arrived(w.becomes(w.pay(symbol, amount).ID, payout.Confirmed))
		})
	}
}

// A sweep that was signed before, and runs out of gas after, is made again at the new price: its deposit is released.
func TestSweepThatRunsOutOfGasIsMadeAgain(t *testing.T) {
	for _, symbol := range []string{"SIM", "USDX"} {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(100, 1_000)

			amount := coin(1)
			if symbol == "USDX" {
				amount = dollars(500)
			}

			s := w.deposited(symbol, amount)
			w.until("the sweep is signed", func() bool { return len(w.sweepsOf(s)) == 1 })
			w.chain.ForkGas(dear)

			w.until("the deposit is released", func() bool {
				return w.settlement(s.ID).Status == settlement.Released
			})

			if sweeps := w.sweepsOf(s); len(sweeps) != 2 || sweeps[0].Failure != wallet.FailReverted {
				t.Errorf("%s: %d sweeps: %+v", symbol, len(sweeps), sweeps)
			}
		})
	}
}

// sweepsOf returns the sweeps of a settlement's release that are signed, oldest first.
func (w *harness) sweepsOf(s settlement.Settlement) (sweeps []wallet.Transaction) {
	w.t.Helper()

	if s = w.settlement(s.ID); s.SweepID == "" {
		return nil
	}

	all, err := w.store.TransactionsOf(w.t.Context(), s.SweepID)
	w.must(err)

	for _, tx := range all {
		if tx.Kind == wallet.Sweep && len(tx.Attempts) > 0 {
			sweeps = append(sweeps, tx)
		}
	}

	return sweeps
}

func (w *harness) settlement(id string) settlement.Settlement {
	w.t.Helper()

	s, err := w.engine.Settlements.Get(w.t.Context(), w.owner, id)
	w.must(err)

	return s
}
