//go:build unix

package moneyout_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
)

// realNode is a network of a real node, with money of its own.
type realNode struct {
	asset  string
	amount chain.Amount // of a payout, in base units
	driver func(t *testing.T) payments.ChainDriver
	// fund gives an address a hundred payouts; mine makes a block.
	fund func(t *testing.T, to chain.Address)
	mine func(t *testing.T)
	// stranger is a new address, and held what the node says an address holds.
	stranger func(t *testing.T) string
	held     func(t *testing.T, of string) chain.Amount
	// forget leaves the node the blocks from a height on, as if it had been restored; nil where it cannot.
	forget func(t *testing.T, below uint64)
}

// realHarness is an engine over a real node and a database that can be restored.
type realHarness struct {
	realNode
	t       *testing.T
	store   payments.Store
	engine  *payments.Engine
	slug    string
	ahead   time.Duration
	account account.Account
	owner   event.Owner
}

// patience is how long a condition on a real node may take.
const patience = 60 * time.Second

// reopen has a process run over a database.
func (w *realHarness) reopen(from database) {
	w.t.Helper()

	if w.store != nil {
		w.must(w.store.Close())
	}

	w.store = from.open(w.t)
	driver := w.driver(w.t)
	w.slug = driver.Network().Slug

	keys, err := hdkey.New(testenv.WellKnownDevMnemonic, "")
	w.must(err)

	prices, err := rate.NewFixed(
		map[string]string{
			"ETH/USD":  "2000",
			"BTC/USD":  "60000",
			"TRX/USD":  "0.25",
			"SOL/USD":  "150",
			"USDT/USD": "1",
		},
		time.Minute, w.now,
	)
	w.must(err)

	log := io.Discard
	if testing.Verbose() {
		log = w.t.Output()
	}

	w.engine, err = payments.New(payments.Config{
		Store:     w.store,
		Drivers:   []payments.ChainDriver{driver},
		Signer:    keys,
		Rates:     prices,
		BaseURL:   "https://pay.example.com",
		SecretKey: bytes.Repeat([]byte{7}, 32),
		Now:       w.now,
		Log:       slog.New(slog.NewTextHandler(log, nil)),
	})
	w.must(err)
}

func (w *realHarness) must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatal(err)
	}
}

// begin makes a merchant with money in the wallet.
func (w *realHarness) begin() {
	w.t.Helper()

	var err error

	w.account, err = w.engine.Accounts.CreateAccount(w.t.Context(), account.Settings{Name: "Corner Shop"})
	w.must(err)

	w.owner = event.Owner{AccountID: w.account.ID}
	master, err := internal.Of(w.engine).Transactions.MasterWallet(w.t.Context(), w.slug, w.account.Index)
	w.must(err)
	w.turn() // the network is followed
	w.fund(w.t, master.Address)
	w.until("the wallet's balance is known", func() bool {
		w.must(internal.Of(w.engine).Transactions.RefreshBalances(w.t.Context(), w.slug))

		held, err := w.engine.Payouts.Balances(w.t.Context(), w.owner)
		w.must(err)

		return slices.ContainsFunc(held, func(b wallet.Balance) bool { return w.amount.Less(b.OnChain) })
	})
}

// until has the engine do all that is due, and makes a block at each turn, until the condition holds.
func (w *realHarness) until(what string, done func() bool) {
	w.t.Helper()

	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		w.turn()

		if done() {
			return
		}
	}

	w.t.Fatalf("never came true: %s", what)
}

// now is ahead of the time by a second for each turn, so that the heartbeat of a process that is gone stands still
// for long enough within a few turns.
func (w *realHarness) now() time.Time { return time.Now().Add(w.ahead) }

// turn makes a block and has the engine do what is due.
func (w *realHarness) turn() {
	w.t.Helper()
	w.mine(w.t)

	w.ahead += time.Second

	for range 50 {
		did, err := w.engine.Step(w.t.Context())
		if err != nil {
			w.t.Logf("Step: %v", err)
		}

		if !did || err != nil {
			return
		}
	}
}

func (w *realHarness) pay(to string) payout.Payout {
	w.t.Helper()

	p, err := w.engine.Payouts.Create(w.t.Context(), payout.Params{
		Owner:       w.owner,
		Network:     w.slug,
		Asset:       w.asset,
		Amount:      w.amount,
		Destination: to,
		RequestedBy: payout.Requester{Type: "user", ID: "test"},
	})
	w.must(err)

	return p
}

func (w *realHarness) get(id string) payout.Payout {
	w.t.Helper()

	p, err := w.engine.Payouts.Get(w.t.Context(), w.owner, id)
	w.must(err)

	return p
}

// confirmed waits until a payout is, and checks that its destination has its amount once.
func (w *realHarness) confirmed(id string) (p payout.Payout) {
	w.t.Helper()
	w.until("payout "+id+" is confirmed", func() bool {
		if p = w.get(id); p.Status == payout.Failed {
			w.t.Fatalf("payout %s failed: %s", id, p.FailureCode)
		}

		return p.Status == payout.Confirmed
	})

	if got := w.held(w.t, string(p.Destination)); got != p.Amount {
		w.t.Errorf("payout %s of %s is confirmed, %s arrived", id, p.Amount, got)
	}

	return p
}

