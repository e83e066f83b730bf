package moneyout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// chaos is a harness in which anything happens in any order, while the engine runs.
type chaos struct {
	*harness
	rand     *rand.Rand
	deaf     atomic.Pointer[sim.Method] // what the node does not answer
	deposits []chain.Address
	paid     map[string]bool // transactions of payers, by hash
	payouts  []payout.Payout
	stop     func() error    // ends the engine
	dies     bool            // after what happens now
	read     map[string]bool // blocks that the follower has read, by hash
}

// Payments, payouts, forks of any fate, a node that does not answer this or that, and processes
// that die, in an order that a seed chooses. Whatever has happened, nothing is reported final that
// the chain, as far as it was read, does not hold; in the end everything has moved once, and the
// audit is clean. Under make soak more seeds are tried, until SOAKTIME is over.
func TestSoakMoneyMovesOnce(t *testing.T) {
	seeds := uint64(raced.Fewer(12))

	var until time.Time

	if text := os.Getenv("SOAKTIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}

		until = time.Now().Add(d)
	}

	for seed := uint64(0); seed < seeds || time.Now().Before(until); seed++ {
		for name, outputs := range map[string]int{"one by one": 1, "together": 8} {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				inTime(
					t,
					account.Settings{},
					sim.Config{NoFinality: true, MaxOutputs: outputs},
					func(t *testing.T, w *harness) {
						c := &chaos{
							harness: w,
							rand:    rand.New(rand.NewPCG(seed, 0)),
							paid:    map[string]bool{},
							read:    map[string]bool{},
						}
						c.begin()
						c.run(60)
					},
				)
			})
		}
	}
}

func (c *chaos) begin() {
	c.t.Helper()
	c.fund(5, 2000)

	for range 3 {
		d, err := c.engine.Invoices.CreateDeposit(
			c.t.Context(), invoice.DepositParams{Owner: c.owner, Network: network},
		)
		c.must(err)
		c.deposits = append(c.deposits, d.Address)
	}

	c.live("the network is followed", func() bool { _, followed := c.cursor(); return followed })
	c.chain.Mine(10)
	c.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
		if deaf := c.deaf.Load(); deaf != nil && (*deaf == m || *deaf == sim.AnyMethod) {
			return sim.Unavailable()
		}

		return c.process.Call(string(m))
	})
}

// run has n things happen while the engine runs, and then lets everything come to rest.
func (c *chaos) run(n int) {
	c.t.Helper()

	c.start()
	defer func() { c.must(c.stop()) }()

	for range n {
		c.alone(c.happen)
		time.Sleep(time.Duration(c.rand.IntN(8_000)) * time.Millisecond)
		c.alone(c.check)
	}

	c.process.Disarm()
	c.deaf.Store(nil)
	c.chain.SetFee(sim.DefaultBaseFee, sim.DefaultPriority)
	// What cannot be included any more, as a fork made what came before it dearer, is displaced
	// after Config.CancelAfter.
	for i := range 1500 {
		c.chain.Mine(1)
		time.Sleep(max(5*time.Second, time.Duration(i-100)*100*time.Millisecond))
		c.alone(c.check)

		if c.atRest() {
			break
		}

		for _, s := range c.settlements() {
			// an operator's business
			if s.Status == settlement.Failed && s.Reason == settlement.TransactionFailed {
				_, err := c.engine.Settlements.Retry(c.t.Context(), c.owner, s.ID)
				c.must(err)
			}
		}
	}

	if !c.atRest() {
		var states []string
		for _, s := range c.settlements() {
			states = append(states, string(s.Status)+" "+string(s.Reason))
		}

		for _, p := range c.now() {
			states = append(states, string(p.Status))
		}

		c.t.Fatalf("%d payments and %d payouts do not come to rest: %q", len(c.paid), len(c.payouts), states)
	}

	for _, p := range c.now() {
		c.arrived(p)
	}

	c.settled(5, 2000)
}

