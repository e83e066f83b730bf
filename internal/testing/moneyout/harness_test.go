// Package moneyout_test plays the scenarios of money out through the whole engine: payouts, refunds
// and releases over the store in memory and a simulated network, in fake time, and a few of them
// over a real Ethereum node.
//
// Nothing here is imported; the package exists so that the scenarios can use everything from the engine down.
package moneyout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

const network = "simnet"

func coin(n uint64) chain.Amount    { return chain.Pow10(18).Mul(n) }
func milli(n uint64) chain.Amount   { return chain.Pow10(15).Mul(n) }
func dollars(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

// connection is a process's connection to the store, which counts its updates.
type connection struct {
	store.Store
	process *crashtest.Process
}

func (c connection) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	return c.process.Do("update", func() error { return c.Store.Update(ctx, f) })
}

// harness is a network, a store and what outlives a process, in fake time; engine is one process over them.
type harness struct {
	t       *testing.T
	chain   *sim.Chain
	store   store.Store        // as it is without a process
	open    func() store.Store // what each process opens for itself; nil: store
	process crashtest.Process
	signer  chain.Signer
	change  func(*payments.Config)
	policy  func(chain.SignRequest) error
	fee     chain.Address
	account account.Account
	owner   event.Owner
	engine  *payments.Engine
	boots   int
}

// inTime runs a scenario in a bubble of fake time.
func inTime(
	t *testing.T,
	settings account.Settings,
	config sim.Config,
	scenario func(t *testing.T, w *harness),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { scenario(t, newHarness(t, settings, config)) })
}

func newHarness(t *testing.T, settings account.Settings, config sim.Config) *harness {
	t.Helper()
	return newHarnessOver(t, memory.New(), settings, config, nil)
}

func newHarnessOver(
	t *testing.T,
	over store.Store,
	settings account.Settings,
	config sim.Config,
	change func(*payments.Config),
) *harness {
	t.Helper()
	w := &harness{t: t, chain: sim.New(config), store: over, change: change}
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if w.policy != nil {
			return w.policy(r)
		}

		return nil
	})
	w.fee = w.chain.NewAddress()
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error { return w.process.Call(string(m)) })
	w.engine = w.boot()

	if settings.Name == "" {
		settings.Name = "Corner Shop"
	}

	if settings.PayoutsPerHour == 0 {
		settings.PayoutsPerHour = 100_000
	}

	a, err := w.engine.Accounts.CreateAccount(t.Context(), settings)
	w.must(err)
	w.account, w.owner = a, event.Owner{AccountID: a.ID}
	_, err = w.read(t.Context(), network) // from the first block, so that deep forks find their common one
	w.must(err)
	w.chain.Mine(10)

	return w
}

// boot starts a process over what is stored.
func (w *harness) boot() *payments.Engine {
	w.t.Helper()
	w.process.Next()
	w.boots++
	prices, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2000", "ETH/EUR": "1800", "USDC/USD": "1", "USDC/EUR": "0.9"},
		time.Minute, nil,
	)
	w.must(err)

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() && w.boots < 3 {
		log = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}

	over := w.store
	if w.open != nil {
		over = w.open()
	}

	c := payments.Config{
		Store:        connection{over, &w.process},
		Drivers:      []payments.ChainDriver{w.chain},
		Signer:       w.signer,
		Rates:        prices,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: map[string]string{network: string(w.fee)},
		Log:          log,
	}
	if w.change != nil {
		w.change(&c)
	}

	engine, err := payments.New(c)
	w.must(err)

	return engine
}

func (w *harness) must(err error) {
	w.t.Helper()

	if err != nil {
		w.t.Fatalf("unexpected error: %v", err)
	}
}

func (w *harness) master() chain.Address {
	w.t.Helper()
	p, err := internal.Of(w.engine).Transactions.MasterWallet(w.t.Context(), network, w.account.Index)
	w.must(err)

	return p.Address
}

// fund gives the master wallet money from elsewhere.
func (w *harness) fund(coins, usd uint64) {
	w.chain.Fund(w.master(), "SIM", coin(coins))
	w.chain.Fund(w.master(), "USDX", dollars(usd))
}

// pay asks for a payout to a new address.
func (w *harness) pay(symbol string, amount chain.Amount) payout.Payout {
	w.t.Helper()
	p, err := w.engine.Payouts.Create(w.t.Context(), w.params(symbol, amount))
	w.must(err)

	return p
}

func (w *harness) params(symbol string, amount chain.Amount) payout.Params {
	return payout.Params{
		Owner:       w.owner,
		Network:     network,
		Asset:       symbol,
		Amount:      amount,
		Destination: string(w.chain.NewAddress()),
		RequestedBy: payout.Requester{Type: "user", ID: "test"},
	}
}

func (w *harness) get(id string) payout.Payout {
	w.t.Helper()
	p, err := w.engine.Payouts.Get(w.t.Context(), w.owner, id)
	w.must(err)

	if p.NetworkFee != nil && p.Conflict.TxHash == "" && p.MaxNetworkFee.Less(*p.NetworkFee) {
		w.t.Fatalf("payout %s cost %s, more than its maximum %s", p.ID, p.NetworkFee, p.MaxNetworkFee)
	}

	return p
}

