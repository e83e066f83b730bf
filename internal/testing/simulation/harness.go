package simulation

import (
	"context"
	"hash"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/webhook"
)

// merchant is an account with what it made.
type merchant struct {
	owner    event.Owner
	index    uint32
	host     string          // of its webhook receiver
	wallets  []chain.Address // by network
	parties  []chain.Party   // by network, for thieves
	invoices []string
	deposits []string
	places   []place // of the deposits
	payouts  []string
	refunds  []string
}

// harness is everything that a run plays with: what outlives a process, the processes, and the oracle.
type harness struct {
	ctx       context.Context
	plan      Plan
	clock     *clock
	ahead     time.Duration // the most that a process's clock ever was ahead of it
	entropy   *entropy
	store     store.Store
	backup    store.Store // an older state; nil before one was taken
	epoch     uint64      // how many restores Config.Epoch counts
	signer    chain.Signer
	feed      *feed
	receivers *receivers
	networks  []network
	processes []*process
	merchants []*merchant
	oracle    *oracle
	account   *Account
	log       *slog.Logger
	trace     hash.Hash64
	// pooled are hashes of payers' transactions that may wait in a pool, by network.
	pooled [][]string
	// recent are the faults that were played just now.
	recent []Kind
	// running is the process that runs; nil while nobody but the oracle asks a node.
	running *process
	// busy is set while an operation runs inside another one.
	busy bool
	// acknowledging is set while the operator says what transactions were that are not on record.
	acknowledging bool
	// accepting is set while a merchant accepts an invoice.
	accepting bool
}

// newHarness returns a harness with funded merchants and all processes running.
func newHarness(ctx context.Context, plan Plan, log *slog.Logger) *harness {
	w := &harness{
		ctx:     ctx,
		plan:    plan,
		clock:   &clock{at: epoch},
		entropy: newEntropy(plan.Seed),
		store:   memory.New(),
		signer:  sim.NewSigner(plan.Seed+1, nil),
		account: newAccount(),
		log:     log,
		trace:   fnv.New64a(),
	}
	w.feed = &feed{clock: w.clock, ethCents: 200_000}
	w.receivers = &receivers{
		harness: w,
		state:   map[string]receiverState{},
		got:     map[string]map[string]int{},
		saw:     map[string]map[string]int{},
	}

	for i := range max(plan.Networks, 1) {
		if plan.UTXO && i == 0 {
			w.networks = append(w.networks, newUTXONetwork(w))
			continue
		}

		if plan.Windows && i == 0 {
			w.networks = append(w.networks, newWindowNetwork(w))
			continue
		}

		w.networks = append(w.networks, newAccountNetwork(w, i))
	}

	w.pooled = make([][]string, len(w.networks))
	w.oracle = newOracle(w)

	for i := range max(plan.Processes, 1) {
		p := &process{harness: w, index: i}
		for _, n := range w.networks {
			p.nodes = append(p.nodes, n.newNode(p))
		}

		w.processes = append(w.processes, p)
		p.boot()
	}

	for _, host := range []string{"corner.example", "market.example"} {
		w.addMerchant(host)
	}

	// So many blocks are read that a fork of any depth finds one that was read before it.
	for _, n := range w.networks {
		n.mine(1)
	}

	if plan.Late {
		w.payDeposits()
	} else {
		w.run(0)
	}

	w.fundWallets()

	for _, n := range w.networks {
		n.mine(48)
	}

	w.run(0)

	return w
}

// payDeposits has every merchant make a deposit address on every network, and a payer pay it.
func (w *harness) payDeposits() {
	for m := range w.merchants {
		for n := range w.networks {
			w.playMerchant(Op{Kind: CreateDeposit, A: uint64(m), B: uint64(n)})
			w.playMerchant(Op{Kind: PayDeposit, A: uint64(m), B: uint64(n), C: uint64(m)<<16 + 100})
		}
	}
}

