package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// customer is one deposit address of a service that is worked step by step, in a time of its own.
type customer struct {
	t       testing.TB
	fatalf  func(format string, args ...any)
	mu      sync.Mutex
	now     time.Time
	chain   *sim.Chain
	engine  *payments.Engine
	owner   event.Owner
	deposit invoice.DepositAddress
	master  chain.Party
	// often has the balances of the deposit address compared at every block.
	often bool
}

func newCustomer(t testing.TB, fatalf func(string, ...any), c sim.Config) *customer {
	t.Helper()
	w := &customer{t: t, fatalf: fatalf, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.Clock = w.clock
	w.chain = sim.New(c)
	cfg := config(t, w.chain)
	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500", "USDC/USD": "1"}, time.Minute, w.clock)
	w.must(err)
	cfg.Now, cfg.Rates = w.clock, prices
	w.engine, err = payments.New(cfg)
	w.must(err)
	a, err := w.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Exchange"})
	w.must(err)
	w.owner = event.Owner{AccountID: a.ID}
	w.chain.Mine(5)
	w.work()
	w.deposit, err = w.engine.Invoices.CreateDeposit(
		t.Context(), invoice.DepositParams{Owner: w.owner, Network: "simnet"},
	)
	w.must(err)
	w.master, err = internal.Of(w.engine).Transactions.MasterWallet(t.Context(), "simnet", a.Index)
	w.must(err)
	w.chain.Fund(w.master.Address, "SIM", chain.Pow10(18)) // pays what token deposits cost
	w.pass(time.Minute, 1)

	return w
}

func (w *customer) must(err error) {
	w.t.Helper()

	if err != nil {
		w.fatalf("unexpected error: %v", err)
	}
}

func (w *customer) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.now
}

func (w *customer) work() {
	w.t.Helper()

	for range 200 {
		did, err := w.engine.Step(context.Background())
		w.must(err)

		if !did {
			return
		}
	}

	w.fatalf("the engine does not come to rest")
}

// pass lets time pass with blocks in it, and has everything done in between.
func (w *customer) pass(d time.Duration, blocks int) {
	w.t.Helper()

	for range blocks {
		w.mu.Lock()
		w.now = w.now.Add(d / time.Duration(blocks))
		w.mu.Unlock()
		w.chain.Mine(1)

		if w.often {
			w.compareNow()
		}

		w.work()
	}
}

// compareNow makes the deposit address due for a comparison of its balances.
func (w *customer) compareNow() {
	w.t.Helper()
	w.must(
		internal.Of(w.engine).Update(context.Background(), func(ctx context.Context, tx payments.Tx) error {
			rows, err := tx.MatchAddresses(ctx, w.chain.Network().Space(), []chain.Address{w.deposit.Address})
			if err != nil {
				return err
			}

			rows[0].NextCheck, rows[0].Urgent = w.clock().Add(-time.Second), true

			return tx.UpdateAddresses(ctx, rows...)
		}),
	)
}

func (w *customer) payments() []invoice.Payment {
	w.t.Helper()
	all, _, err := w.engine.Invoices.ListPayments(
		context.Background(),
		invoice.PaymentFilter{Owner: w.owner, DepositAddressID: w.deposit.ID, Limit: 100},
	)
	w.must(err)
	slices.Reverse(all) // the oldest first

	return all
}

// firstSettlement returns the oldest settlement of the owner; an empty one without any.
func (w *customer) firstSettlement() settlement.Settlement {
	w.t.Helper()
	all, _, err := w.engine.Settlements.List(w.t.Context(), settlement.Filter{Owner: w.owner, Limit: 10})
	w.must(err)

	if len(all) == 0 {
		return settlement.Settlement{}
	}

	return all[len(all)-1]
}

// A token whose sweep failed hides no coin that comes to its address later: what the release left there is known.
func TestHiddenCoinWhereASweepFailed(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	w.chain.Pay(w.deposit.Address, "USDX", chain.Units(400_000_000))

	one := w.firstSettlement

	for n := 0; n < 30 && one().SweepTx == ""; n++ {
		w.pass(2*time.Second, 1)
	}

	w.chain.Freeze(w.master.Address, "USDX", true) // the sweep waits for a block, and will revert
	w.pass(time.Minute, 30)

	if s := one(); s.Status != settlement.Failed || s.Reason != settlement.TransactionFailed ||
		s.TopUpTx == "" {
		t.Fatalf("the settlement is %+v", s)
	}

	w.chain.PayInternal(w.deposit.Address, chain.Pow10(16))
	w.pass(70*time.Minute, 70)

	if all := w.payments(); len(all) != 2 || all[1].Amount != chain.Pow10(16) ||
		all[1].DetectedBy != invoice.ByBalance || all[1].Status != invoice.Confirmed {
		t.Errorf("the payments are %+v", all)
	}
}

