package engine_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file traces one payment from its block to its event, and one payout from its request to its signed
// bytes: which files of the library are on the stack whenever the network is asked or the store is written.
// `go test -v -run TestFlow .` prints the traces.

// maxFlowFiles bounds the files that a reader has to open to follow one payment or one payout.
const maxFlowFiles = 15

// dispatch are the files of the engine's transaction: they run the closures of all domains, the parts of a batch
// of blocks and the reactions to events, so that a flow passes them again.
var dispatch = []string{
	"internal/engine/blocks.go",
	"internal/engine/writes.go",
	"internal/engine/reactions.go",
	"internal/engine/update.go",
}

// trace records the stack at each phase of a flow.
type trace struct {
	mu     sync.Mutex
	phases []phase
}

// phase is one write or call, and the library's files on the stack, the caller first.
type phase struct {
	name  string
	files []string
}

func (tr *trace) record(name string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])

	var files []string

	for {
		frame, more := frames.Next()
		if file, ok := libraryFile(frame.File); ok && (len(files) == 0 || files[len(files)-1] != file) {
			files = append(files, file)
		}

		if !more {
			break
		}
	}

	slices.Reverse(files)

	tr.mu.Lock()
	defer tr.mu.Unlock()

	tr.phases = append(tr.phases, phase{name, files})
}

// libraryFile returns the path of a file within the library; not of tests, of the network, of the store, or of
// internal/together, a loop that calls back whoever has several items.
func libraryFile(path string) (string, bool) {
	_, file, _, _ := runtime.Caller(0)
	root := strings.TrimSuffix(file, "internal/testing/engine/flow_test.go")

	inside, ok := strings.CutPrefix(path, root)
	if !ok || strings.HasSuffix(inside, "_test.go") {
		return "", false
	}

	return inside, !slices.ContainsFunc(
		[]string{"internal/testing/sim/", "internal/together/", "store/"},
		func(folder string) bool { return strings.HasPrefix(inside, folder) },
	)
}

// keep keeps the phases up to the first of a name, without those in a package that works on something else.
func (tr *trace) keep(t *testing.T, name, without string) {
	t.Helper()

	tr.phases = slices.DeleteFunc(tr.phases, func(p phase) bool {
		return slices.ContainsFunc(
			p.files,
			func(file string) bool { return strings.HasPrefix(file, without) },
		)
	})

	i := slices.IndexFunc(tr.phases, func(p phase) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("no %s among %d phases", name, len(tr.phases))
	}

	tr.phases = tr.phases[:i+1]
}

// check prints the trace, bounds its files, and holds that no stack returns into a package that it left.
func (tr *trace) check(t *testing.T) {
	t.Helper()

	if len(tr.phases) == 0 {
		t.Fatal("nothing was recorded")
	}

	all := map[string]bool{}

	for _, p := range tr.phases {
		t.Logf("%-16s %s", p.name, strings.Join(p.files, " > "))

		for _, file := range p.files {
			all[file] = true
		}

		if pkg := returnsTo(p.files); pkg != "" {
			t.Errorf("%s: the flow returns into %s, which it had left", p.name, pkg)
		}
	}

	files := slices.Sorted(maps.Keys(all))
	t.Logf("%d files: %s", len(files), strings.Join(files, " "))

	if len(files) > maxFlowFiles {
		t.Errorf("%d files, at most %d", len(files), maxFlowFiles)
	}
}

// returnsTo returns the package that a stack entered twice; empty when there is none.
func returnsTo(files []string) string {
	left := map[string]bool{}
	last := ""

	for _, file := range files {
		if slices.Contains(dispatch, file) {
			continue
		}

		pkg := "."
		if slash := strings.LastIndex(file, "/"); slash >= 0 {
			pkg = file[:slash]
		}

		if pkg == last {
			continue
		}

		if left[pkg] {
			return pkg
		}

		left[pkg], last = true, pkg
	}

	return ""
}

// tracedStore records the writes of a flow while on is set.
type tracedStore struct {
	store.Store
	trace *trace
}

func (s tracedStore) Update(ctx context.Context, f func(ctx context.Context, tx store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		return f(ctx, tracedTx{tx, s.trace})
	})
}

type tracedTx struct {
	store.Tx
	trace *trace
}

func (tx tracedTx) PutCursor(ctx context.Context, c *scan.Cursor) error {
	tx.trace.record("PutCursor")
	return tx.Tx.PutCursor(ctx, c)
}

func (tx tracedTx) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	addresses []chain.Address,
) ([]invoice.Address, error) {
	tx.trace.record("MatchAddresses")
	return tx.Tx.MatchAddresses(ctx, space, addresses)
}

