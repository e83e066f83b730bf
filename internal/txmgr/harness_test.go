package txmgr_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

const network = "simnet"

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owner = event.Owner{AccountID: "00000000000000000000aaaa"}
)

func coin(n uint64) chain.Amount    { return chain.Pow10(18).Mul(n) }
func milli(n uint64) chain.Amount   { return chain.Pow10(15).Mul(n) }
func dollars(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

// harness is a network, a store and what outlives a process. outbox is one process over them.
type harness struct {
	t      *testing.T
	now    time.Time
	chain  *sim.Chain
	store  store.Store
	moves  []wallet.Transaction // committed TransactionMoved events
	policy func(chain.SignRequest) error
	signer *sim.Signer
	outbox *txmgr.Manager
	// process counts updates and driver calls, and dies at one of them.
	process   crashtest.Process
	processes int
	forgetful bool   // the node knows no transaction
	answered  func() // is called when the rows of a transaction were read
	afterKeys func() // is called when the rows of spends were read
	follower  *follow.Follower
	reading   bool                // the follower calls the node, not the process
	reader    func()              // reads the network instead of follower, where blocks are scripted
	driver    func() chain.Driver // what a process talks to; nil: the simulated network
	script    chain.Ref           // the last scripted block; zero: none
	// offers returns how many coins the last Build for a destination could choose from; see outputs.
	offers func(to chain.Address) int
}

func newHarness(t *testing.T, config sim.Config) *harness {
	t.Helper()
	w := &harness{t: t, now: start, store: memory.New()}
	config.Clock = func() time.Time { return w.now }
	w.chain = sim.New(config)
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if w.policy != nil {
			return w.policy(r)
		}

		return nil
	})
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if w.reading {
			return nil
		}

		return w.process.Call(string(m))
	})
	w.chain.Fund(w.master().Address, "SIM", coin(100))
	w.chain.Fund(w.master().Address, "USDX", dollars(1000))
	w.chain.Mine(10)
	w.outbox = w.boot("one")
	w.startFollower(w.chain)
	w.read()

	return w
}