// Nor does a settlement that went back to the queue after that, and is held there.
func TestHiddenCoinWhereASettlementIsHeldAfterItsSweepFailed(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	w.chain.Pay(w.deposit.Address, "USDX", chain.Units(400_000_000))

	one := w.firstSettlement

	for n := 0; n < 30 && one().SweepTx == ""; n++ {
		w.pass(2*time.Second, 1)
	}

	w.chain.Freeze(w.master.Address, "USDX", true)
	w.pass(time.Minute, 30)

	a, err := w.engine.Accounts.Get(t.Context(), w.owner.AccountID)
	w.must(err)

	a.Settings.SweepMinUSD = decimal.NewFromInt(1_000_000)
	_, err = w.engine.Accounts.UpdateSettings(t.Context(), a.ID, a.Settings)
	w.must(err)
	_, err = w.engine.Settlements.Retry(t.Context(), w.owner, one().ID)
	w.must(err)
	w.pass(time.Minute, 2)

	if s := one(); s.Status != settlement.Held || s.SweepTx == "" || s.SweepID != "" {
		t.Fatalf("the settlement is %+v", s)
	}

	w.chain.PayInternal(w.deposit.Address, chain.Pow10(16))
	w.pass(70*time.Minute, 70)

	if all := w.payments(); len(all) != 2 || all[1].Amount != chain.Pow10(16) ||
		all[1].DetectedBy != invoice.ByBalance || all[1].Status != invoice.Confirmed {
		t.Errorf("the payments are %+v", all)
	}

	if found, err := w.engine.Audit(t.Context()); err != nil || !found.Clean() {
		t.Errorf("the audit finds %+v, %v", found.Differences(), err)
	}
}

// Coin that a contract sends to a deposit address shows in no scan. The balance shows it, once,
// and again when more comes after the first was swept; a hint names its transaction.
func TestHiddenCoinAtADepositAddress(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	hidden := w.chain.PayInternal(w.deposit.Address, chain.Pow10(17))
	w.pass(70*time.Minute, 35)

	first := w.payments()
	if len(first) != 1 || first[0].Status != invoice.Confirmed ||
		first[0].DetectedBy != invoice.ByBalance ||
		first[0].TxHash != "" ||
		first[0].Amount != chain.Pow10(17) {
		t.Fatalf("the payments are %+v", first)
	}

	if d, err := w.engine.Invoices.GetDeposit(
		t.Context(), w.owner, w.deposit.ID,
	); err != nil ||
		d.LastPaymentAt.IsZero() {
		t.Errorf("the deposit address had its last payment at %s, %v", d.LastPaymentAt, err)
	}

	if result, err := w.engine.Invoices.HintDeposit(
		t.Context(), w.owner, w.deposit.ID, hidden,
	); err != nil ||
		result != invoice.HintFound {
		t.Fatalf("a hint: %s, %v", result, err)
	}

	w.pass(time.Minute, 1)

	if named := w.payments(); len(named) != 1 || named[0].ID != first[0].ID || named[0].TxHash != hidden ||
		named[0].TxIndex < 1<<20 {
		t.Fatalf("with a hint the payments are %+v", named)
	}

	w.pass(30*time.Minute, 30)

	released, _, err := w.engine.Settlements.List(t.Context(), settlement.Filter{Owner: w.owner, Limit: 10})
	if err != nil || len(released) != 1 || released[0].Status != settlement.Released {
		t.Fatalf("the settlements are %+v, %v", released, err)
	}

	w.chain.PayInternal(w.deposit.Address, chain.Pow10(16))
	w.pass(70*time.Minute, 70)

	if all := w.payments(); len(all) != 2 || all[1].Amount != chain.Pow10(16) || all[1].TxHash != "" ||
		all[1].Status != invoice.Confirmed {
		t.Errorf("after more of it the payments are %+v", all)
	}

	if a, err := w.engine.Audit(t.Context()); err != nil || !a.Clean() {
		t.Errorf("the audit found %+v, %v", a.Differences(), err)
	}
}

// A fork takes such a payment back, and its money's return is the same payment.
func TestHiddenCoinThatAForkTakesBack(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	w.pass(time.Hour, 1) // the address is compared
	w.chain.PayInternal(w.deposit.Address, chain.Pow10(17))
	w.pass(time.Hour, 1)

	seen := w.payments()
	if len(seen) != 1 || seen[0].Status != invoice.Detected {
		t.Fatalf("the payments are %+v", seen)
	}

	w.chain.Fork(sim.Fork{Depth: 1, Fate: sim.ReturnToPool})
	w.chain.MineEmpty(2)
	w.work()

	if lost := w.payments(); len(lost) != 1 || lost[0].Status != invoice.Orphaned {
		t.Fatalf("after a fork the payments are %+v", lost)
	}

	w.pass(20*time.Minute, 10)

	if back := w.payments(); len(back) != 1 || back[0].ID != seen[0].ID ||
		back[0].Status != invoice.Confirmed {
		t.Errorf("the payments came back as %+v, they were %+v", back, seen)
	}
}