// start runs the engine.
func (c *chaos) start() {
	ctx, stop := context.WithCancel(c.t.Context())

	ended, e := make(chan error, 1), c.engine
	go func() { ended <- e.Run(ctx) }()

	c.stop = func() error {
		stop()
		return <-ended
	}
}

// alone does something while the engine waits for time to pass. A process that crashed is replaced by
// another one first.
func (c *chaos) alone(do func()) {
	c.t.Helper()
	synctest.Wait()

	if c.process.Dead() {
		_ = c.stop() // what it says of what it could not do any more is of no interest
		c.engine = c.boot()
		c.start()
		synctest.Wait()
	}

	c.process.Aside(do)

	if c.dies {
		c.dies = false
		c.process.Arm(1+c.rand.IntN(12), c.rand.IntN(2) == 0)
	}
}

func (c *chaos) happen() {
	c.t.Helper()

	switch k := c.rand.IntN(24); {
	case k < 4:
		symbol, amount := "SIM", milli(100+c.rand.Uint64N(400))
		if c.rand.IntN(3) == 0 {
			symbol, amount = "USDX", dollars(100+c.rand.Uint64N(300))
		}

		c.paid[c.chain.Pay(c.deposits[c.rand.IntN(len(c.deposits))], symbol, amount)] = true
	case k < 6:
		symbol, amount := "SIM", milli(1+c.rand.Uint64N(20))
		if c.rand.IntN(3) == 0 {
			symbol, amount = "USDX", dollars(1+c.rand.Uint64N(20))
		}

		deaf := c.deaf.Swap(nil)
		c.payouts = append(c.payouts, c.pay(symbol, amount))
		c.deaf.Store(deaf)
	case k < 13:
		c.chain.Mine(1 + c.rand.IntN(3))
	case k < 14:
		c.chain.MineEmpty(1)
	case k < 17:
		c.fork()
	case k < 19:
		all := []sim.Method{
			sim.MethodHead,
			sim.MethodRefAt,
			sim.MethodBlocks,
			sim.MethodBroadcast,
			sim.MethodStatus,
			sim.MethodStatus,
			sim.MethodNonce,
			sim.MethodPlanSweep,
			sim.AnyMethod,
		}
		c.deaf.Store(&all[c.rand.IntN(len(all))])
	case k < 20:
		c.deaf.Store(nil)
	case k < 21:
		c.chain.LoseNextResponses(1 + c.rand.IntN(2))
	case k < 23:
		c.dies = true
	default:
		c.chain.SetFee(sim.DefaultBaseFee*(10+c.rand.Uint64N(20))/10, sim.DefaultPriority)
	}
}

// fork takes up to 8 blocks away. Payments come back in the end; of ours anything may be forgotten.
func (c *chaos) fork() {
	c.t.Helper()

	deaf := c.deaf.Swap(nil)
	defer c.deaf.Store(deaf)

	head, err := c.chain.Head(c.t.Context())
	c.must(err)
	f := sim.Fork{Depth: 1 + c.rand.Uint64N(8), Each: map[string]sim.OrphanFate{}}
	blocks, err := c.chain.Blocks(c.t.Context(), head.Tip.Height-f.Depth+1, head.Tip.Height)
	c.must(err)

	for _, b := range blocks {
		for _, m := range b.Transfers {
			if f.Each[m.TxHash] = sim.OrphanFate(c.rand.IntN(3)); c.paid[m.TxHash] {
				f.Each[m.TxHash] = sim.OrphanFate(c.rand.IntN(2))
			}
		}
	}

	c.chain.Fork(f)
}

// now are the payouts as they are stored.
func (c *chaos) now() (all []payout.Payout) {
	c.t.Helper()

	for _, p := range c.payouts {
		all = append(all, c.get(p.ID))
	}

	return all
}

