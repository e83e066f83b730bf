package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

const (
	shortRuns = 150
	longRuns  = 2000
)

// Whatever happens (tokens of every kind, contracts whose payments depend on the branch, forks of 1 to 40
// blocks, two nodes that lie in turns, crashes before and after any effect), in the end the API shows what
// an independent walk of the canonical chain finds. Under make soak there are 2,000 runs.
func TestSoakLedgerAgrees(t *testing.T) {
	runs := shortRuns
	if os.Getenv("SOAKTIME") != "" {
		runs = longRuns
	}

	var count tally

	for seed := range runs {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newRandomRun(t, uint64(seed))
			r.run(50)
			r.compare(&count)
		})
		if !ok {
			break // its steps are enough to read
		}
	}

	t.Logf("%+v", count)
	fmt.Printf("independent ledger: %d runs, %d differences: %+v\n", count.Runs, count.Differences, count)

	if count.Arrivals < count.Runs || count.Forks < count.Runs || count.Crashes == 0 || count.Bad == 0 {
		t.Errorf("the runs show too little: %+v", count)
	}
}

// tally counts what the runs went through.
type tally struct {
	Runs, Differences, Arrivals, Forks, Deepest, Crashes, Lies, Bad int
}

// randomRun is a harness in which a seed chooses what happens.
type randomRun struct {
	*harness
	rand     *rand.Rand
	invoices []invoice.Invoice
	deposits []invoice.DepositAddress
	hashes   []string
	did      tally
}

func newRandomRun(t *testing.T, seed uint64) *randomRun {
	t.Helper()

	w := newHarness(t, sim.Config{Nodes: 2, NoFinality: true, Seed: seed})
	r := &randomRun{harness: w, rand: rand.New(rand.NewPCG(seed, 19))}

	for i := range 3 {
		symbol, due := "USDX", dollars(100)
		if i == 2 {
			symbol, due = "SIM", coin(1)
		}

		inv, err := w.engine.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:     w.owner,
			Options:   []invoice.OptionParams{{Asset: symbol, Network: network, Amount: due}},
			ExpiresIn: week,
		})
		w.must(err)

		r.invoices = append(r.invoices, inv)
	}

	r.deposits = []invoice.DepositAddress{w.deposit(), w.deposit()}
	w.chain.MineEmpty(45) // a fork of 40 blocks has something to leave
	w.work()

	return r
}

// run has n things happen, and then lets everything come to rest.
func (r *randomRun) run(n int) {
	r.t.Helper()

	for range n {
		r.happen()

		if r.rand.IntN(2) == 0 {
			r.arm()
		}

		r.struggleOn()
	}

	r.process.Disarm()

	for i := range 2 {
		r.chain.SetNode(i, sim.NodeFaults{})
	}

	r.struggleOn()
	r.mine(4)

	for range 3 { // what is in neither pool nor chain is given up after a day
		r.pass(invoicestate.LostAfter + time.Hour)
		r.mine(4)
	}
}

// arm lets the process crash at one of its next effects.
func (r *randomRun) arm() { r.process.Arm(1+r.rand.IntN(25), r.rand.IntN(2) == 0) }

// struggleOn has the engine work with nodes that may not answer; a dead process is replaced.
func (r *randomRun) struggleOn() {
	r.t.Helper()

	for range 40 {
		did, err := r.engine.Step(r.t.Context())

		switch {
		case r.process.Dead():
			r.did.Crashes++
			r.process.Disarm()
			r.boot()
		case errors.Is(err, crashtest.ErrKilled):
			r.t.Fatalf("a living process was killed: %v", err)
		case !did:
			r.process.Disarm()
			return
		}
	}
}

func (r *randomRun) address() chain.Address {
	if i := r.rand.IntN(5); i < 3 {
		return addressOf(r.invoices[i])
	}

	return r.deposits[r.rand.IntN(2)].Address
}

func (r *randomRun) money() (symbol string, amount chain.Amount) {
	symbol = []string{"USDX", "USDX", "USDX", "USDY", "SIM"}[r.rand.IntN(5)]
	if symbol == "SIM" {
		return symbol, chain.Pow10(17).Mul(1 + r.rand.Uint64N(8))
	}

	return symbol, dollars(10 + r.rand.Uint64N(90))
}