// A node that does not answer for balances keeps nothing else back, and is asked again.
func TestBalancesThatCannotBeRead(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	w.chain.PayInternal(w.deposit.Address, chain.Pow10(17))
	w.chain.Mine(1)
	w.now = w.now.Add(time.Hour)
	down := errors.New("down")

	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if m == sim.MethodBalances {
			return down
		}

		return nil
	})

	if _, err := w.engine.Step(t.Context()); !errors.Is(err, down) {
		t.Fatalf("a node that is down: %v", err)
	}

	w.chain.SetIntercept(nil)
	w.pass(11*time.Minute, 11)

	if all := w.payments(); len(all) != 1 || all[0].Status != invoice.Confirmed {
		t.Errorf("the payments are %+v", all)
	}
}

// Whatever comes and goes at the address (payments that scans show and payments that none shows,
// top-ups, sweeps, carried fees), the payments are in the end what others sent: nothing of ours is
// ever taken for a payment.
func TestOwnTransactionsAreNeverUnexplained(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newCustomer(t, rt.Fatalf, sim.Config{NoFinality: true, Seed: rapid.Uint64().Draw(rt, "seed")})
		w.often = true
		sent := map[string]chain.Amount{}

		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			amount := chain.Units(uint64(rapid.IntRange(1, 400).Draw(rt, "amount")))
			switch rapid.IntRange(0, 4).Draw(rt, "event") {
			case 0:
				amount = amount.Mul(1e15)
				w.chain.Pay(w.deposit.Address, "SIM", amount)
				sent["SIM"] = sent["SIM"].Add(amount)
			case 1:
				amount = amount.Mul(1e6)
				w.chain.Pay(w.deposit.Address, "USDX", amount)
				sent["USDX"] = sent["USDX"].Add(amount)
			case 2:
				amount = amount.Mul(1e15)
				w.chain.PayInternal(w.deposit.Address, amount)
				sent["SIM"] = sent["SIM"].Add(amount)
			case 3:
				w.pass(
					time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes"))*time.Minute,
					rapid.IntRange(1, 8).Draw(rt, "blocks"),
				)
			case 4:
				w.chain.Mine(rapid.IntRange(1, 3).Draw(rt, "blocks"))
			}
		}

		for range 12 {
			w.pass(20*time.Minute, 8)
		}

		got := map[string]chain.Amount{}

		for _, p := range w.payments() {
			if p.Status != invoice.Confirmed {
				rt.Errorf("payment %s is %s", p.ID, p.Status)
			}

			got[p.Asset] = got[p.Asset].Add(p.Amount)
		}

		for _, asset := range []string{"SIM", "USDX"} {
			if got[asset] != sent[asset] {
				rt.Errorf("payments of %s %s were taken in, %s were sent", got[asset], asset, sent[asset])
			}
		}
	})
}

// Row 41 of the pitfalls: the audit names coin at an address that no record is about.
func TestAuditNamesCoinWithoutARecord(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	w.chain.PayInternal(w.deposit.Address, chain.Pow10(17))
	w.chain.Mine(1)
	w.work()

	report, err := w.engine.Audit(t.Context())
	w.must(err)

	all := report.Differences()
	if len(all) != 1 || all[0].Kind != audit.MoneyUnexplained || all[0].Address != w.deposit.Address ||
		!all[0].Expected.IsZero() || all[0].Found != chain.Pow10(17) || all[0].AssetID == "" {
		t.Fatalf("the audit found %+v", all)
	}

	// Once it is a payment the audit is clean, and names it when no transaction shows for a day.
	w.pass(70*time.Minute, 35)

	for _, hours := range []int{0, 25} {
		w.pass(time.Duration(hours+1)*time.Hour, 5)

		report, err = w.engine.Audit(t.Context())
		w.must(err)

		unnamed := report.Networks[0].Unnamed
		if !report.Clean() || (len(unnamed) == 1) != (hours == 25) {
			t.Errorf("after %d hours the audit found %+v, unnamed %+v", hours, report.Differences(), unnamed)
		}
	}
}

// A transaction that took from an address of ours and is not on record is named until a person says what
// it was.
func TestAuditNamesAnUnrecordedTransaction(t *testing.T) {
	w := newCustomer(t, t.Fatalf, sim.Config{NoFinality: true})
	row := wallet.Outgoing{
		Network: "simnet",
		Key:     string(w.deposit.Address) + "/0",
		Address: w.deposit.Address,
		TxHash:  "0xforeign",
		Block:   chain.Ref{Height: 1, Hash: "b"},

		Unrecorded: true,
	}

	for _, as := range []string{"", "foreign"} {
		row.Acknowledged = as
		put := func(ctx context.Context, tx payments.Tx) error { return tx.PutOutgoing(ctx, &row) }
		w.must(internal.Of(w.engine).Update(t.Context(), put))

		report, err := w.engine.Audit(t.Context())
		w.must(err)

		all := report.Differences()
		if as == "" && (len(all) != 1 || all[0].Kind != audit.ForeignTransaction ||
			all[0].Address != w.deposit.Address || all[0].Records[0].TxHash != "0xforeign") ||
			as != "" && len(all) != 0 {
			t.Errorf("acknowledged as %q the audit found %+v", as, all)
		}
	}
}
