//go:build unix

package moneyout_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// killing has processes over one SQLite file and one node killed by the system, and takes up what they left.
type killing struct {
	*ethereum.Harness
	t       *testing.T
	url     string
	file    string
	token   chain.Asset
	ahead   time.Duration
	crashes int
}

func openSQLite(t *testing.T, path string) payments.Store {
	t.Helper()

	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	return db
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	raced.Skip(t) // a process does one thing at a time, until it dies

	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 1, Args: []string{"--no-mining"}})
	k := &killing{
		t:     t,
		url:   anvil.URL,
		file:  filepath.Join(t.TempDir(), "payments.db"),
		token: ethereum.DeployToken(t, anvil.URL),
	}
	k.Harness = ethereum.New(t, ethereum.Config{
		URL:      k.url,
		ChainID:  anvil.ChainID,
		Tokens:   []chain.Asset{k.token},
		Store:    openSQLite(t, k.file),
		Settings: account.Settings{ManualRelease: true, PayoutsPerHour: 10_000},
	})
	k.Fund(coin(100))

	return k
}

// pass lets time pass for the engine and the node alike.
func (k *killing) pass(d time.Duration) {
	k.t.Helper()
	k.ahead += d
	k.Forward(d)
	k.Call(nil, "evm_increaseTime", int64(d.Seconds()))
	k.Mine(1)
}

func (k *killing) orders(do string) orders {
	return orders{Do: do, URL: k.url, Token: k.token, AccountID: k.Account.ID, SQLite: k.file, Ahead: k.ahead}
}

// until works until the condition holds, looking every minute.
func (k *killing) until(what string, done func() bool) {
	k.t.Helper()

	for range 120 {
		k.Work()

		if done() {
			return
		}

		k.pass(time.Minute)
	}

	k.t.Fatalf("never came true in two hours: %s", what)
}

// everywhere does a piece of work in peace, counting its effects, and again for a sample of them,
// or for all of them when soaking: killed before the effect and after it. prepare makes ready for
// so many times; work gives the orders of one of them and says how to take it up and what must be
// true then.
func (k *killing) everywhere(prepare func(times int), work func() (orders, func())) {
	k.t.Helper()
	prepare(2)
	k.inPeace(work) // makes rows that later ones find
	effects := k.inPeace(work)
	at := sample(effects)
	prepare(2 * len(at))

	for _, n := range at {
		for _, after := range []bool{false, true} {
			doomed, takeUp := work()
			doomed.KillAt, doomed.After = n, after
			start(k.t, doomed).killed()
			k.pass(10 * time.Minute) // what it had taken is free again
			takeUp()

			if k.t.Failed() {
				k.t.Fatalf(
					"killed at effect %d of %d, %s (after it happened: %v)",
					n, len(effects), effects[n-1], after,
				)
			}

			k.settle()
			k.crashes++
		}
	}

	updates := 0

	for _, name := range effects {
		if name == "update" {
			updates++
		}
	}

	k.t.Logf(
		"an undisturbed process makes %d updates of the store and %d requests of the node; killed before "+
			"and after each of %d of these %d: %d crashes survived",
		updates,
		len(effects)-updates,
		len(at),
		len(effects),
		k.crashes,
	)
}

// inPeace has a process do a piece of work to its end, and returns its effects.
func (k *killing) inPeace(work func() (orders, func())) (effects []string) {
	k.t.Helper()

	o, takeUp := work()
	o.Effects = filepath.Join(k.t.TempDir(), "effects")
	start(k.t, o).done()
	takeUp()
	k.settle()

	text, err := os.ReadFile(o.Effects)
	k.Must(err)

	return strings.Split(string(text), "\n")
}

// sample picks the numbers of effects to die at: all of them when soaking, otherwise every
// broadcast and a few between. The last few are left out: not every run has as many, since what raised a
// balance is followed by a look at what waits for it.
func sample(effects []string) (at []int) {
	const between, unsure = 6, 3

	for i, name := range effects[:len(effects)-unsure] {
		spread := i*(between-1)%(len(effects)-1) < between-1
		if os.Getenv("SOAKTIME") != "" || spread || strings.Contains(name, "eth_sendRawTransaction") {
			at = append(at, i+1)
		}
	}

	return at
}

// settle lets a day go by, after which nobody looks at what is confirmed.
func (k *killing) settle() {
	k.t.Helper()
	k.pass(25 * time.Hour)
	k.Work()
}

func payAndDie(t *testing.T, o orders) {
	w, p := doomed(t, o)
	params := w.Params(o.Amount)
	params.Destination = o.Destination
	made, err := w.Engine.Payouts.Create(t.Context(), params)
	w.Must(err)
	w.Becomes(made.ID, payout.Confirmed, 1)
	o.survived(t, p)
}