func (tx tracedTx) PutPayments(ctx context.Context, payments ...*invoice.Payment) error {
	tx.trace.record("PutPayments")
	return tx.Tx.PutPayments(ctx, payments...)
}

func (tx tracedTx) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	tx.trace.record("PutInvoice")
	return tx.Tx.PutInvoice(ctx, inv)
}

func (tx tracedTx) PutPayout(ctx context.Context, p *payout.Payout) error {
	tx.trace.record("PutPayout")
	return tx.Tx.PutPayout(ctx, p)
}

func (tx tracedTx) PutBalance(ctx context.Context, b *wallet.Balance) error {
	tx.trace.record("PutBalance")
	return tx.Tx.PutBalance(ctx, b)
}

func (tx tracedTx) PutTransaction(ctx context.Context, moved *wallet.Transaction) error {
	tx.trace.record("PutTransaction")
	return tx.Tx.PutTransaction(ctx, moved)
}

func (tx tracedTx) PutEvents(ctx context.Context, events ...event.Event) error {
	for _, ev := range events {
		tx.trace.record(fmt.Sprint(ev.Type))
	}

	return tx.Tx.PutEvents(ctx, events...)
}

func (tx tracedTx) PutDeliveries(ctx context.Context, deliveries ...*webhook.Delivery) error {
	tx.trace.record("PutDeliveries")
	return tx.Tx.PutDeliveries(ctx, deliveries...)
}

// flow is an engine over a traced store and network.
type flow struct {
	engine *payments.Engine
	chain  *sim.Chain
	trace  *trace
	owner  event.Owner
	index  uint32
}

func newFlow(t *testing.T) *flow {
	t.Helper()

	f := &flow{chain: sim.New(sim.Config{}), trace: &trace{}}
	cfg := config(t, f.chain)
	cfg.Store = tracedStore{cfg.Store, f.trace}

	f.chain.SetIntercept(func(_ context.Context, method sim.Method) error {
		f.trace.record(string(method))
		return nil
	})

	var err error
	if f.engine, err = payments.New(cfg); err != nil {
		t.Fatal(err)
	}

	made, err := f.engine.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Shop"})
	if err != nil {
		t.Fatal(err)
	}

	f.owner, f.index = event.Owner{AccountID: made.ID}, made.Index
	f.settle(t)

	return f
}

// settle does all work that there is, and forgets the trace of it.
func (f *flow) settle(t *testing.T) {
	t.Helper()

	for range 100 {
		if !f.record(t) {
			f.trace.phases = nil
			return
		}
	}

	t.Fatal("work without an end")
}

// step does all work that there is once.
func (f *flow) record(t *testing.T) bool {
	t.Helper()

	did, err := f.engine.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return did
}

// One payment passes few files from its block to its event, and returns into none of their packages.
func TestFlowOfOnePayment(t *testing.T) {
	f := newFlow(t)

	five := chain.MustAmount("5000000000000000000")

	inv, err := f.engine.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   f.owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: f.chain.Network().Slug, Amount: five}},
	})
	if err != nil {
		t.Fatal(err)
	}

	f.settle(t)
	f.chain.Pay(inv.Options[0].Address, "SIM", five)

	// Whatever is done before its block is in the pool or waits for other work.
	f.trace.phases = nil

	for range 100 {
		f.chain.Mine(1)
		f.record(t)

		if now, err := f.engine.Invoices.Get(t.Context(), f.owner, inv.ID); err != nil {
			t.Fatal(err)
		} else if now.Status == invoice.Paid {
			break
		}
	}

	f.trace.keep(t, string(event.InvoicePaid), "internal/txmgr/")
	f.trace.check(t)
}

// One payout passes few files from its request to its signed bytes.
func TestFlowOfOnePayout(t *testing.T) {
	f := newFlow(t)
	slug := f.chain.Network().Slug

	master, err := internal.Of(f.engine).Transactions.MasterWallet(t.Context(), slug, f.index)
	if err != nil {
		t.Fatal(err)
	}

	f.chain.Fund(master.Address, "SIM", chain.MustAmount("5000000000000000000"))
	f.chain.Mine(30)
	f.settle(t)

	if _, err := f.engine.Payouts.Create(t.Context(), payout.Params{
		Owner:       f.owner,
		Network:     slug,
		Asset:       "SIM",
		Amount:      chain.MustAmount("1000000000000000000"),
		Destination: string(f.chain.NewAddress()),
	}); err != nil {
		t.Fatal(err)
	}

	f.record(t)
	f.trace.keep(t, "Broadcast", "internal/follow/")
	f.trace.check(t)
}
