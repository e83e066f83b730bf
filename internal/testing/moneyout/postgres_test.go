//go:build unix

package moneyout_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/moneyout/ethereum"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// speed is how many seconds engines and network live through in each second: a database answers in
// real time, so that time here is real as well, only faster.
const speed = 20

func openPostgres(t *testing.T, dsn string, migrate bool) payments.Store {
	t.Helper()

	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}

	db := stdlib.OpenDB(*config)

	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(6)

	if migrate {
		if err := postgres.Migrate(t.Context(), db, postgres.Options{}); err != nil {
			t.Fatal(err)
		}
	}

	st, err := postgres.New(db, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return st
}

// Each of four processes has connections of its own, and each transaction of the wallet pays
// several of their payouts.
func TestPayoutsTogetherOverPostgres(t *testing.T) {
	dsn := testenv.Postgres(t)
	synctest.Test(t, func(t *testing.T) {
		w := newHarnessOver(t, openPostgres(t, dsn, true), account.Settings{}, together, nil)
		w.open = func() store.Store { return openPostgres(t, dsn, false) }
		w.payTogetherByFour(120)
	})
}

// serve accepts payouts and runs an engine until its input ends.
func serve(t *testing.T, o orders) {
	w := ethereum.New(t, ethereum.Config{
		URL:       o.URL,
		ChainID:   testenv.DefaultChainID,
		AccountID: o.AccountID,
		Store:     openPostgres(t, o.Postgres, false),
		Process:   o.Name,
		Now:       func() time.Time { return o.Began.Add(speed * time.Since(o.Began)) },
	})
	for i := range o.Payouts {
		if _, err := w.Engine.Payouts.Create(
			t.Context(), w.Params(milli(1).Add(chain.Units(uint64(i)))),
		); err != nil {
			t.Fatalf("payout %d: %v", i, err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)

		stop()
	}()

	w.Must(w.Engine.Run(ctx))
}

// Four processes over one PostgreSQL and one node pay from one wallet: 100 payouts among the other
// tests, 1,000 under make soak. Every payout is made once, and the wallet's nonces have no gap.
func TestSoakPayoutsByFourProcesses(t *testing.T) {
	const processes = 4

	payouts := raced.Fewer(100)
	if os.Getenv("SOAKTIME") != "" {
		payouts = 1000
	}

	anvil := testenv.Anvil(t, testenv.AnvilOptions{SlotsInAnEpoch: 1, Args: []string{"--no-mining"}})
	dsn := testenv.Postgres(t)
	began := time.Now()
	now := func() time.Time { return began.Add(speed * time.Since(began)) }
	w := ethereum.New(t, ethereum.Config{
		URL:      anvil.URL,
		ChainID:  anvil.ChainID,
		Store:    openPostgres(t, dsn, true),
		Process:  "the one that looks",
		Now:      now,
		Settings: account.Settings{PayoutsPerHour: payouts},
	})
	w.Fund(coin(10_000))

	var children []*child
	for i := range processes {
		children = append(children, start(t, orders{
			Do:        "serve",
			URL:       anvil.URL,
			AccountID: w.Account.ID,
			Postgres:  dsn,
			Name:      fmt.Sprintf("process %d", i),
			Began:     began,
			Payouts:   payouts / processes,
		}))
	}

	audits := 0
	all := func() (confirmed []payout.Payout) {
		confirmed, err := internal.Of(w.Engine).Store().Payouts(
			t.Context(),
			payout.Filter{Owner: w.Owner, Statuses: []payout.Status{payout.Confirmed}, Limit: payouts},
		)
		w.Must(err)

		return confirmed
	}

	blocks := time.NewTicker(100 * time.Millisecond)
	defer blocks.Stop()

	deadline := time.Now().Add(10 * time.Minute)
	for n := 0; w.Nonce(w.Master) < uint64(payouts) || len(all()) < payouts; n++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d payouts are confirmed; not yet:\n%s", len(all()), unpaid(t, w, payouts))
		}

		<-blocks.C
		w.Call(nil, "evm_setNextBlockTimestamp", now().Unix())
		w.Mine(1)

		if n%50 == 25 {
			a, err := w.Engine.Audit(t.Context())
			w.Must(err)

			for _, d := range a.Differences() {
				t.Errorf("an audit during the work found %s: %s", d.Kind, d.Message)
			}

			audits++
		}
	}

	took := time.Since(began)

	for _, c := range children {
		w.Must(c.stdin.Close())
		c.done()
	}

	paidOnce(t, w, all())
	w.Follow()
	w.Clean()
	t.Logf(
		"%d payouts by %d processes of the system over PostgreSQL, each once, nonces without a gap, in "+
			"%s; %d audits meanwhile, all without a difference",
		payouts,
		processes,
		took.Round(time.Millisecond),
		audits,
	)
}

// paidOnce checks that payouts are the only transactions of the wallet: one transfer each, and no
// nonce left out.
func paidOnce(t *testing.T, w *ethereum.Harness, paid []payout.Payout) {
	t.Helper()

	var nonces []uint64

	for _, p := range paid {
		if got := w.Balance(p.Destination); got != p.Amount {
			t.Errorf("payout %s is of %s, and %s arrived", p.ID, p.Amount, got)
		}

		txs, err := internal.Of(w.Engine).Store().TransactionsOf(t.Context(), p.ID)
		w.Must(err)

		if len(txs) != 1 || txs[0].State != wallet.Confirmed {
			t.Fatalf("payout %s has the transactions %+v", p.ID, txs)
		}

		nonces = append(nonces, txs[0].Nonce)
	}

	slices.Sort(nonces)

	for i, n := range nonces {
		if n != uint64(i) {
			t.Fatalf("the nonces have a gap or a double at %d: %d", i, n)
		}
	}

	if used := w.Nonce(w.Master); used != uint64(len(paid)) {
		t.Errorf("the wallet made %d transactions for %d payouts", used, len(paid))
	}
}

// unpaid describes the payouts that are not confirmed, and what the wallet has for them.
func unpaid(t *testing.T, w *ethereum.Harness, limit int) string {
	t.Helper()

	payouts, err := internal.Of(w.Engine).Store().Payouts(
		t.Context(),
		payout.Filter{Owner: w.Owner, Limit: limit},
	)
	w.Must(err)

	var text strings.Builder

	for _, p := range payouts {
		if p.Status == payout.Confirmed {
			continue
		}

		fmt.Fprintf(&text, "%s is %s %s %s\n", p.ID, p.Status, p.FailureCode, p.FailureMessage)

		txs, err := internal.Of(w.Engine).Store().TransactionsOf(t.Context(), p.ID)
		w.Must(err)

		for _, tx := range txs {
			fmt.Fprintf(
				&text,
				"  %s: nonce %d, %d attempts, state %v, in block %d, failure %q\n",
				tx.ID,
				tx.Nonce,
				len(tx.Attempts),
				tx.State,
				tx.Block.Height,
				tx.Failure,
			)
		}
	}

	return text.String()
}