// frozenBy waits until Health names a frozen wallet, and returns the transaction that froze it.
func (w *realHarness) frozenBy() (hash string) {
	w.t.Helper()
	w.until("Health names a frozen wallet", func() bool {
		h, err := w.engine.Health(w.t.Context())
		w.must(err)

		wallets := frozenOf(h)
		if len(wallets) == 0 {
			return false
		}

		hash = wallets[0].FrozenBy
		if wallets[0].Reason != "unrecorded_transaction" || wallets[0].AccountID != w.account.ID {
			w.t.Errorf("Health says %+v", wallets[0])
		}

		return true
	})

	return hash
}

// shown returns the transaction by which GET /v1/balances shows the wallet as frozen; "": it does not.
func (w *realHarness) shown() string {
	w.t.Helper()

	_, key, err := w.engine.Accounts.CreateKey(w.t.Context(), account.KeyParams{
		AccountID: w.account.ID,
		Scopes:    []account.Scope{account.BalancesRead},
	})
	w.must(err)

	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/v1/balances", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+key)

	answer := httptest.NewRecorder()
	httpapi.Handler(w.engine, nil).ServeHTTP(answer, r)

	var body struct {
		Data []struct {
			Frozen *struct {
				TxHash string `json:"tx_hash"`
			}
		}
	}
	w.must(json.Unmarshal(answer.Body.Bytes(), &body))

	if len(body.Data) == 0 {
		w.t.Fatalf("GET /v1/balances: %d %s", answer.Code, answer.Body)
	}

	if body.Data[0].Frozen == nil {
		return ""
	}

	return body.Data[0].Frozen.TxHash
}

// differences returns the kinds of what an audit finds.
func (w *realHarness) differences() (found []audit.Kind) {
	w.t.Helper()

	report, err := w.engine.Audit(w.t.Context())
	w.must(err)

	for _, d := range report.Differences() {
		found = append(found, d.Kind)
	}

	return found
}

// restoredOn plays the whole scenario: a payout waits, the records are copied, it is paid, the copy is restored.
// The wallet is frozen, named, acknowledged and goes on, and the payout was paid once.
//
// copied returns how to open the copy, which lacks what is stored after it was made.
func restoredOn(t *testing.T, node realNode, from database, copied func(t *testing.T) func() database) {
	t.Helper()

	w := &realHarness{realNode: node, t: t}

	w.reopen(from)
	defer func() { w.must(w.store.Close()) }()

	w.begin()
	w.confirmed(w.pay(w.stranger(t)).ID)

	p := w.pay(w.stranger(t))
	restored := copied(t)

	paid := w.confirmed(p.ID)

	w.reopen(restored())

	if got := w.get(p.ID); got.Status != payout.Pending {
		t.Fatalf("the copy has the payout as %s", got.Status)
	}

	// Frozen, and named.
	if by := w.frozenBy(); by != paid.TxHash {
		t.Errorf("frozen by %s, want %s", by, paid.TxHash)
	}

	if by := w.shown(); by != paid.TxHash {
		t.Errorf("GET /v1/balances shows it as frozen by %q", by)
	}

	if found := w.differences(); len(found) != 1 || found[0] != audit.ForeignTransaction {
		t.Errorf("the audit finds %v", found)
	}

	next := w.pay(w.stranger(t))

	for range 20 { // blocks
		w.turn()
	}

	for _, id := range []string{p.ID, next.ID} {
		if got := w.get(id); got.Status != payout.Pending {
			t.Errorf("payout %s of a frozen wallet is %s (%s)", id, got.Status, got.FailureCode)
		}
	}

	// Acknowledged.
	w.must(w.engine.Acknowledge(t.Context(), w.slug, paid.TxHash, p.ID))

	if got := w.confirmed(p.ID); got.TxHash != paid.TxHash {
		t.Errorf("it is confirmed as %s, it was paid by %s", got.TxHash, paid.TxHash)
	}

	// It goes on, and everything was paid once.
	w.confirmed(next.ID)
	w.confirmed(p.ID)

	if by := w.shown(); by != "" {
		t.Errorf("it is still shown as frozen by %s", by)
	}

	if found := w.differences(); len(found) != 0 {
		t.Errorf("in the end the audit finds %v", found)
	}
}

// byDump copies a database by its own backup: SQLite's VACUUM INTO, or pg_dump and pg_restore.
func byDump(from database) func(t *testing.T) func() database {
	return func(t *testing.T) func() database {
		t.Helper()

		dumped := from.dump(t)

		return func() database { return dumped }
	}
}

// A backup that is older than a payout, restored after it was paid, on the node of each family of networks.
func TestRestoredBackupOnNodes(t *testing.T) {
	raced.Skip(t) // an engine does one step at a time

	for name, start := range map[string]func(t *testing.T) realNode{
		"anvil":             anvilNode,
		"bitcoind":          bitcoindNode,
		"Solana by block":   solanaByBlock,
		"Solana by address": solanaByAddress,
		"Tron":              tronNode,
	} {
		t.Run(name, func(t *testing.T) {
			db := sqliteAt(filepath.Join(t.TempDir(), "payments.db"))
			restoredOn(t, start(t), db, byDump(db))
		})
	}

	t.Run("anvil, PostgreSQL", func(t *testing.T) {
		db := postgresAt(testenv.Postgres(t))
		restoredOn(t, anvilNode(t), db, byDump(db))
	})
}

// A replica that lagged is promoted: it lacks that a payout was paid.
func TestPromotedReplicaOnAnvil(t *testing.T) {
	dsn := testenv.Postgres(t)
	restoredOn(t, anvilNode(t), postgresAt(dsn), func(t *testing.T) func() database {
		t.Helper()

		replica := testenv.FollowPostgres(t, dsn)
		replica.Detach(t)

		return func() database { return postgresAt(replica.Promote(t)) }
	})
}
