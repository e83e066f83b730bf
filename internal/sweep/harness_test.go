package sweep_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/sweep"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
)

const network = "simnet"

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owner = event.Owner{AccountID: "00000000000000000000aaaa"}
	price = decimal.NewFromInt(2000) // USD per native coin
)

func coin(n uint64) chain.Amount    { return chain.Pow10(18).Mul(n) }
func milli(n uint64) chain.Amount   { return chain.Pow10(15).Mul(n) }
func dollars(n uint64) chain.Amount { return chain.Pow10(6).Mul(n) }

// harness is a network, a store and what outlives a process; services is one process over them.
type harness struct {
	// nativeUSD is the present price of one native coin; null is none.
	nativeUSD decimal.NullDecimal
	t         *testing.T
	now       time.Time
	chain     *sim.Chain
	driver    chain.Driver // over chain
	signer    *sim.Signer
	store     store.Store
	fee       chain.Address
	events    []event.Event // what was committed
	// process counts updates and driver calls, and dies at one of them.
	process   crashtest.Process
	processes int
	follower  *follow.Follower
	reading   bool                        // the follower calls the node, not the process
	planning  func()                      // is called once, as a release is about to be planned
	unread    map[chain.Address]time.Time // since when payments to addresses wait for their balances
	*services
}

type services struct {
	outbox  *txmgr.Manager
	sweeper *sweep.Sweeper
	service *settlement.Service
}

func newHarness(t *testing.T, settings account.Settings) *harness {
	t.Helper()
	w := &harness{t: t, now: start, store: memory.New()}
	w.chain = sim.New(sim.Config{Clock: func() time.Time { return w.now }})
	w.signer = sim.NewSigner(7, nil)
	w.fee = w.chain.NewAddress()
	w.interceptCalls()

	err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutAccount(ctx, &account.Account{ID: owner.AccountID, Settings: settings, CreatedAt: start})
	})
	if err != nil {
		t.Fatal(err)
	}

	w.connect()

	return w
}

// interceptCalls has calls of the network count as the process's.
func (w *harness) interceptCalls() {
	w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if w.reading {
			return nil
		}

		return w.process.Call(string(m))
	})
}