// addMerchant creates an account with a webhook endpoint and money in its master wallets.
func (w *harness) addMerchant(host string) {
	e := w.processes[0].engine

	created, err := e.Accounts.CreateAccount(w.ctx, account.Settings{Name: host, PayoutsPerHour: 100_000})
	must(err)

	m := &merchant{owner: event.Owner{AccountID: created.ID}, index: created.Index, host: host}
	w.merchants = append(w.merchants, m)

	_, _, err = e.Webhooks.CreateEndpoint(w.ctx, webhook.EndpointParams{
		Owner:  m.owner,
		URL:    "https://" + host + "/hook",
		Events: []event.Type{"*"},
	})
	must(err)

	for _, n := range w.networks {
		party, err := internal.Of(e).Transactions.MasterWallet(w.ctx, n.slug(), m.index)
		must(err)

		m.wallets = append(m.wallets, party.Address)
		m.parties = append(m.parties, party)
		w.oracle.ownWallet(n, party.Address)
	}
}

// fundWallets gives every master wallet money from elsewhere.
func (w *harness) fundWallets() {
	for _, m := range w.merchants {
		for i, n := range w.networks {
			for _, asset := range n.assets() {
				amount := chain.Pow10(asset.Decimals).Mul(20)
				if asset.Kind == chain.Token {
					amount = amount.Mul(1000)
				}

				n.fund(m.wallets[i], asset.Symbol, amount)
			}
		}
	}
}

// aside runs f while no process asks a node.
func (w *harness) aside(f func()) {
	defer func(before *process) { w.running = before }(w.running)

	w.running = nil

	f()
}

// step has one process do one batch of each kind of work, and the oracle look.
func (w *harness) run(process int) {
	w.processes[process%len(w.processes)].run()
	w.oracle.look()
}

// pass lets time pass, with the blocks that are due, and has every process step.
func (w *harness) pass(d time.Duration) {
	w.clock.advance(d)

	for _, n := range w.networks {
		n.mine(w.dueBlocks(n, d))
	}

	for i := range w.processes {
		w.run(i)
	}
}

// dueBlocks returns how many blocks a network makes in a time: one, or as many as are fast.
func (w *harness) dueBlocks(n network, d time.Duration) int {
	if _, ok := n.(*accountNetwork); !ok || !w.plan.Fast {
		return 1
	}

	return min(max(int(d/fastBlocks), 1), mostFastBlocks)
}

// heal ends every fault. Time, forks and what is stored stay as they are.
func (w *harness) heal() {
	for _, p := range w.processes {
		p.storeFaults, p.stoppedUntil, p.offset = nil, time.Time{}, 0
		p.failingReads, p.storeDelay, p.signer = 0, 0, signs
		p.crash.Arm(0, false)

		for _, n := range p.nodes {
			n.heal()
		}

		p.alive()
	}

	w.feed.set(feedWorks)

	w.feed.move(200_000)

	for _, m := range w.merchants {
		w.receivers.state[m.host] = receives
	}

	for _, n := range w.networks {
		n.setFee(1000)

		if outputs, ok := n.(*utxoNetwork); ok {
			outputs.holdBack(0)
		}
	}

	w.closeNonces(false)
}

// restore puts the backup in place of the store; every process starts anew. Where the first one begins the epoch
// apart, it does so without a network, which it serves from its next start on.
func (w *harness) restore(apart network) {
	w.store = copyOf(w.backup)
	if w.plan.Epochs {
		w.epoch++
	}

	for _, p := range w.processes {
		if !w.plan.Epochs {
			p.catchUp() // see lag
		}

		p.boot()
	}

	w.oracle.restored()

	if w.plan.Epochs && w.plan.Apart && len(w.networks) > 1 {
		first := w.processes[0]
		first.without = apart.slug()
		first.boot()
		first.run()
		first.without = ""
		first.boot()
	}
}

// copyOf returns a copy of a store in memory.
func copyOf(s store.Store) store.Store { return s.(interface{ Clone() store.Store }).Clone() }
