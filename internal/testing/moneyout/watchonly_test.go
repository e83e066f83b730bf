package moneyout_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// inCold runs a scenario with a master wallet whose key this service does not have.
func inCold(t *testing.T, scenario func(t *testing.T, w *harness, cold chain.Address)) {
	t.Helper()
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		cold := w.chain.NewAddress()
		w.change = func(c *payments.Config) {
			c.WatchOnly = map[string]map[uint32]string{network: {w.account.Index: string(cold)}}
		}

		w.engine = w.boot()
		if w.master() != cold {
			t.Fatalf("the master wallet is %s, want %s", w.master(), cold)
		}

		scenario(t, w, cold)
	})
}

func TestWatchOnlyWalletPaysNothing(t *testing.T) {
	inCold(t, func(t *testing.T, w *harness, _ chain.Address) {
		w.fund(1, 0)

		p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Failed)
		if p.FailureCode != "signer_refused:watch_only" || !strings.Contains(p.FailureMessage, "watch-only") {
			t.Errorf("failed as %+v", p)
		}

		w.arrived(p)
		w.clean(1, 0)
	})
}

// A native deposit pays for its own way.
func TestWatchOnlyWalletReceivesSettlements(t *testing.T) {
	inCold(t, func(t *testing.T, w *harness, cold chain.Address) {
		s := w.deposited("SIM", milli(500))
		w.until(
			"it is released",
			func() bool { s = w.settlements()[0]; return s.Status == settlement.Released },
		)
		w.check("at the cold wallet", w.chain.Balance(cold, "SIM"), *s.NetReleased)
		w.check("at the fee address", w.chain.Balance(w.fee, "SIM"), s.FeeNative)

		if s.MasterWalletAddress != cold {
			t.Errorf("released to %s, want %s", s.MasterWalletAddress, cold)
		}

		w.clean(0, 0)
	})
}

// What the owner of a watch-only wallet does with it is his: it freezes nothing, and the audit misses nothing.
func TestOwnerOfAWatchOnlyWalletMaySpend(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		key := chain.KeyRef{Family: chain.Sim, Role: chain.RoleMaster, Index: 900}

		public, err := w.signer.PublicKey(t.Context(), key)
		w.must(err)
		cold, err := w.chain.DeriveAddress(public)
		w.must(err)

		w.change = func(c *payments.Config) {
			c.WatchOnly = map[string]map[uint32]string{network: {w.account.Index: string(cold)}}
		}
		w.engine = w.boot()

		s := w.deposited("SIM", milli(500))
		w.until(
			"it is released",
			func() bool { s = w.settlements()[0]; return s.Status == settlement.Released },
		)

		w.spend(
			chain.Party{Key: key, Address: cold},
			chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(300)},
		)
		w.follow()

		if n := w.frozenWallets(); n != 0 {
			t.Errorf("%d wallets are frozen", n)
		}

		w.must(internal.Of(w.engine).Transactions.RefreshBalances(t.Context(), network))

		a, err := w.engine.Audit(t.Context())
		w.must(err)

		if !a.Clean() || len(a.Differences()) != 0 {
			t.Errorf("the audit says %+v", a.Differences())
		}
	})
}

// A token deposit needs the wallet's native coin for fee and top-up, which nobody here can sign
// for: an operator is needed, and nothing moved.
func TestWatchOnlyWalletCannotPayForATokensWay(t *testing.T) {
	inCold(t, func(t *testing.T, w *harness, cold chain.Address) {
		w.fund(1, 0)
		s := w.deposited("USDX", dollars(400))
		w.until("it failed", func() bool { s = w.settlements()[0]; return s.Status == settlement.Failed })

		if s.Reason != settlement.TransactionFailed {
			t.Errorf("failed for %s", s.Reason)
		}

		w.check("at the deposit address", w.chain.Balance(s.Deposit.Address, "USDX"), dollars(400))
		w.check("at the cold wallet", w.chain.Balance(cold, "SIM"), coin(1))
		w.clean(1, 0)
	})
}