// atRest reports whether all is read, every payment released and every payout over, by transactions
// in blocks of the chain.
func (c *chaos) atRest() bool {
	c.t.Helper()
	head, err := c.chain.Head(c.t.Context())
	c.must(err)
	at, _ := c.cursor()

	return at == head.Tip.Height && len(c.settlements()) == len(c.paid) &&
		!slices.ContainsFunc(
			c.settlements(),
			func(s settlement.Settlement) bool { return s.Status != settlement.Released },
		) &&
		!slices.ContainsFunc(
			c.now(),
			func(p payout.Payout) bool { return p.Status != payout.Confirmed && p.Status != payout.Failed },
		) &&
		!slices.ContainsFunc(c.transactions(), func(t wallet.Transaction) bool {
			return t.State != wallet.Failed && (t.State != wallet.Confirmed || !c.stands(t.Block))
		})
}

func (c *chaos) transactions() []wallet.Transaction {
	c.t.Helper()
	rows, err := internal.Of(c.engine).Store().Transactions(c.t.Context(), network, "", 1000)
	c.must(err)

	return rows
}

// stands reports whether a block is in the chain.
func (c *chaos) stands(block chain.Ref) bool {
	c.t.Helper()
	at, err := c.chain.RefAt(c.t.Context(), block.Height)

	return err == nil && at.Hash == block.Hash
}

// check looks at what is stored while the engine waits for time to pass.
func (c *chaos) check() {
	c.t.Helper()

	deaf := c.deaf.Swap(nil)
	defer c.deaf.Store(deaf)

	byID := map[string]wallet.Transaction{}
	for _, t := range c.transactions() {
		byID[t.ID] = t
	}

	for _, s := range c.settlements() {
		if s.Status != settlement.Released {
			continue
		}

		r, err := internal.Of(c.engine).Store().Sweep(c.t.Context(), s.SweepID)
		c.must(err)

		if sweep := byID[r.Steps[len(r.Steps)-1].TransactionID]; sweep.State != wallet.Confirmed {
			c.t.Fatalf(
				"settlement %s is released by transaction %s, which is %s",
				s.ID, sweep.ID, sweep.State,
			)
		}
	}

	for _, p := range c.now() {
		of, err := internal.Of(c.engine).Store().TransactionsOf(c.t.Context(), p.ID)
		c.must(err)

		if p.Status == payout.Confirmed &&
			!slices.ContainsFunc(of, func(t wallet.Transaction) bool { return t.State == wallet.Confirmed }) {
			c.t.Fatalf("payout %s is confirmed by %+v", p.ID, of)
		}
	}

	head, err := c.chain.Head(c.t.Context())
	c.must(err)
	cursor, _, err := internal.Of(c.engine).Store().Cursor(c.t.Context(), network)
	c.must(err)

	for _, ref := range append([]chain.Ref{cursor.At}, cursor.Recent...) {
		c.read[ref.Hash] = true
	}

	if cursor.At.Hash != head.Tip.Hash {
		return
	}

	for _, t := range byID {
		if t.Block.IsZero() || t.State == wallet.Included || c.stands(t.Block) {
			continue
		}

		if t.State == wallet.Failed || !c.read[t.Block.Hash] {
			// A failure is final, even if a fork undoes it below finality. Or it was seen in a
			// block that was never read, and came and went meanwhile: it is looked at within a
			// minute.
			return
		}

		c.t.Fatalf(
			"%s transaction %s is confirmed in block %d %s, which was read and is not in the chain",
			t.Kind, t.ID, t.Block.Height, t.Block.Hash,
		)
	}

	c.audit()
}

// audit fails unless the records agree with the chain.
func (c *chaos) audit() {
	c.t.Helper()
	a, err := c.engine.Audit(c.t.Context())
	c.must(err)

	for _, d := range a.Differences() {
		c.t.Fatalf("audit: %s: %s %+v", d.Kind, d.Message, d.Records)
	}
}