// work runs follower, planning and outbox until nothing is due now. A process that dies is replaced by another one.
func (w *harness) work() {
	w.t.Helper()

	for range 200 {
		var did bool

		for _, step := range []func(context.Context, string) (bool, error){
			w.read,
			internal.Of(w.engine).Sweeper.Step,
			internal.Of(w.engine).Transactions.Step,
		} {
			d, err := step(w.t.Context(), network)
			if w.process.Dead() {
				w.engine = w.boot()
				d, err = true, nil
			}

			w.must(err)

			did = did || d
		}

		if !did {
			return
		}
	}
}

// read reads a batch of blocks. A network that was stopped by a deep fork is resumed, as a person would; a
// node without an answer is asked again by the next turn. Its calls are not among those that a process dies
// at: how many they are depends on when its lease was prolonged last.
func (w *harness) read(ctx context.Context, network string) (did bool, err error) {
	w.process.Aside(func() { did, err = internal.Of(w.engine).Follow(ctx, network) })

	if errors.Is(err, fault.Stopped) {
		return true, w.engine.Resume(ctx, network)
	}

	if errors.Is(err, fault.Unavailable) {
		return false, nil
	}

	return did, err
}

// readAll has a process read the network up to the tip that its node shows.
func (w *harness) readAll(by *payments.Engine) {
	w.t.Helper()

	for range 100 {
		did, err := internal.Of(by).Follow(w.t.Context(), network)
		if errors.Is(err, fault.Stopped) {
			did, err = true, by.Resume(w.t.Context(), network)
		}

		w.must(err)

		if !did {
			return
		}
	}
}

// pass lets time pass, with one block at its end.
func (w *harness) pass(d time.Duration) {
	time.Sleep(d)
	w.chain.Mine(1)
}

// until works, block by block, until the condition holds.
func (w *harness) until(what string, done func() bool) {
	w.t.Helper()

	for range 2000 {
		w.work()

		if done() {
			return
		}

		w.pass(5 * time.Second)
	}

	w.t.Fatalf("never came true: %s", what)
}

// becomes waits for a payout's status.
func (w *harness) becomes(id string, status payout.Status) (p payout.Payout) {
	w.t.Helper()
	w.until("payout is "+string(status), func() bool { p = w.get(id); return p.Status == status })

	return p
}

// live runs whole engines, followers and all, with a block every 2 seconds, until the condition holds.
func (w *harness) live(what string, done func() bool, engines ...*payments.Engine) {
	w.t.Helper()

	if len(engines) == 0 {
		engines = []*payments.Engine{w.engine}
	}

	ctx, stop := context.WithCancel(w.t.Context())

	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			if err := e.Run(ctx); err != nil {
				w.t.Errorf("Run: %v", err)
			}
		})
	}

	defer wg.Wait()
	defer stop()

	for range 3000 {
		if done() {
			return
		}

		time.Sleep(2 * time.Second)
		w.chain.Mine(1)
	}

	w.t.Errorf("never came true: %s", what)
}

// countEvents counts the stored events of one type about one object.
func (w *harness) countEvents(t event.Type, objectID string) int {
	w.t.Helper()
	found, _, err := w.engine.Webhooks.ListEvents(
		w.t.Context(),
		event.Filter{Owner: w.owner, Types: []event.Type{t}, ObjectID: objectID, Limit: 100},
	)
	w.must(err)

	return len(found)
}

// arrived checks that a payout's destination holds exactly its amount, or nothing when it failed.
func (w *harness) arrived(p payout.Payout) {
	w.t.Helper()

	want := p.Amount
	if p.Status == payout.Failed {
		want = chain.Amount{}
	}

	w.check("what arrived of payout "+p.ID, w.chain.Balance(p.Destination, p.Asset), want)
}

func (w *harness) check(what string, got, want chain.Amount) {
	w.t.Helper()

	if got != want {
		w.t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// follow has a network that was followed before read up to its tip, as an audit compares what was read.
func (w *harness) follow() {
	w.t.Helper()

	tip := w.chain.Mine(1)
	if _, followed := w.cursor(); followed {
		w.live("the network is read", func() bool { at, _ := w.cursor(); return at >= tip.Height })
	}
}

func (w *harness) cursor() (height uint64, followed bool) {
	w.t.Helper()
	c, followed, err := internal.Of(w.engine).Store().Cursor(w.t.Context(), network)
	w.must(err)

	return c.At.Height, followed
}

// clean checks that an audit finds no difference, that the master wallet's money from elsewhere is
// what was put in, and that nothing is reserved any more.
func (w *harness) clean(coins, usd uint64) {
	w.t.Helper()
	w.follow()
	w.settled(coins, usd)
}

// settled is clean for a network that is not followed any further.
func (w *harness) settled(coins, usd uint64) {
	w.t.Helper()
	w.must(internal.Of(w.engine).Transactions.RefreshBalances(w.t.Context(), network))
	a, err := w.engine.Audit(w.t.Context())
	w.must(err)

	for _, d := range a.Differences() {
		w.t.Errorf("audit: %s: %s", d.Kind, d.Message)
	}

	if !a.Clean() {
		w.t.Errorf("the audit is not clean: %+v", a)
	}

	outside := map[string]chain.Amount{"SIM": coin(coins), "USDX": dollars(usd)}
	for _, m := range a.Networks[0].Wallets {
		w.check("money from elsewhere in "+m.Asset, m.Outside, outside[m.Asset])
		w.check("reserved in "+m.Asset, m.Reserved, chain.Amount{})
	}

	if len(a.Networks[0].Wallets) != 2 {
		w.t.Errorf("%d wallets were audited, want 2", len(a.Networks[0].Wallets))
	}
}
