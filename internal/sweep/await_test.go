package sweep_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// take records a transaction that is not on record, which took money from a deposit's address.
func (w *harness) take(row wallet.Outgoing) {
	w.t.Helper()

	row.Network, row.Key, row.TxHash, row.Unrecorded = network, "taken", "taken", true
	row.Block.Height, row.Block.Hash = 1, "b"

	if err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutOutgoing(ctx, &row)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// A settlement whose money a transaction brought to the master wallet that is not on record does not fail before a
// person has said whether it was its release.
func TestTakenMoneyAwaitsAPerson(t *testing.T) {
	const named = wallet.Foreign + ",SELF"

	old := walletstate.ForeignFor + time.Hour

	for name, c := range map[string]struct {
		utxo   bool
		frozen bool
		// said is what the transaction is acknowledged as; SELF is the settlement.
		said      string
		elsewhere bool
		asset     string
		age       time.Duration
		want      settlement.Status
	}{
		"nobody has said what it was":          {want: settlement.Pending},
		"nobody has said so for long":          {age: old, want: settlement.Pending},
		"it is said to be foreign":             {said: wallet.Foreign, want: settlement.Pending},
		"it is said to be none of this one":    {said: named, want: settlement.Failed},
		"it is said to be another one":         {said: "other", want: settlement.Failed},
		"it was said to be foreign long ago":   {said: wallet.Foreign, age: old, want: settlement.Failed},
		"it went elsewhere":                    {elsewhere: true, want: settlement.Failed},
		"it brought another asset":             {asset: "SIMX", want: settlement.Failed},
		"the address is frozen":                {elsewhere: true, frozen: true, want: settlement.Pending},
		"outputs: nobody has said what it was": {utxo: true, want: settlement.Pending},
		"outputs: it is said to be foreign":    {utxo: true, said: wallet.Foreign, want: settlement.Pending},
		"outputs: it is said to be none of it": {utxo: true, said: named, want: settlement.Failed},
		"outputs: it went elsewhere":           {utxo: true, elsewhere: true, want: settlement.Failed},
		"outputs: the address is frozen":       {utxo: true, elsewhere: true, frozen: true, want: settlement.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			symbol, amount := "USDX", dollars(400)

			if c.utxo {
				w.driver = utxo{w.chain}
				w.boot()

				symbol, amount = "SIM", coin(1)
			}

			w.chain.Fund(w.master().Address, "SIM", coin(1))
			s := w.open("p1", w.deposit(1), symbol, amount, 400)

			row := wallet.Outgoing{Address: s.Deposit.Address, Acknowledged: c.said}
			if row.Acknowledged == named {
				row.Acknowledged = wallet.Foreign + "," + s.ID
			}

			moved := chain.Transfer{To: w.master().Address, AssetID: s.AssetID, Amount: amount}
			if c.elsewhere {
				moved.To = w.fee
			}

			if c.asset != "" {
				moved.AssetID = c.asset
			}

			row.Transfers, row.Block.Time = []chain.Transfer{moved}, w.now.Add(-c.age)
			w.take(row)

			if c.frozen {
				w.freeze(s.Deposit)
			}

			w.pass(20 * time.Minute)

			for range 10 {
				w.work()
				w.pass(time.Minute)
			}

			if s = w.get(s.ID); s.Status != c.want {
				t.Errorf("it is %s %s, want %s", s.Status, s.Reason, c.want)
			}

			named := slices.ContainsFunc(w.sweeper.Waiting(network), func(named health.Wallet) bool {
				return named.Address == string(s.Deposit.Address) && strings.Contains(named.Reason, s.ID)
			})
			if waits := c.want == settlement.Pending && !c.frozen; named != waits {
				t.Errorf("Health names it: %t", named)
			}
		})
	}
}

// freeze freezes a wallet, as a transaction does that is not on record.
func (w *harness) freeze(party chain.Party) {
	w.t.Helper()

	if err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		frozen := wallet.Wallet{Network: network, Party: party}
		walletstate.Freeze(&frozen, wallet.FrozenUnrecorded, "taken", w.now)

		return tx.PutWallet(ctx, &frozen)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// A node that lags does not prove that a deposit is gone which was read: its settlement waits.
func TestNoNodeProvesADepositGoneThatWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		started bool // the release has begun
		answers bool // another node answers for balances
	}{
		"before its release":                  {},
		"amid its release":                    {started: true},
		"while another node has the balances": {answers: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			w.chain.Mine(3)

			s := w.pay("p1", w.deposit(1), "USDX", dollars(400), 400)
			w.read()

			if c.started {
				w.run("the top-up is on its way", func() bool { return w.get(s.ID).TopUpTx != "" })
			}

			const behind = 1000

			w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
				switch {
				case w.reading || c.answers && m == sim.MethodBalances:
					w.chain.Lag(0)
				default:
					w.chain.Lag(behind)
				}

				return nil
			})

			for range 40 {
				w.now = w.now.Add(time.Minute)
				w.plan()
			}

			if got := w.get(s.ID); got.Status == settlement.Failed {
				t.Fatalf("it failed as %s", got.Reason)
			}

			w.chain.SetIntercept(nil)
			w.chain.Lag(0)
			w.until(s.ID, settlement.Released)
		})
	}
}

// plan does one planning run, and reads no block.
func (w *harness) plan() {
	w.t.Helper()

	if _, err := w.sweeper.Step(w.t.Context(), network); err != nil {
		w.t.Fatal(err)
	}
}