func (w *harness) startFollower(driver chain.Driver) {
	w.t.Helper()

	var err error

	w.follower, err = follow.New(follow.Config{
		Driver:  driver,
		Handler: handler{w},
		DB:      scanDB{w.store},
		Owner:   "follower",
		// deep forks find their common block
		FirstAddress: longAgo,
		Now:          func() time.Time { return w.now },
		Log:          slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

type scanDB struct{ store.Store }

func (d scanDB) Update(ctx context.Context, f func(ctx context.Context, tx scan.Tx) error) error {
	return d.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return f(ctx, tx) })
}

// handler stores what the blocks hold of our transactions, as the engine does.
type handler struct{ w *harness }

func (h handler) Apply(ctx context.Context, b follow.Batch) error {
	return h.w.update(ctx, func(ctx context.Context, tx wallet.Tx) error {
		if _, err := b.Advance(ctx, tx.(*listening).Tx); err != nil {
			return err
		}

		return h.w.record(ctx, tx, b)
	})
}

// record stores what a batch took from our wallets, and applies its fork.
func (w *harness) record(ctx context.Context, tx wallet.Tx, b follow.Batch) error {
	if err := w.outbox.RecordOutgoingTx(ctx, tx, b, w.parties); err != nil {
		return err
	}

	if err := w.outbox.ApplyForkTx(ctx, tx, b); err != nil {
		return err
	}

	return w.outbox.RewindBalancesTx(ctx, tx, b)
}

func (w *harness) parties(
	_ context.Context,
	addresses []chain.Address,
) (map[chain.Address]chain.Party, error) {
	found := map[chain.Address]chain.Party{}

	for _, a := range addresses {
		for _, party := range []chain.Party{w.master(), w.deposit()} {
			if a == party.Address {
				found[a] = party
			}
		}
	}

	return found, nil
}

// read reads the network up to the tip that the node shows.
func (w *harness) read() {
	w.t.Helper()

	if w.reader != nil {
		w.reader()
		return
	}

	if w.follower == nil {
		return
	}

	w.reading = true
	defer func() { w.reading = false }()

	for range 100 {
		did, err := w.follower.Step(w.t.Context())
		if errors.Is(err, fault.Stopped) { // deeper than final: a person has to look into it
			did = true
			_, err = follow.Resume(w.t.Context(), scanDB{w.store}, w.follower.Driver, w.now)
		}

		if err != nil && !errors.Is(err, fault.Unavailable) {
			w.t.Fatalf("follower: %v", err)
		}

		if !did {
			return
		}
	}
}

// scripted stores blocks of a network whose blocks are made up; the last one is the cursor.
func (w *harness) scripted(b follow.Batch) {
	w.t.Helper()

	b.Network = w.chain.Network()
	w.setScript(b)

	if err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		if err := moveCursor(ctx, tx.(*listening).Tx, b); err != nil {
			return err
		}

		return w.record(ctx, tx, b)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// setScript has the node show the last block of a batch.
func (w *harness) setScript(b follow.Batch) {
	if len(b.Blocks) > 0 {
		w.script = b.Blocks[len(b.Blocks)-1].Ref
	}
}

// moveCursor moves the cursor to the last block of a batch.
func moveCursor(ctx context.Context, tx store.Tx, b follow.Batch) error {
	if len(b.Blocks) == 0 {
		return nil
	}

	c, _, err := tx.Cursor(ctx, network)
	if err != nil {
		return err
	}

	c.Network, c.At = network, b.Blocks[len(b.Blocks)-1].Ref
	c.Final, c.Safe, c.Recent = chain.Ref{}, chain.Ref{}, nil

	return tx.PutCursor(ctx, &c)
}

// buried returns a block and the two on top of it that make it final.
func buried(b chain.Block, branch string) follow.Batch {
	return follow.Batch{Blocks: []chain.Block{
		b,
		block(b.Height+1, branch, nil),
		block(b.Height+2, branch, nil),
	}}
}

func (w *harness) boot(process string) *txmgr.Manager {
	w.t.Helper()
	w.process.Next()
	w.processes++

	driver := chain.Driver(spy{w.chain, w})
	if w.driver != nil {
		driver = w.driver()
	}

	registry, err := chain.NewRegistry(driver)
	if err != nil {
		w.t.Fatal(err)
	}

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}

	clock := func() time.Time { return w.now }

	return txmgr.New(
		txmgr.Config{
			DB:       db{w.store, w},
			Registry: registry,
			Signer:   w.signer,
			IDs:      id.New(clock, nil),
			Now:      clock,
			Log:      log,
			Process:  process,
			// Others use the wallets' keys in these tests; freezing has its own.
			Foreign: wallet.Tolerate,
		},
	)
}

// outlast has a process work until it takes over from one that stands still.
func (w *harness) outlast(other *txmgr.Manager) error {
	for range 10 {
		w.now = w.now.Add(10 * time.Second)

		if did, err := other.Step(w.t.Context(), network); did || err != nil {
			return err
		}
	}

	return nil
}

// spy is the network as the outbox sees it. Nothing may be handed over whose bytes, hash and nonce
// are not stored.
type spy struct {
	*sim.Chain
	w *harness
}

func (s spy) Broadcast(ctx context.Context, signed chain.Signed) error {
	own, err := s.w.store.OwnTransactions(ctx, network, []string{signed.TxHash})
	if err != nil || len(own) != 1 {
		s.w.t.Errorf("bytes were sent before they were stored: %s %v %v", signed.TxHash, own, err)
	}

	wallet, ok, err := s.w.store.Wallet(ctx, network, signed.From)
	if err != nil || !ok || wallet.NextNonce <= signed.Nonce {
		s.w.t.Errorf("bytes were sent before their nonce %d was taken: %+v %v", signed.Nonce, wallet, err)
	}

	return s.Chain.Broadcast(ctx, signed)
}

func (s spy) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	if s.w.script.Height == height && !s.w.script.IsZero() {
		return s.w.script, nil
	}

	return s.Chain.RefAt(ctx, height)
}

func (s spy) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	if s.w.forgetful {
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	return s.Chain.Status(ctx, signed)
}

type db struct {
	store.Reader
	w *harness
}

func (d db) OutgoingByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]wallet.Outgoing, error) {
	rows, err := d.Reader.OutgoingByHash(ctx, network, hashes)
	if d.w.answered != nil {
		d.w.answered()
	}

	return rows, err
}

func (d db) OutgoingByKey(ctx context.Context, network string, keys []string) ([]wallet.Outgoing, error) {
	rows, err := d.Reader.OutgoingByKey(ctx, network, keys)
	if d.w.afterKeys != nil {
		d.w.afterKeys()
	}

	return rows, err
}

