package moneyout_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// party returns the master wallet with its key.
func (w *harness) party() chain.Party {
	w.t.Helper()
	p, err := internal.Of(w.engine).Transactions.MasterWallet(w.t.Context(), network, w.account.Index)
	w.must(err)

	return p
}

// frozenWallets has the network read up to its tip, and returns how many wallets are frozen.
func (w *harness) frozenWallets() int {
	w.t.Helper()
	w.follow()

	h, err := w.engine.Health(w.t.Context())
	w.must(err)

	return len(frozenOf(h))
}

// frozenOf returns the frozen wallets of a report. One that waits until a block which it saw in advance is read is
// listed too, and is not frozen.
func frozenOf(h health.Report) []health.Wallet {
	return slices.DeleteFunc(slices.Clone(h.Wallets), func(w health.Wallet) bool { return !w.Frozen })
}

// A transaction that somebody else made with the wallet's key freezes it. A payout that has ended stays ended: the
// transaction is foreign and names it.
func TestForeignTransactionFreezesUntilAcknowledged(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

		ended := w.pay("USDX", dollars(7))
		_, err := w.engine.Payouts.Cancel(t.Context(), w.owner, ended.ID)
		w.must(err)

		out := chain.Output{To: ended.Destination, AssetID: ended.AssetID, Amount: ended.Amount}

		hash := w.spend(w.party(), out)
		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d wallets are frozen, want 1", n)
		}

		p := w.pay("USDX", dollars(1))
		w.work()

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Errorf("a frozen wallet signed: it is %s", got.Status)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, hash, ended.ID))

		if got := w.get(ended.ID); got.Status != payout.Failed || got.FailureCode != "canceled" {
			t.Errorf("a canceled payout is %s (%s) after all", got.Status, got.FailureCode)
		}

		rows, err := internal.Of(w.engine).Store().OutgoingByHash(t.Context(), network, []string{hash})
		w.must(err)

		if len(rows) != 1 || rows[0].Acknowledged != payments.Foreign+","+ended.ID {
			t.Errorf("acknowledged as %+v", rows)
		}

		if n := w.frozenWallets(); n != 0 {
			t.Errorf("%d wallets are still frozen", n)
		}

		w.arrived(w.becomes(p.ID, payout.Confirmed))

		// Another one of the same may be wanted: a person says that the transaction is not it.
		order := w.params("USDX", dollars(7))
		order.Destination = string(ended.Destination)
		again, err := w.engine.Payouts.Create(t.Context(), order)
		w.must(err)
		w.work()

		if got := w.get(again.ID); got.Status != payout.Pending {
			t.Errorf("a payout that equals a foreign transaction is %s", got.Status)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign, again.ID))
		w.becomes(again.ID, payout.Confirmed)
		w.check("paid in all", w.chain.Balance(ended.Destination, "USDX"), dollars(14))
	})
}

// A token takes a fee, so that less arrives than a payout's amount: what left the wallet shows that it was paid. A
// person may say so; and to whom it is foreign, the payout waits all the same.
func TestForeignPaymentOfATokenThatTakesAFee(t *testing.T) {
	for _, said := range []string{"", payments.Foreign} {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 100)
			w.chain.SetToken("USDX", sim.TokenRules{FeeBPS: 100})
			w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

			p := w.pay("USDX", dollars(7))
			hash := w.spend(w.party(), chain.Output{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount})

			if n := w.frozenWallets(); n != 1 {
				t.Fatalf("%d wallets are frozen, want 1", n)
			}

			if said == "" {
				w.must(w.engine.Acknowledge(t.Context(), network, hash, p.ID))

				if got := w.becomes(p.ID, payout.Confirmed); got.TxHash != hash {
					t.Errorf("it was paid by %s, and shows %s", hash, got.TxHash)
				}
			} else {
				w.must(w.engine.Acknowledge(t.Context(), network, hash, said))
				w.work()

				if got := w.get(p.ID); got.Status != payout.Pending {
					t.Errorf("a payout that equals a foreign transaction is %s", got.Status)
				}
			}

			w.check("paid in all", w.chain.Balance(p.Destination, "USDX"), chain.Units(6_930_000))
		})
	}
}

// What a wallet did before it was registered, and what a stranger's log says of it, freezes nothing.
func TestWhatIsNotTheWalletsDoesNotFreeze(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.account.Index++ // of an account that there is not yet
		w.fund(1, 0)
		w.spend(
			w.party(),
			chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(1)},
		)
		w.follow()

		opened, err := w.engine.Accounts.CreateAccount(t.Context(), w.account.Settings)
		w.must(err)

		if opened.Index != w.account.Index {
			t.Fatalf("the account has index %d, want %d", opened.Index, w.account.Index)
		}

		w.account, w.owner = opened, event.Owner{AccountID: opened.ID}
		w.chain.Pay(w.master(), "SIM", milli(5))

		if n := w.frozenWallets(); n != 0 {
			t.Errorf("%d wallets are frozen", n)
		}

		p := w.pay("SIM", milli(1))
		w.live("it is paid", func() bool { return w.get(p.ID).Status == payout.Confirmed })
		w.arrived(w.get(p.ID))
	})
}

