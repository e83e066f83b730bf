//go:build unix

package moneyout_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// database is one that can be dumped and restored. open opens it as it is; dump copies it, and returns how to open the
// copy. Nothing is open meanwhile.
type database struct {
	open func(t *testing.T) payments.Store
	dump func(t *testing.T) database
}

// sqliteAt is a database in a file.
func sqliteAt(path string) database {
	return database{
		open: func(t *testing.T) payments.Store {
			t.Helper()

			db, err := sqlite.Open(path)
			if err != nil {
				t.Fatal(err)
			}

			return db
		},
		dump: func(t *testing.T) database {
			t.Helper()

			into := filepath.Join(t.TempDir(), "restored.db")

			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()

			if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", into); err != nil {
				t.Fatal(err)
			}

			return sqliteAt(into)
		},
	}
}

// postgresAt is a database of a server, which pg_dump dumps and pg_restore restores.
func postgresAt(dsn string) database {
	return database{
		open: func(t *testing.T) payments.Store {
			t.Helper()
			return openPostgres(t, dsn, true)
		},
		dump: func(t *testing.T) database {
			t.Helper()
			return postgresAt(testenv.DumpPostgres(t, dsn).Restore(t))
		},
	}
}

// onSQLite plays a scenario over SQLite, and under make soak over PostgreSQL too, where hours of passes take ten times
// as long. restore has a process run over the newest dump.
func onSQLite(
	t *testing.T,
	settings account.Settings,
	config sim.Config,
	scenario func(t *testing.T, w *harness, dump, restore func()),
) {
	t.Helper()

	if os.Getenv("SOAKTIME") != "" {
		overDatabases(t, settings, config, scenario)
		return
	}

	overEach(t, settings, config, scenario, map[string]func(t *testing.T) database{"SQLite": newSQLite})
}

// overDatabases plays a scenario over SQLite and PostgreSQL.
func overDatabases(
	t *testing.T,
	settings account.Settings,
	config sim.Config,
	scenario func(t *testing.T, w *harness, dump, restore func()),
) {
	t.Helper()

	overEach(t, settings, config, scenario, map[string]func(t *testing.T) database{
		"SQLite":     newSQLite,
		"PostgreSQL": func(t *testing.T) database { return postgresAt(testenv.Postgres(t)) },
	})
}

func newSQLite(t *testing.T) database {
	t.Helper()

	return sqliteAt(filepath.Join(t.TempDir(), "payments.db"))
}

// overEach plays a scenario over each of the databases.
func overEach(
	t *testing.T,
	settings account.Settings,
	config sim.Config,
	scenario func(t *testing.T, w *harness, dump, restore func()),
	databases map[string]func(t *testing.T) database,
) {
	t.Helper()
	raced.Skip(t) // an engine does one step at a time

	for name, make := range databases {
		t.Run(name, func(t *testing.T) {
			db := make(t)

			synctest.Test(t, func(t *testing.T) {
				w := newHarnessOver(t, db.open(t), settings, config, nil)
				defer func() { w.must(w.store.Close()) }()

				var dumped database

				reopen := func(from database) {
					w.store = from.open(t)
					w.engine = w.boot()
				}
				dump := func() {
					w.must(w.store.Close())

					dumped = db.dump(t)
					reopen(db)
				}
				restore := func() {
					w.must(w.store.Close())
					reopen(dumped)
				}

				scenario(t, w, dump, restore)
			})
		})
	}
}

// steps has the engine do all that is due, a minute and a block at a time, until the condition holds. It lives through
// hours in fewer turns than live.
func (w *harness) steps(what string, done func() bool) {
	w.t.Helper()

	for range 400 {
		for range 50 {
			did, err := w.engine.Step(w.t.Context())
			if err != nil && !errors.Is(err, fault.Unavailable) {
				w.t.Fatalf("Step: %v", err)
			}

			if !did || err != nil {
				break
			}
		}

		if done() {
			return
		}

		w.pass(time.Minute)
	}

	w.t.Fatalf("never came true: %s", what)
}

// idle lets hours pass while the engine works.
func (w *harness) idle(d time.Duration) {
	w.t.Helper()

	began := time.Now()

	w.steps("time passed", func() bool { return time.Since(began) >= d })
}