// connect starts a process and a follower over the network.
func (w *harness) connect() {
	w.t.Helper()

	w.driver = w.chain
	w.boot()

	var err error

	w.follower, err = follow.New(follow.Config{
		Driver:       w.chain,
		Handler:      handler{w},
		DB:           scanDB{w.store},
		Owner:        "follower",
		Now:          func() time.Time { return w.now },
		Log:          slog.New(slog.NewTextHandler(io.Discard, nil)),
		FirstAddress: longAgo,
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
	w := h.w

	return w.update(ctx, w.services, func(ctx context.Context, tx store.Tx) error {
		if _, err := b.Advance(ctx, tx); err != nil {
			return err
		}

		if err := w.outbox.RecordOutgoingTx(ctx, tx, b, w.parties); err != nil {
			return err
		}

		return w.outbox.ApplyForkTx(ctx, tx, b)
	})
}

// parties knows the master wallet and the first deposit addresses.
func (w *harness) parties(
	_ context.Context,
	addresses []chain.Address,
) (map[chain.Address]chain.Party, error) {
	ours := []chain.Party{w.master()}
	for i := range uint32(16) {
		ours = append(ours, w.deposit(i))
	}

	found := map[chain.Address]chain.Party{}

	for _, p := range ours {
		if slices.Contains(addresses, p.Address) {
			found[p.Address] = p
		}
	}

	return found, nil
}

// read reads the network up to its tip.
func (w *harness) read() {
	w.t.Helper()

	w.reading = true
	defer func() { w.reading = false }()

	for range 100 {
		did, err := w.follower.Step(w.t.Context())
		if errors.Is(err, fault.Stopped) { // deeper than final: a person has to look into it
			did = true
			_, err = follow.Resume(w.t.Context(), scanDB{w.store}, w.follower.Driver, w.now)
		}

		if w.process.Dead() {
			w.boot()
			continue
		}

		if err != nil && !errors.Is(err, fault.Unavailable) {
			w.t.Fatalf("follower: %v", err)
		}

		if !did {
			return
		}
	}
}

// boot starts a process over what is stored.
func (w *harness) boot() {
	w.t.Helper()
	w.process.Next()
	w.processes++

	registry, err := chain.NewRegistry(w.driver)
	if err != nil {
		w.t.Fatal(err)
	}

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}

	ids := id.New(func() time.Time { return w.now }, nil)
	h := &services{}
	h.outbox = txmgr.New(txmgr.Config{
		DB:       sendDB{w.store, w, h},
		Registry: registry,
		Signer:   w.signer,
		IDs:      ids,
		Now:      func() time.Time { return w.now },
		Log:      log,
		Process:  "test",
	})
	h.sweeper = sweep.New(sweep.Config{
		DB:           settleDB{w.store, w, h},
		Registry:     registry,
		Outbox:       h.outbox,
		IDs:          ids,
		Now:          func() time.Time { return w.now },
		Log:          log,
		Process:      "test",
		FeeAddresses: map[string]chain.Address{network: w.fee},
		Outputs:      outputOf,
		Price:        w.price,
		Unread: func(context.Context, string) (map[chain.Address]time.Time, error) {
			return w.unread, nil
		},
	})
	h.service = settlement.New(settlement.Config{
		DB:  settleDB{w.store, w, h},
		Now: func() time.Time { return w.now },
	})
	w.services = h
}

// price prices the native coin, all that sweeps ask for.
func (w *harness) price(context.Context, chain.Asset) (decimal.Decimal, error) {
	if !w.nativeUSD.Valid {
		return decimal.Decimal{}, rate.Unavailable("SIM", "USD", nil)
	}

	return w.nativeUSD.Decimal, nil
}

// update does what the engine does: reactions to facts run before the commit, in the same transaction.
func (w *harness) update(
	ctx context.Context,
	h *services,
	f func(ctx context.Context, tx store.Tx) error,
) error {
	return w.process.Do("update", func() error {
		var seen []event.Event

		err := w.store.Update(ctx, func(ctx context.Context, inner store.Tx) error {
			tx := &reacting{Tx: inner}
			if err := f(ctx, tx); err != nil {
				return err
			}

			seen = nil

			for i := 0; i < len(tx.events); i++ {
				e := tx.events[i]
				if e.Type == event.TransactionMoved {
					if err := h.sweeper.TransactionTx(ctx, tx, e.Payload.(wallet.Transaction)); err != nil {
						return err
					}
				}

				seen = append(seen, e)
			}

			tx.showLeft(seen)

			return nil
		})
		if err == nil {
			w.events = append(w.events, seen...)
		}

		return err
	})
}

// reacting is a transaction that collects events, and publishes what changed of settlements that have ended.
type reacting struct {
	store.Tx
	events []event.Event
	left   map[string]settlement.Settlement
}

func (r *reacting) AppendEvents(_ context.Context, events ...event.Event) error {
	r.events = append(r.events, events...)
	return nil
}

func (r *reacting) PutSettlements(ctx context.Context, settlements ...*settlement.Settlement) error {
	for _, s := range settlements {
		before, err := r.SettlementsByID(ctx, []string{s.ID})
		if err != nil {
			return err
		}

		if len(before) > 0 && settlementstate.IsUpdated(before[0], *s) {
			s.Sequence++

			if err := r.AppendEvents(ctx, eventctx.About(*s, event.SettlementUpdated)...); err != nil {
				return err
			}
		}

		if r.left == nil {
			r.left = map[string]settlement.Settlement{}
		}

		r.left[s.ID] = *s
	}

	return r.Tx.PutSettlements(ctx, settlements...)
}

// showLeft has the events of settlements show them as the transaction leaves them.
func (r *reacting) showLeft(events []event.Event) {
	for i, e := range events {
		if left, ok := r.left[e.ObjectID]; ok {
			events[i].Payload = left
		}
	}
}

type sendDB struct {
	store.Reader
	w *harness
	h *services
}

func (d sendDB) Update(ctx context.Context, f func(ctx context.Context, tx wallet.Tx) error) error {
	return d.w.update(ctx, d.h, func(ctx context.Context, tx store.Tx) error { return f(ctx, tx) })
}

type settleDB struct {
	store.Reader
	w *harness
	h *services
}

func (d settleDB) Update(ctx context.Context, f func(ctx context.Context, tx settlement.Tx) error) error {
	return d.w.update(ctx, d.h, func(ctx context.Context, tx store.Tx) error { return f(ctx, tx) })
}

func (d settleDB) SettlementSettings(ctx context.Context, accountID string) (settlement.Settings, error) {
	if f := d.w.planning; f != nil {
		d.w.planning = nil

		f()
	}

	return d.Reader.SettlementSettings(ctx, accountID)
}

func (w *harness) asset(symbol string) chain.Asset {
	w.t.Helper()

	a, ok := w.chain.Network().Asset(symbol)
	if !ok {
		w.t.Fatalf("no asset %s", symbol)
	}

	return a
}

func (w *harness) deposit(index uint32) chain.Party {
	return w.signer.Party(chain.RoleDeposit, index, w.chain)
}
func (w *harness) master() chain.Party { return w.signer.Party(chain.RoleMaster, 0, w.chain) }

// pay makes a confirmed payment to a deposit address and opens its settlement.
func (w *harness) pay(
	paymentID string,
	to chain.Party,
	symbol string,
	amount chain.Amount,
	usd int64,
) settlement.Settlement {
	w.t.Helper()
	w.chain.Pay(to.Address, symbol, amount)
	w.chain.Mine(3)

	return w.open(paymentID, to, symbol, amount, usd)
}

func (w *harness) open(
	paymentID string,
	to chain.Party,
	symbol string,
	amount chain.Amount,
	usd int64,
) settlement.Settlement {
	w.t.Helper()

	return w.openAs(sweep.OpenParams{
		Owner:       owner,
		PaymentID:   paymentID,
		Network:     network,
		Asset:       w.asset(symbol),
		Deposit:     to,
		Gross:       amount,
		USDValue:    decimal.NewFromInt(usd),
		NativePrice: price,
		ConfirmedAt: w.now,
	})
}

func (w *harness) openAs(o sweep.OpenParams) (s settlement.Settlement) {
	w.t.Helper()

	err := w.update(w.t.Context(), w.services, func(ctx context.Context, tx store.Tx) (err error) {
		s, err = w.sweeper.OpenTx(ctx, tx, o)
		return err
	})
	if err != nil {
		w.t.Fatalf("OpenTx: %v", err)
	}

	if !s.ConfirmedAt.Equal(o.ConfirmedAt) {
		w.t.Errorf("its payment was confirmed at %s, and it shows %s", o.ConfirmedAt, s.ConfirmedAt)
	}

	return s
}

func (w *harness) lose(paymentID string) {
	w.t.Helper()

	err := w.update(w.t.Context(), w.services, func(ctx context.Context, tx store.Tx) error {
		return w.sweeper.PaymentLostTx(ctx, tx, paymentID)
	})
	if err != nil {
		w.t.Fatalf("PaymentLostTx: %v", err)
	}
}

func (w *harness) get(id string) settlement.Settlement {
	w.t.Helper()

	s, err := w.store.Settlement(w.t.Context(), owner, id)
	if err != nil {
		w.t.Fatal(err)
	}

	if s.FeePaid.Add(s.FeeCarried) != s.FeeNative.Add(s.CarriedIn) {
		w.t.Fatalf(
			"fee_paid %s + fee_carried %s is not fee_native %s + carried in %s",
			s.FeePaid, s.FeeCarried, s.FeeNative, s.CarriedIn,
		)
	}

	return s
}

// work runs the workers until nothing is due now. A killed process is started anew.
func (w *harness) work() {
	w.t.Helper()

	for range 200 {
		w.read()

		var did bool

		for _, step := range []func(context.Context, string) (bool, error){w.sweeper.Step, w.outbox.Step} {
			d, err := step(w.t.Context(), network)
			if w.process.Dead() {
				w.boot()

				did = true

				break
			}

			if err != nil {
				w.t.Fatalf("step: %v", err)
			}

			did = did || d
		}

		if !did {
			return
		}
	}

	w.t.Fatal("the workers run hot: there is always something due")
}

// run lets time pass: workers work, blocks come, until the condition holds.
func (w *harness) run(what string, done func() bool) {
	w.t.Helper()

	for range 400 {
		w.work()

		if done() {
			return
		}

		w.pass(5 * time.Second)
	}

	w.t.Fatalf("never came true: %s", what)
}

// pass lets time pass by one block.
func (w *harness) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.chain.Mine(1)
}