// Pitfall 13, with processes that the system kills. Whatever the moment, the payout is on the chain once.
func TestSoakPayoutByKilledProcesses(t *testing.T) {
	k := newKilling(t)
	paid := uint64(0)

	k.everywhere(func(int) {}, func() (orders, func()) {
		o := k.orders("payout")
		o.Destination, o.Amount = string(k.Stranger()), milli(100)

		return o, func() {
			// A client that got no answer asks again with its idempotency key, and gets what was stored.
			all, err := internal.Of(k.Engine).
				Store().
				Payouts(t.Context(), payout.Filter{Owner: k.Owner, Limit: 10_000})
			k.Must(err)

			ours := slices.DeleteFunc(
				all, func(p payout.Payout) bool { return string(p.Destination) != o.Destination },
			)
			if len(ours) == 0 {
				params := k.Params(o.Amount)
				params.Destination = o.Destination
				p, err := k.Engine.Payouts.Create(t.Context(), params)
				k.Must(err)

				ours = append(ours, p)
			}

			p := ours[0]

			k.until("it is confirmed", func() bool { p = k.Get(p.ID); return p.Status == payout.Confirmed })

			paid++
			if made, got := k.Nonce(
				k.Master,
			), k.Balance(
				p.Destination,
			); len(ours) != 1 || made != paid ||
				got != o.Amount {
				t.Errorf(
					"%d payouts; the wallet made %d transactions for %d of them, and %s arrived",
					len(ours), made, paid, got,
				)
			}
		}
	})
	k.Follow()
	k.Clean()
}

func releaseAndDie(t *testing.T, o orders) {
	w, p := doomed(t, o)
	w.Must(w.Engine.Settlements.ReleaseNow(t.Context(), w.Owner, o.SettlementID))
	w.Until("it is released", 1, func() bool {
		s, err := w.Engine.Settlements.Get(t.Context(), w.Owner, o.SettlementID)
		w.Must(err)

		return s.Status == settlement.Released
	})
	o.survived(t, p)
}

// Likewise a token settlement: one top-up, one fee, one sweep.
func TestSoakReleaseByKilledProcesses(t *testing.T) {
	k := newKilling(t)

	var waiting []settlement.Settlement

	prepare := func(times int) {
		k.Follow() // before it is followed a network has no payments

		for range times {
			d, err := k.Engine.Invoices.CreateDeposit(
				t.Context(), invoice.DepositParams{Owner: k.Owner, Network: k.Network},
			)
			k.Must(err)
			k.Mint(k.token, d.Address, dollars(400))
		}

		k.Live("the settlements opened", func() bool {
			var err error

			waiting, err = internal.Of(k.Engine).Store().Settlements(
				t.Context(),
				settlement.Filter{
					Owner:    k.Owner,
					Statuses: []settlement.Status{settlement.Pending},
					Limit:    times + 1,
				},
			)
			k.Must(err)

			return len(waiting) == times
		})
	}
	released := uint64(0)

	k.everywhere(prepare, func() (orders, func()) {
		s := waiting[0]
		waiting = waiting[1:]
		o := k.orders("release")
		o.SettlementID = s.ID

		return o, func() {
			if now, err := k.Engine.Settlements.Get(
				t.Context(), k.Owner, s.ID,
			); err != nil ||
				now.Status == settlement.Pending && now.DueAt.IsZero() {
				k.Must(k.Engine.Settlements.ReleaseNow(t.Context(), k.Owner, s.ID))
			}

			k.until("it is released", func() bool {
				var err error

				s, err = k.Engine.Settlements.Get(t.Context(), k.Owner, s.ID)
				k.Must(err)

				return s.Status == settlement.Released
			})

			released++
			if top, swept := k.Nonce(k.Master), k.Nonce(s.Deposit.Address); top != 2*released || swept != 1 {
				t.Errorf(
					"for %d releases the wallet made %d transactions, the deposit address %d",
					released, top, swept,
				)
			}

			if got := k.TokenBalance(
				k.token, k.Master,
			); got != dollars(400*released) ||
				*s.NetReleased != dollars(400) {
				t.Errorf("%s arrived of %d releases, %s of this one", got, released, s.NetReleased)
			}

			if got := k.Balance(
				ethereum.FeeAddress,
			); s.FeePaid != s.FeeNative ||
				got != s.FeeNative.Mul(released) {
				t.Errorf("of %d fees of %s the fee address has %s", released, s.FeeNative, got)
			}
		}
	})
	k.Follow()
	k.Clean()
}