// frozen runs the engine until a wallet is frozen, and returns what Health says of it.
func (w *harness) frozen() (found health.Wallet) {
	w.t.Helper()
	w.steps("a wallet is frozen", func() bool {
		h, err := w.engine.Health(w.t.Context())
		w.must(err)

		wallets := frozenOf(h)
		if len(wallets) > 0 {
			found = wallets[0]
		}

		return len(wallets) > 0
	})

	return found
}

// thawed checks that no wallet is frozen.
func (w *harness) thawed() {
	w.t.Helper()

	h, err := w.engine.Health(w.t.Context())
	w.must(err)

	if wallets := frozenOf(h); len(wallets) > 0 {
		w.t.Errorf("still frozen: %+v", wallets)
	}
}

// shown returns what GET /v1/balances shows of the wallet's freeze.
func (w *harness) shown() (frozen struct {
	Reason string `json:"reason"`
	TxHash string `json:"tx_hash"`
	Since  string `json:"since"`
},
) {
	w.t.Helper()

	_, key, err := w.engine.Accounts.CreateKey(
		w.t.Context(),
		account.KeyParams{AccountID: w.account.ID, Scopes: []account.Scope{account.BalancesRead}},
	)
	w.must(err)

	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/v1/balances", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+key)

	answer := httptest.NewRecorder()
	httpapi.Handler(w.engine, nil).ServeHTTP(answer, r)

	var body struct {
		Data []struct {
			Frozen json.RawMessage `json:"frozen"`
		} `json:"data"`
	}

	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || len(body.Data) == 0 {
		w.t.Fatalf("GET /v1/balances: %d %s", answer.Code, answer.Body)
	}

	w.must(json.Unmarshal(body.Data[0].Frozen, &frozen))

	return frozen
}

// audited returns the kinds and transactions that an audit finds.
func (w *harness) audited() (found []string) {
	w.t.Helper()

	a, err := w.engine.Audit(w.t.Context())
	w.must(err)

	for _, d := range a.Differences() {
		hash := ""
		if len(d.Records) > 0 {
			hash = d.Records[0].TxHash
		}

		found = append(found, string(d.Kind)+" "+hash)
	}

	return found
}

// A backup from before a payout was sent is restored after it was: it is not sent again, a person says what happened,
// and the wallet goes on.
func TestRestoredBackupPaysOnce(t *testing.T) {
	overDatabases(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)
		p := w.pay("USDX", dollars(30))

		dump()

		paid := w.goesTo(p.ID, payout.Confirmed)

		restore()

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Fatalf("the dump has the payout as %s", got.Status)
		}

		frozen := w.frozen()
		if frozen.FrozenBy != paid.TxHash || frozen.Reason != "unrecorded_transaction" || !frozen.Frozen ||
			frozen.Address != string(
				w.master(),
			) || frozen.AccountID != w.owner.AccountID || frozen.Network != network {
			t.Errorf("Health says %+v, want the wallet frozen by %s", frozen, paid.TxHash)
		}

		if got := w.shown(); got.Reason != "unrecorded_transaction" || got.TxHash != paid.TxHash ||
			got.Since == "" {
			t.Errorf("/v1/balances shows %+v", got)
		}

		if got := w.audited(); len(got) != 1 || got[0] != string(audit.ForeignTransaction)+" "+paid.TxHash {
			t.Errorf("the audit finds %v", got)
		}

		// The payout that was paid waits, another one of the frozen wallet goes stale.
		other := w.goesTo(w.pay("USDX", dollars(31)).ID, payout.Failed)
		if other.FailureCode != "stale" {
			t.Errorf("a payout of the frozen wallet failed as %s", other.FailureCode)
		}

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Errorf("the payout that was paid is %s (%s)", got.Status, got.FailureCode)
		}

		ack := func(as ...string) error { return w.engine.Acknowledge(t.Context(), network, paid.TxHash, as...) }
		next := w.pay("USDX", dollars(5))
		wantFault(t, ack(next.ID), fault.State, "transaction_mismatch")
		wantFault(t, ack("nothing"), fault.Invalid, "acknowledgement_invalid")
		wantFault(t, ack(), fault.Invalid, "acknowledgement_invalid")
		wantFault(
			t,
			w.engine.Acknowledge(t.Context(), network, "other", payments.Foreign),
			fault.NotFound,
			"transaction_unknown",
		)
		w.must(ack(p.ID))
		w.must(ack(p.ID))
		wantFault(t, ack(payments.Foreign), fault.State, "transaction_acknowledged")

		if p = w.get(p.ID); p.Status != payout.Confirmed || p.TxHash != paid.TxHash ||
			*p.NetworkFee != *paid.NetworkFee || w.countEvents(event.PayoutBroadcast, p.ID) != 1 ||
			w.countEvents(event.PayoutConfirmed, p.ID) != 1 {
			t.Errorf("acknowledged as %+v", p)
		}

		w.thawed()

		if got := w.shown(); got.Reason != "" {
			t.Errorf("/v1/balances shows %+v after all", got)
		}

		w.arrived(w.goesTo(next.ID, payout.Confirmed))
		w.arrived(p)
		w.once(p)
		w.clean(1, 100)
	})
}