func (w *harness) until(id string, status settlement.Status) settlement.Settlement {
	w.t.Helper()

	var s settlement.Settlement

	w.run("settlement is "+string(status), func() bool { s = w.get(id); return s.Status == status })

	return s
}

// residue is the native coin on record at an address beside its deposits.
func (w *harness) residue(of chain.Party) (amount chain.Amount) {
	w.t.Helper()

	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		r, _, err := tx.Residue(ctx, network, of.Address)
		amount = r.Amount

		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return amount
}

// owed is what transactions took at an address beyond its deposits, in base units.
func (w *harness) owed(of chain.Party) (amount chain.Amount) {
	w.t.Helper()

	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		r, _, err := tx.Residue(ctx, network, of.Address)
		amount = r.Owed

		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}

	return amount
}

// live counts the releases under way at an address.
func (w *harness) live(at chain.Party) int {
	w.t.Helper()

	all, err := w.store.SweepsAt(w.t.Context(), network, []chain.Address{at.Address})
	if err != nil {
		w.t.Fatal(err)
	}

	return len(all)
}

// borne is what a settlement's release bore beside its fees, in native base units.
func (w *harness) borne(s settlement.Settlement) chain.Amount {
	w.t.Helper()

	r, err := w.store.Sweep(w.t.Context(), s.SweepID)
	if err != nil {
		w.t.Fatal(err)
	}

	return r.Owed.Sub(r.Claimed())
}

