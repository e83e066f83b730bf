package simulation

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// node is the node that one process reads a network from. It answers as the network does, until a fault is
// set. The process may be killed at each call.
type node struct {
	*sim.Chain
	// other is the driver of a network without a Chain.
	other   chain.Driver
	process *process
	slug    string

	// dead has every call fail; failing are methods whose next calls fail, by number.
	dead    bool
	failing map[sim.Method]int

	// lag is the number of blocks that the node is behind.
	lag uint64

	// faults are what the driver's preferred node does wrong.
	faults sim.NodeFaults
	lies   bool

	// lost is the number of broadcasts that take effect and are not answered.
	lost int

	// denied has the node deny every transaction that is in a block when it is asked by its hash.
	denied bool

	// silent has the node answer receipts by hash without their logs.
	silent bool

	// named are the prices and gas that the node of the driver's nodes names whose index is liar.
	named sim.NodeFaults
	liar  int

	// repeats is the number of calls that come twice, or that are answered as an earlier one was; head is that answer.
	repeats int
	head    chain.Head

	// pausesIn is the number of calls until the process is stopped inside one, and pause what happens then.
	pausesIn int
	pause    func()
}

func (n *node) driver() chain.Driver {
	if n.other != nil {
		return n.other
	}

	return n
}

// troubled reports whether the node has a fault.
func (n *node) troubled() bool {
	return n.dead || len(n.failing) > 0 || n.lag > 0 || n.lost > 0 || n.denied || n.silent || n.lies ||
		n.lied() ||
		n.pausesIn > 0 ||
		n.repeats > 0
}

// heal ends all faults.
func (n *node) heal() {
	*n = node{Chain: n.Chain, other: n.other, process: n.process, slug: n.slug}
}

// call is run before every call; leave is run after it.
func (n *node) call(method sim.Method) (leave func(), err error) {
	w := n.process.harness
	w.account.calls++

	if n.pausesIn > 0 {
		if n.pausesIn--; n.pausesIn == 0 {
			pause := n.pause
			n.pause = nil
			pause()
		}
	}

	if err := n.process.crash.Call(string(method)); err != nil {
		return nil, err
	}

	if n.dead {
		return nil, sim.Unavailable()
	}

	for _, key := range []sim.Method{method, sim.AnyMethod} {
		if left, fails := n.failing[key]; fails {
			if left--; left == 0 {
				delete(n.failing, key)
			} else {
				n.failing[key] = left
			}

			return nil, sim.Unavailable()
		}
	}

	if n.Chain == nil || n.lag == 0 && !n.lies && !n.lied() {
		return func() {}, nil
	}

	faults := make([]sim.NodeFaults, max(w.plan.Nodes, 1))
	faults[0] = n.faults
	faults[0].Behind = n.lag

	named := &faults[n.liar]
	named.BaseFee, named.Priority, named.Gas = n.named.BaseFee, n.named.Priority, n.named.Gas

	for i := range faults {
		n.SetNode(i, faults[i])
	}

	return func() {
		for i := range faults {
			n.SetNode(i, sim.NodeFaults{})
		}
	}, nil
}

// lied reports whether a node names prices or gas of its own.
func (n *node) lied() bool { return n.named.BaseFee > 0 || n.named.Priority > 0 || n.named.Gas > 0 }

// lie has one of the driver's nodes name a price or gas that is too high or too low, a little or by far.
func (n *node) lie(draw uint64) {
	times := []struct{ mul, div uint64 }{
		{1, 1_000_000_000}, {1, 20}, {1, 2}, {3, 2}, {4, 1}, {40, 1}, {1_000, 1}, {1_000_000, 1},
	}[draw%8]
	of := func(usual uint64) uint64 { return max(usual*times.mul/times.div, 1) }

	n.liar = int(draw >> 8 % uint64(max(n.process.harness.plan.Nodes, 1)))

	switch draw >> 16 % 4 {
	case 0:
		n.named = sim.NodeFaults{BaseFee: of(sim.DefaultBaseFee)}
	case 1:
		n.named = sim.NodeFaults{Gas: of(sim.GasToken)}
	default:
		n.named = sim.NodeFaults{Priority: of(sim.DefaultPriority)}
	}
}

// ask is one call of the node.
func ask[T any](n *node, method sim.Method, do func() (T, error)) (answer T, err error) {
	leave, err := n.call(method)
	if err != nil {
		return answer, err
	}
	defer leave()

	return do()
}

// Head asks the node for its newest blocks.
func (n *node) Head(ctx context.Context) (chain.Head, error) {
	return ask(n, sim.MethodHead, func() (chain.Head, error) {
		head, err := n.Chain.Head(ctx)
		if err == nil {
			head, n.head = n.reordered(head), head
		}

		return head, err
	})
}