// A fork takes the block of a transaction that was acknowledged, whose bytes are not on record, and no pool has them:
// the payout is signed at their nonce, and paid once.
func TestAcknowledgedTransactionLeavesTheChain(t *testing.T) {
	deep := sim.Config{NoFinality: true}
	onSQLite(t, account.Settings{}, deep, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)
		p := w.pay("USDX", dollars(30))

		dump()

		before := w.chain.Mine(1).Height
		paid := w.goesTo(p.ID, payout.Confirmed)

		restore()
		w.frozen()
		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, p.ID))
		w.thawed()

		tip := w.chain.Mine(1).Height
		w.chain.Fork(sim.Fork{Depth: tip - before, Length: tip - before + 1, Fate: sim.DropOrphan})
		w.steps("the fork is seen", func() bool { return w.get(p.ID).Status != payout.Confirmed })

		p = w.goesTo(p.ID, payout.Confirmed)
		w.arrived(p)
		w.once(p)
		w.clean(1, 100)
	})
}

// What an acknowledged transaction uses up is read from its block: a row that says something else would let the payout
// be signed once more with that, at any time.
func TestAcknowledgedPayoutUsesUpWhatItsBlockSays(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)
		p := w.pay("USDX", dollars(30))

		dump()

		paid := w.goesTo(p.ID, payout.Confirmed)

		restore()
		w.frozen()

		w.must(w.engine.Update(t.Context(), func(ctx context.Context, tx payments.Tx) error {
			rows, err := tx.OutgoingByHash(ctx, network, []string{paid.TxHash})
			if err != nil {
				return err
			}

			forged := rows[0]
			forged.Key, forged.Version = "forged", 0

			if err := tx.DeleteOutgoing(ctx, network, rows[0].Key); err != nil {
				return err
			}

			return tx.PutOutgoing(ctx, &forged)
		}))
		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, p.ID))

		want := chaindata.SpendKey(chain.Spend{Sender: w.master(), Nonce: 1})
		if got := w.get(p.ID).Signing.Spent; len(got) != 1 || got[0] != want {
			t.Errorf("the payout uses up %q, want %q", got, want)
		}
	})
}

// goesTo waits for a payout's status, while the engine does all its work.
func (w *harness) goesTo(id string, status payout.Status) (p payout.Payout) {
	w.t.Helper()
	w.steps("payout is "+string(status), func() bool { p = w.get(id); return p.Status == status })

	return p
}

// The records have bytes that were replaced after the dump: the payout was paid by others and does not fail.
func TestRestoredBackupBeforeAReplacement(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 0)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		p := w.pay("SIM", milli(30))
		w.work()

		first := w.get(p.ID).TxHash

		dump()
		w.chain.SetFee(3*sim.DefaultBaseFee, sim.DefaultPriority)

		paid := w.goesTo(p.ID, payout.Confirmed)
		if first == "" || paid.TxHash == first {
			t.Fatalf("%q was not replaced", first)
		}

		restore()
		w.frozen()

		w.idle(time.Hour)

		if got := w.get(p.ID); got.Status != payout.Processing {
			t.Errorf("what was paid by a replacement is %s (%s)", got.Status, got.FailureCode)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, p.ID))

		if p = w.get(p.ID); p.Status != payout.Confirmed || p.TxHash != paid.TxHash {
			t.Errorf("acknowledged as %+v", p)
		}

		w.thawed()
		w.arrived(p)
		w.once(p)
		w.clean(1, 0)
	})
}