// burnt is the network fees of all our transactions, in native base units.
func (w *harness) burnt() (sum chain.Amount) {
	w.t.Helper()

	all, err := w.store.Transactions(w.t.Context(), network, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}

	for _, t := range all {
		sum = sum.Add(t.Fee)
	}

	return sum
}

// foreign records a transaction of a deposit's address that nobody here made, which took an amount of native coin, and
// that a person said so.
func (w *harness) foreign(from chain.Party, amount chain.Amount) {
	w.t.Helper()
	w.putForeign(from, wallet.Outgoing{Block: chain.Ref{Height: 1, Hash: "b"}, Fee: amount})
}

// putForeign stores what a transaction of a deposit's address did that nobody here made, and that a person said so.
func (w *harness) putForeign(from chain.Party, row wallet.Outgoing) {
	w.t.Helper()

	row.Network, row.Address, row.Key, row.TxHash = network, from.Address, "foreign", "foreign"
	row.Unrecorded, row.Acknowledged = true, wallet.Foreign

	err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.PutOutgoing(ctx, &row)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) published(t event.Type) (n int) {
	for _, e := range w.events {
		if e.Type == t {
			n++
		}
	}

	return n
}

// checkPublished compares a settlement with what the last event about it shows.
func (w *harness) checkPublished(id string) {
	w.t.Helper()

	var last event.Event

	for _, e := range w.events {
		if e.ObjectID == id {
			last = e
		}
	}

	shown, ok := last.Payload.(settlement.Settlement)
	if now := w.get(id); !ok || shown.Resource() != now.Resource() || last.Sequence != now.Sequence {
		w.t.Errorf("%s shows\n%+v, and it is\n%+v", last.Type, shown.Resource(), now.Resource())
	}
}

func (w *harness) check(what string, got, want chain.Amount) {
	w.t.Helper()

	if got != want {
		w.t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// acknowledge does what a person does with Engine.Acknowledge: every transaction that is not on record is
// foreign, and the wallets are not frozen any more.
func (w *harness) acknowledge() {
	w.t.Helper()

	if err := w.store.Update(w.t.Context(), func(ctx context.Context, tx store.Tx) error {
		rows, err := tx.UnrecordedOutgoing(ctx, network, "", time.Time{})
		if err != nil {
			return err
		}

		for _, row := range rows {
			row.Acknowledged = wallet.Foreign
			if err := tx.PutOutgoing(ctx, &row); err != nil {
				return err
			}

			frozen, _, err := tx.Wallet(ctx, network, row.Address)
			if err != nil {
				return err
			}

			walletstate.Unfreeze(&frozen)

			if err := tx.PutWallet(ctx, &frozen); err != nil {
				return err
			}
		}

		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// longAgo is before the first block: a follower that begins there reads the whole chain.
func longAgo(context.Context) (time.Time, error) { return time.Unix(1, 0), nil }