// A block that is read again shows what the wallet did before it was registered.
func TestWhatIsOlderThanTheWalletDoesNotFreeze(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })
		w.frozenWallets()
		w.must(w.engine.Update(t.Context(), func(ctx context.Context, tx payments.Tx) error {
			registered, _, err := tx.Wallet(ctx, network, w.master())
			if err != nil {
				return err
			}

			registered.Since = 1000

			return tx.PutWallet(ctx, &registered)
		}))
		w.steal(w.party(), milli(1))

		if n := w.frozenWallets(); n != 0 {
			t.Errorf("%d wallets are frozen", n)
		}
	})
}

// A merchant who spends by hand freezes the wallet only by a transaction that equals a waiting payout.
func TestToleratedTransactionsFreezeByEquality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tolerate := func(c *payments.Config) { c.Foreign = payments.Tolerate }
		w := newHarnessOver(t, memory.New(), account.Settings{}, sim.Config{}, tolerate)
		w.fund(1, 100)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })
		w.spend(
			w.party(),
			chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("USDX").ID, Amount: dollars(1)},
		)

		if n := w.frozenWallets(); n != 0 {
			t.Fatalf("%d wallets are frozen", n)
		}

		p := w.pay("USDX", dollars(2))
		hash := w.spend(w.party(), chain.Output{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount})

		// The engine may sign before it has read the block: then the nonce is used, and nothing is sent twice.
		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d wallets are frozen by a payout made by hand", n)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, hash, p.ID))
		w.arrived(w.becomes(p.ID, payout.Confirmed))
		w.once(p)
	})
}

// A payout that is made by hand, and whose block is read, while it comes to be signed waits: it sent money, and is what
// a person says of it.
func TestPayoutMadeByHandIsNotFailed(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

		p, hash := w.pay("USDX", dollars(2)), ""
		w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
			if m == sim.MethodNonce { // the wallet was looked at, and was not frozen
				w.chain.SetIntercept(nil)
				hash = w.spend(
					w.party(),
					chain.Output{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount},
				)
				w.follow()
			}

			return nil
		})

		_, err := internal.Of(w.engine).Transactions.Step(t.Context(), network)
		w.must(err)

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Fatalf("it is %s (%s)", got.Status, got.FailureCode)
		}

		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d wallets are frozen by a payout made by hand", n)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, hash, p.ID))
		w.arrived(w.becomes(p.ID, payout.Confirmed))
		w.once(p)
	})
}

// A deposit address whose key somebody else used is frozen: nothing is swept from it.
func TestForeignTransactionOfADepositAddress(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		s := w.deposited("USDX", dollars(400))
		w.chain.Fund(s.Deposit.Address, "SIM", milli(20)) // that the thief can pay the network
		w.steal(s.Deposit, milli(1))

		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d addresses are frozen, want 1", n)
		}

		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))
		w.work()

		if got := w.settlements()[0]; got.SweepID != "" || got.Status != s.Status {
			t.Errorf("it is swept: %+v", got)
		}
	})
}

// Where the network of a transaction is not final yet, nothing is acknowledged; one that has left the chain unfreezes.
func TestAcknowledgeWaitsForFinality(t *testing.T) {
	config := sim.Config{FinalDepth: 50}
	inTime(t, account.Settings{}, config, func(t *testing.T, w *harness) {
		w.fund(1, 0)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

		hash := w.spend(
			w.party(), chain.Output{To: w.chain.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(1)},
		)
		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d wallets are frozen, want 1", n)
		}

		ack := func() error { return w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign) }
		wantFault(t, ack(), fault.State, "transaction_not_final")
		w.chain.Fork(sim.Fork{Depth: 8, Fate: sim.DropOrphan})

		if n := w.frozenWallets(); n != 1 {
			t.Fatalf("%d wallets are frozen after the fork, want 1", n)
		}

		w.must(ack())

		if n := w.frozenWallets(); n != 0 {
			t.Errorf("%d wallets are still frozen", n)
		}
	})
}

// A payout that is made again when the network asks for less is acknowledged by what was paid when it asked for more:
// its maximum fee bounds what is signed for it, and not what others signed.
func TestForeignTransactionMayCostMoreThanThePayout(t *testing.T) {
	inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)
		w.live("the network is followed", func() bool { _, followed := w.cursor(); return followed })

		usdx, _ := w.chain.Network().Asset("USDX")
		out := chain.Output{To: w.chain.NewAddress(), AssetID: usdx.ID, Amount: dollars(7)}

		w.chain.SetFee(9*sim.DefaultBaseFee, 9*sim.DefaultPriority)

		hash := w.spend(w.party(), out)

		w.frozenWallets()
		w.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)

		params := w.params("USDX", dollars(7))
		params.Destination = string(out.To)

		again, err := w.engine.Payouts.Create(t.Context(), params)
		w.must(err)

		w.chain.Mine(10)
		w.frozenWallets()
		w.must(w.engine.Acknowledge(t.Context(), network, hash, again.ID))

		got, err := w.engine.Payouts.Get(t.Context(), w.owner, again.ID)
		w.must(err)

		if got.Status != payout.Confirmed || got.NetworkFee == nil ||
			!got.MaxNetworkFee.Less(*got.NetworkFee) {
			t.Fatalf("it is %s, cost %s and may cost %s", got.Status, got.NetworkFee, got.MaxNetworkFee)
		}

		if found := w.audited(); len(found) > 0 {
			t.Errorf("the audit finds %v", found)
		}
	})
}