// A replica that lagged is promoted: it lacks that one payout was paid, and that another one was ever made.
func TestPromotedReplicaThatLagged(t *testing.T) {
	overDatabases(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })

		known := w.goesTo(w.pay("USDX", dollars(1)).ID, payout.Confirmed)
		pending := w.pay("USDX", dollars(2))

		dump()

		paid := w.goesTo(pending.ID, payout.Confirmed)
		order := w.params("USDX", dollars(3))
		made, err := w.engine.Payouts.Create(t.Context(), order)
		w.must(err)

		lost := w.goesTo(made.ID, payout.Confirmed)

		restore()

		if by := w.frozen().FrozenBy; by != paid.TxHash {
			t.Errorf("frozen by %s", by)
		}

		w.follow()
		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, pending.ID))

		if by := w.frozen().FrozenBy; by != lost.TxHash {
			t.Errorf("then frozen by %s, want %s", by, lost.TxHash)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, lost.TxHash, payments.Foreign))
		w.thawed()

		// Who asked for it asks again: it waits, however long, until a person says that it was paid.
		again, err := w.engine.Payouts.Create(t.Context(), order)
		w.must(err)

		other := w.goesTo(w.pay("USDX", dollars(4)).ID, payout.Confirmed)
		w.idle(3 * time.Hour)

		if got := w.get(again.ID); got.Status != payout.Pending {
			t.Errorf("a payout that equals one that was lost is %s (%s)", got.Status, got.FailureCode)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, lost.TxHash, again.ID))

		for _, id := range []string{known.ID, pending.ID, again.ID, other.ID} {
			p := w.get(id)
			if p.Status != payout.Confirmed {
				t.Errorf("payout of %s is %s", p.Amount, p.Status)
			}

			w.arrived(p)
			w.once(p)
		}

		w.clean(1, 100)
	})
}

// A deposit was swept after the dump: its settlement stays pending until a person says that it was.
func TestRestoredBackupSweepsOnce(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	overDatabases(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		s := w.deposited("SIM", milli(500))

		dump()
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))

		swept := func() settlement.Settlement { return w.settlements()[0] }

		w.steps("it is released", func() bool { return swept().Status == settlement.Released })

		before := swept()

		restore()

		if frozen := w.frozen(); frozen.FrozenBy != before.FeeTx ||
			frozen.Address != string(s.Deposit.Address) {
			t.Errorf("frozen is %+v, want the deposit address by %s", frozen, before.FeeTx)
		}

		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))
		w.idle(time.Hour)

		if got := swept(); got.Status != settlement.Pending {
			t.Errorf("it is %s (%s)", got.Status, got.Reason)
		}

		wantFault(
			t,
			w.engine.Acknowledge(t.Context(), network, before.FeeTx, s.ID),
			fault.State,
			"transaction_mismatch",
		)
		w.must(w.engine.Acknowledge(t.Context(), network, before.FeeTx, payments.Foreign))
		w.must(w.engine.Acknowledge(t.Context(), network, before.SweepTx, s.ID))
		w.must(w.engine.Acknowledge(t.Context(), network, before.SweepTx, s.ID))

		after := swept()
		if after.Status != settlement.Released || after.SweepTx != before.SweepTx ||
			*after.NetReleased != *before.NetReleased || w.countEvents(event.SettlementReleased, s.ID) != 1 {
			t.Errorf("released as %+v, before the restore as %+v", after, before)
		}

		w.thawed()
		w.clean(0, 0)
	})
}