// RefAt asks the node for the block of a height.
func (n *node) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	return ask(n, sim.MethodRefAt, func() (chain.Ref, error) { return n.Chain.RefAt(ctx, height) })
}

// Blocks asks the node for blocks.
func (n *node) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	return ask(n, sim.MethodBlocks, func() ([]chain.Block, error) { return n.Chain.Blocks(ctx, from, to) })
}

// Pool asks the node for its pool.
func (n *node) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	return ask(n, sim.MethodPool, func() ([]chain.PoolTx, error) { return n.Chain.Pool(ctx) })
}

// Transaction asks the node for a transaction.
func (n *node) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	return ask(n, sim.MethodTransaction, func() (chain.FoundTx, error) {
		found, err := n.Chain.Transaction(ctx, hash)
		if err == nil && n.denied && !found.Block.IsZero() {
			return chain.FoundTx{}, fault.New(
				fault.NotFound,
				"transaction_unknown",
				"no transaction %s",
				hash,
			)
		}

		return found, err
	})
}

// Balances asks the node for balances.
func (n *node) Balances(ctx context.Context, at chain.Ref, holdings []chain.Holding) ([]chain.Amount, error) {
	return ask(n, sim.MethodBalances, func() ([]chain.Amount, error) {
		return n.Chain.Balances(ctx, at, holdings)
	})
}

// EstimateFee asks the node for fees.
func (n *node) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	return ask(
		n,
		sim.MethodEstimateFee,
		func() (chain.Amount, error) { return n.Chain.EstimateFee(ctx, order) },
	)
}

// Nonce asks the node for a nonce.
func (n *node) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	return ask(n, sim.MethodNonce, func() (uint64, error) { return n.Chain.Nonce(ctx, address) })
}

// Build asks the node for prices and builds a transaction.
func (n *node) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	return ask(n, sim.MethodBuild, func() (chain.Unsigned, error) { return n.Chain.Build(ctx, order) })
}

// reordered returns the answer that a call of Head gets: of the call before it, where answers come late.
func (n *node) reordered(head chain.Head) chain.Head {
	if n.repeats == 0 || n.head.Tip.IsZero() {
		return head
	}

	n.repeats--

	return n.head
}

// Broadcast gives the node a transaction.
func (n *node) Broadcast(ctx context.Context, signed chain.Signed) error {
	n.process.harness.oracle.checkStored(n.slug, signed)

	_, err := ask(n, sim.MethodBroadcast, func() (struct{}, error) {
		if n.repeats > 0 {
			n.repeats--

			return struct{}{}, errors.Join(n.Chain.Broadcast(ctx, signed), n.Chain.Broadcast(ctx, signed))
		}

		return struct{}{}, n.Chain.Broadcast(ctx, signed)
	})
	if n.lost > 0 && (err == nil || !errors.Is(err, fault.Unavailable)) {
		n.lost--

		return sim.Unavailable()
	}

	return err
}

// Status asks the node for a transaction of ours.
func (n *node) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	return ask(n, sim.MethodStatus, func() (chain.TxStatus, error) {
		status, err := n.Chain.Status(ctx, signed)
		if err != nil || status.State != chain.TxIncluded {
			return status, err
		}

		if n.denied {
			return n.denial(signed), nil
		}

		if n.silent {
			status.Transfers = nil
		}

		return status, nil
	})
}

// denial returns the status of a transaction that the node does not find: what a driver concludes from the
// sender's final nonce.
func (n *node) denial(signed chain.Signed) chain.TxStatus {
	other := signed
	other.TxHash = "denied"

	status, err := n.Chain.Status(n.process.harness.ctx, other)
	must(err)

	return status
}

// AgreedBlock asks the nodes for a block.
func (n *node) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return ask(
		n,
		sim.MethodAgreedBlock,
		func() (chain.Block, error) { return n.Chain.AgreedBlock(ctx, at, hashes) },
	)
}

// AgreedHead asks the nodes for their newest blocks.
func (n *node) AgreedHead(ctx context.Context) (chain.Head, error) {
	return ask(n, sim.MethodAgreedHead, func() (chain.Head, error) { return n.Chain.AgreedHead(ctx) })
}

// Check asks the node which network it serves.
func (n *node) Check(ctx context.Context) error {
	_, err := ask(n, sim.MethodCheck, func() (struct{}, error) { return struct{}{}, n.Chain.Check(ctx) })

	return err
}

// PlanSweep asks the node for what a release needs.
func (n *node) PlanSweep(ctx context.Context, request chain.SweepRequest) ([]chain.SweepStep, error) {
	return ask(n, sim.MethodPlanSweep, func() ([]chain.SweepStep, error) {
		return n.Chain.PlanSweep(ctx, request)
	})
}