func (d db) Update(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error {
	return d.w.process.Do("update", func() error { return d.w.update(ctx, f) })
}

func (w *harness) update(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error {
	var tx *listening

	err := w.store.Update(ctx, func(ctx context.Context, inner store.Tx) error {
		tx = &listening{Tx: inner}
		return f(ctx, tx)
	})
	if err == nil {
		w.moves = append(w.moves, tx.moves...)
	}

	return err
}

type listening struct {
	store.Tx
	moves []wallet.Transaction
}

func (l *listening) AppendEvents(_ context.Context, events ...event.Event) error {
	for _, e := range events {
		l.moves = append(l.moves, e.Payload.(wallet.Transaction))
	}

	return nil
}

func (w *harness) asset(symbol string) chain.Asset {
	a, ok := w.chain.Network().Asset(symbol)
	if !ok {
		w.t.Fatalf("no asset %s", symbol)
	}

	return a
}

func (w *harness) deposit() chain.Party { return w.signer.Party(chain.RoleDeposit, 1, w.chain) }
func (w *harness) master() chain.Party  { return w.signer.Party(chain.RoleMaster, 0, w.chain) }

// payout queues a payout of an amount to a new address.
func (w *harness) payout(symbol string, amount chain.Amount) wallet.Transaction {
	w.t.Helper()
	return w.payoutTo(w.chain.NewAddress(), symbol, amount, milli(10))
}

func (w *harness) payoutTo(to chain.Address, symbol string, amount, maxFee chain.Amount) wallet.Transaction {
	w.t.Helper()

	return w.enqueue(wallet.Transaction{
		Owner:    owner,
		Network:  network,
		Kind:     wallet.Payout,
		ObjectID: "payout of " + amount.String(),
		GiveUpAt: w.now.Add(2 * time.Hour),
		Order: chain.Order{
			From:    w.master(),
			Outputs: []chain.Output{{To: to, AssetID: w.asset(symbol).ID, Amount: amount}},
			MaxFee:  maxFee,
		},
	})
}

func (w *harness) enqueue(t wallet.Transaction) (out wallet.Transaction) {
	w.t.Helper()

	err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) (err error) {
		out, err = w.outbox.EnqueueTx(ctx, tx, t)
		return err
	})
	if err != nil {
		w.t.Fatalf("EnqueueTx: %v", err)
	}

	return out
}

func (w *harness) get(id string) wallet.Transaction {
	w.t.Helper()

	t, err := w.store.Transaction(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}

	return t
}

func (w *harness) work() {
	w.t.Helper()

	w.read()

	for range 200 {
		did, err := w.outbox.Step(w.t.Context(), network)
		if w.process.Dead() {
			w.outbox = w.boot("next")
			continue
		}

		if err != nil {
			w.t.Fatalf("Step: %v", err)
		}

		if !did {
			return
		}
	}

	w.t.Fatal("the worker runs hot: there is always something due")
}

// pass lets time pass with one block at its end.
func (w *harness) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.chain.Mine(1)
}

// wait lets time pass without a block.
func (w *harness) wait(d time.Duration) {
	w.now = w.now.Add(d)
	w.work()
}

// until works and mines until the transaction is in a state.
func (w *harness) until(id string, state wallet.State) wallet.Transaction {
	w.t.Helper()

	for range 400 {
		w.work()

		if t := w.get(id); t.State == state {
			return t
		}

		w.pass(5 * time.Second)
	}

	w.t.Fatalf("transaction never became %s: %+v", state, w.get(id))

	return wallet.Transaction{}
}

// confirmed waits for the confirmation and checks that the destination has the amount exactly once.
func (w *harness) confirmed(id string) wallet.Transaction {
	w.t.Helper()
	t := w.until(id, wallet.Confirmed)
	w.arrived(t)

	return t
}

func (w *harness) arrived(t wallet.Transaction) {
	w.t.Helper()
	out := t.Order.Outputs[0]

	a, _ := w.chain.Network().AssetByID(out.AssetID)
	if got := w.chain.Balance(out.To, a.Symbol); got != out.Amount {
		w.t.Errorf("%s arrived of %s", got, out.Amount)
	}
}

// states returns the published states of a transaction, in order.
func (w *harness) states(id string) (out []wallet.State) {
	for _, t := range w.moves {
		if t.ID == id {
			out = append(out, t.State)
		}
	}

	return out
}

// fork has the chain fork, and takes that in.
func (w *harness) fork(f sim.Fork) {
	w.t.Helper()
	w.chain.Fork(f)
	w.read()
}

// longAgo is before the first block: a follower that begins there reads the whole chain.
func longAgo(context.Context) (time.Time, error) { return time.Unix(1, 0), nil }