// A sweep that lost records made is taken for foreign: the settlement that it paid waits, and is named later.
func TestSweepThatWasTakenForForeign(t *testing.T) {
	settings := account.Settings{ManualRelease: true}
	onSQLite(t, settings, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 0)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		w.goesTo(w.pay("SIM", milli(1)).ID, payout.Confirmed)

		s := w.deposited("USDX", dollars(400))

		dump()
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))

		swept := func() settlement.Settlement { return w.settlements()[0] }

		w.steps("it is released", func() bool { return swept().Status == settlement.Released })

		before := swept()

		restore()
		w.idle(time.Minute)

		for _, hash := range []string{before.TopUpTx, before.FeeTx, before.SweepTx} {
			if hash != "" {
				w.must(w.engine.Acknowledge(t.Context(), network, hash, payments.Foreign))
			}
		}

		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))
		w.idle(time.Hour)

		if got := swept(); got.Status != settlement.Pending {
			t.Fatalf("it is %s (%s)", got.Status, got.Reason)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, before.SweepTx, s.ID))

		after := swept()
		if after.Status != settlement.Released || after.SweepTx != before.SweepTx {
			t.Errorf("released as %+v, before the restore as %+v", after, before)
		}

		if got := w.audited(); len(got) != 0 {
			t.Errorf("the audit finds %v", got)
		}
	})
}

// A raised Config.Epoch freezes every wallet although the chain shows nothing: an older payout waits, a later one goes
// stale, numbers are skipped, until a person has compared.
func TestEpochHoldsUntilCompared(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		older := w.pay("USDX", dollars(2))

		dump()

		w.change = func(c *payments.Config) { c.Epoch = 1 }

		restore()

		if frozen := w.frozen(); frozen.Reason != "epoch" || frozen.FrozenBy != "" {
			t.Errorf("frozen is %+v", frozen)
		}

		if got := w.shown(); got.Reason != "epoch" || got.TxHash != "" {
			t.Errorf("/v1/balances shows %+v", got)
		}

		w.pass(time.Minute)

		later := w.goesTo(w.pay("USDX", dollars(3)).ID, payout.Failed)
		if later.FailureCode != "stale" {
			t.Errorf("a later payout failed as %s", later.FailureCode)
		}

		if got := w.get(older.ID); got.Status != payout.Pending {
			t.Errorf("the older payout is %s (%s)", got.Status, got.FailureCode)
		}

		_, err := w.engine.Payouts.Cancel(t.Context(), w.owner, older.ID)
		wantFault(t, err, fault.State, "payout_awaiting_review")

		a, err := w.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Another"})
		w.must(err)

		if a.Index < 1<<20 {
			t.Errorf("a new account has index %d", a.Index)
		}

		// A process of the same epoch begins it no second time.
		w.engine = w.boot()
		w.must(w.engine.Unfreeze(t.Context(), network, ""))
		w.must(w.engine.Unfreeze(t.Context(), network, w.owner.AccountID))
		w.thawed()
		w.engine = w.boot()

		next := w.goesTo(w.pay("USDX", dollars(4)).ID, payout.Confirmed)
		w.arrived(next)

		if got := w.get(older.ID); got.Status != payout.Failed || got.FailureCode != "stale" {
			t.Errorf("the older payout is %s (%s) after hours", got.Status, got.FailureCode)
		}

		w.thawed()
	})
}

// Nothing is signed before a process has read the network up to where it was when it began: here the node shows the
// transaction that the records lack, and its blocks only later.
func TestNothingIsSignedBeforeTheNetworkIsRead(t *testing.T) {
	onSQLite(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness, dump, restore func()) {
		w.fund(1, 100)
		w.steps("the wallet is used", func() bool { _, followed := w.cursor(); return followed })
		p := w.pay("USDX", dollars(2))

		dump()

		paid := w.goesTo(p.ID, payout.Confirmed)

		restore()
		w.chain.FailNext(sim.MethodBlocks, sim.Unavailable(), 5)
		w.work() // nothing but the wallet's nonce shows it

		if got := w.get(p.ID); got.Status != payout.Pending {
			t.Errorf("it is %s before the network is read", got.Status)
		}

		if by := w.frozen().FrozenBy; by != paid.TxHash {
			t.Errorf("frozen by %s", by)
		}

		w.must(w.engine.Acknowledge(t.Context(), network, paid.TxHash, p.ID))
		w.once(w.get(p.ID))
	})
}