func (r *randomRun) happen() {
	r.t.Helper()

	to := r.address()
	symbol, amount := r.money()

	switch k := r.rand.IntN(20); {
	case k < 4:
		r.hashes = append(r.hashes, r.chain.Pay(to, symbol, amount))
	case k < 6:
		r.hashes = append(r.hashes, r.payVariable(to, symbol, amount))
	case k < 7:
		r.hashes = append(r.hashes, r.chain.PayFailing(to, symbol, amount))
	case k < 8:
		r.setToken()
	case k < 9 && len(r.hashes) > 0:
		hash := r.hashes[r.rand.IntN(len(r.hashes))]
		if r.rand.IntN(2) == 0 {
			r.chain.Drop(hash)
		} else if found, err := r.chain.Transaction(context.Background(), hash); err == nil &&
			found.Block.IsZero() {
			r.chain.Replace(hash)
		}
	case k < 11 && len(r.hashes) > 0:
		inv := r.invoices[r.rand.IntN(len(r.invoices))]
		_, _ = r.engine.Invoices.Hint(
			r.t.Context(), inv.ID, r.hashes[r.rand.IntN(len(r.hashes))],
		) // a node may not answer
	case k < 13:
		r.fork()
	case k < 15:
		r.lie()
	default:
		r.pass(2 * time.Second)
		r.chain.Mine(1 + r.rand.IntN(2))
	}
}

// payVariable pays by a contract that does something else on every branch.
func (r *randomRun) payVariable(to chain.Address, symbol string, amount chain.Amount) string {
	other, salt := r.address(), r.rand.Uint64()

	return r.chain.PayVariable(r.output(to, symbol, amount), func(_, branch uint64) sim.Result {
		switch (branch + salt) % 5 {
		case 0:
			return sim.Result{Failed: true}
		case 1:
			return sim.Result{Outputs: []chain.Output{r.output(other, symbol, amount)}}
		case 2:
			return sim.Result{Outputs: []chain.Output{r.output(to, symbol, chain.Units(1+branch))}}
		case 3:
			return sim.Result{Outputs: []chain.Output{r.output(to, "USDY", dollars(3))}}
		}

		return sim.Result{Outputs: []chain.Output{r.output(to, symbol, amount)}}
	})
}

func (r *randomRun) setToken() {
	r.did.Bad++
	r.chain.SetToken("USDX", sim.TokenRules{
		FeeBPS: []int{0, 100, 9900, 10_000}[r.rand.IntN(4)],
		Log:    []sim.FeeLog{sim.LogNet, sim.LogGross, sim.LogGrossThenFee}[r.rand.IntN(3)],
	})
}

func (r *randomRun) fork() {
	depth := 1 + r.rand.Uint64N(4)
	if r.rand.IntN(3) == 0 {
		depth = 1 + r.rand.Uint64N(40)
	}

	r.did.Forks++
	r.did.Deepest = max(r.did.Deepest, int(depth))

	f := sim.Fork{Depth: depth, Each: map[string]sim.OrphanFate{}}
	for _, hash := range r.hashes {
		f.Each[hash] = []sim.OrphanFate{sim.ReturnToPool, sim.Reinclude, sim.DropOrphan}[r.rand.IntN(3)]
	}

	r.pass(2 * time.Second)
	r.chain.Fork(f)
}

// lie makes one node wrong and the other right.
func (r *randomRun) lie() {
	r.did.Lies++

	head, err := r.chain.Head(context.Background())
	if err != nil {
		return
	}

	inv := r.invoices[2] // in coin, which no balance of the block contradicts
	fake := chain.Block{Transfers: []chain.Transfer{{
		TxHash:  fmt.Sprintf("5ca1ab1e%d", r.rand.IntN(4)),
		To:      addressOf(inv),
		AssetID: inv.Options[0].AssetID,
		Amount:  coin(1),
	}}}
	names := []string{
		"denies",
		"receipts without logs",
		"blocks without logs",
		"blocks without logs and bloom",
		"behind",
		"jumps",
		"syncs",
		"another block",
	}
	liar := r.rand.IntN(2)
	r.chain.SetNode(liar, lies[names[r.rand.IntN(len(names))]](
		slices.Clone(r.hashes), head.Tip.Height, fake,
	))
	r.chain.SetNode(1-liar, sim.NodeFaults{})
}

func (t *tally) add(did tally, arrivals int) {
	t.Runs++
	t.Arrivals += arrivals
	t.Differences += did.Differences
	t.Forks += did.Forks
	t.Deepest = max(t.Deepest, did.Deepest)
	t.Crashes += did.Crashes
	t.Lies += did.Lies
	t.Bad += did.Bad
}
