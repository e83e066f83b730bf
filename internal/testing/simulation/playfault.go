package simulation

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// methods are the calls that fail.
var methods = []sim.Method{
	sim.MethodHead, sim.MethodRefAt, sim.MethodBlocks, sim.MethodPool, sim.MethodTransaction,
	sim.MethodBalances, sim.MethodEstimateFee, sim.MethodNonce, sim.MethodBuild, sim.MethodBroadcast,
	sim.MethodStatus, sim.MethodPlanSweep, sim.AnyMethod,
}

// playFault plays a fault.
func (w *harness) playFault(op Op) {
	p := w.process(op.A)

	switch op.Kind {
	case FailCalls:
		n := w.node(op)
		if n.failing == nil {
			n.failing = map[sim.Method]int{}
		}

		n.failing[methods[op.C%uint64(len(methods))]] = 1 + int(op.C>>32%6)
	case DeadNode:
		w.node(op).dead = true
	case LagNode:
		w.lag(w.node(op), 1+op.C%8)
	case LagFar:
		w.lag(w.node(op), 100_000)
	case LoseAnswers:
		w.node(op).lost = 1 + int(op.C%3)
	case DenyHashes:
		w.node(op).denied = true
	case SilentReceipts:
		w.node(op).silent = true
	case LiePrices:
		w.node(op).lie(op.C)
	case PauseInCall:
		w.pauseInCall(op)
	case StopProcess:
		p.stoppedUntil = w.clock.now().Add(time.Duration(10+op.B%300) * time.Second)
	case KillProcess:
		p.crash.Arm(1+int(op.B%12), op.C%2 == 0)
	case StepClock:
		p.offset = time.Duration(int64(op.B%7200)-3600) * time.Second
		w.ahead = max(w.ahead, p.offset)
	case StoreReads:
		p.failingReads = 1 + int(op.C%6)
	case StoreSlow:
		p.storeDelay = time.Duration(op.C%3000) * time.Millisecond
	case SignerState:
		p.signer = signerState(op.C % signerStates)
	case RepeatAnswers:
		w.node(op).repeats = 1 + int(op.C%8)
	case StoreDown:
		p.storeFaults = append(p.storeFaults, failsBefore)
	case StoreUnknown:
		p.storeFaults = append(p.storeFaults, failsAfter)
	case StoreConflict:
		p.storeFaults = append(p.storeFaults, failsToSerialize)
	default:
		w.playOutside(op)
	}
}

// lag has a node lag by some blocks. Where records were restored without a new epoch none does: what lost records sent
// is seen at the nodes alone then, and one that lags does not show it.
func (w *harness) lag(n *node, blocks uint64) {
	if w.plan.Epochs || !w.oracle.lost {
		n.lag = blocks
	}
}

// catchUp has none of a process's nodes lag.
func (p *process) catchUp() {
	for _, n := range p.nodes {
		n.lag = 0
	}
}

// playOutside plays a fault outside the processes.
func (w *harness) playOutside(op Op) {
	switch op.Kind {
	case ForkChain, ForkDeep:
		w.fork(op)
	case FeeSpike:
		w.network(op.A).setFee(500 + op.B%4000)
	case NoBlocks:
		for range 12 {
			w.clock.advance(5 * time.Minute)
			w.run(int(op.A % 3))
		}
	case CloseNonces:
		w.closeNonces(op.A%2 == 0)
	case PayDust, MineReward, HoldBack:
		w.playCoins(op)
	case FloodReceivers:
		w.flood(op)
	case Steal:
		w.steal(op)
	case RestoreBackup:
		if w.backup == nil || op.A%2 == 0 {
			w.backup = copyOf(w.store)
			w.oracle.backUp()
		} else {
			w.restore(w.network(op.B))
		}
	case FeedState:
		w.feed.set(feedState(op.A % 3))
	case FeedPrice:
		w.feed.move(150_000 + int64(op.A%100_000))
	case ReceiverState:
		w.receivers.state[w.merchant(op.A).host] = receiverState(op.B % 5)
	case Heal:
		w.heal()
		w.acknowledge()
		w.review()
	default:
		panic("simulation: no such operation: " + string(op.Kind))
	}
}

// pauseInCall stops the process inside one of its next calls of a node, while time passes and the others run.
func (w *harness) pauseInCall(op Op) {
	n := w.node(op)
	n.pausesIn = 1 + int(op.C%20)
	n.pause = func() {
		if w.busy {
			return
		}

		w.busy = true
		defer func() { w.busy = false }()

		w.clock.advance(time.Duration(op.C>>32%120) * time.Second)
		w.network(op.B).mine(int(op.C >> 16 % 3))

		for _, other := range w.processes {
			if other != n.process {
				other.run()
			}
		}
	}
}

// fork replaces blocks: above what counts as final, or up to forty, below the confirmations of payments.
func (w *harness) fork(op Op) {
	n := w.network(op.A)
	depth := 1 + op.B%40>>(op.C%6)

	switch {
	case w.plan.BelowFinal && op.Kind == ForkDeep && op.C>>33%2 == 0:
		depth = finalDepth + 1 + op.B%2
	case w.plan.Finality:
		depth = min(depth, finalDepth-1)
	case op.Kind == ForkChain:
		depth = min(depth, 2)
	}

	depth = min(depth, n.tip().Height-1)

	if outputs, ok := n.(*utxoNetwork); ok && w.plan.Coins && op.C>>33%2 == 0 {
		outputs.forkWithout(depth, sim.OrphanFate(op.C>>32%2), w.pooled[op.A%uint64(len(w.networks))])
		return
	}

	if accounts, ok := n.(*accountNetwork); ok && w.plan.Anew && op.C>>33%2 == 0 {
		i := op.A % uint64(len(w.networks))
		back, besides := op.C>>34%2 == 0, op.C>>35%8 == 0
		w.pooled[i] = append(w.pooled[i], accounts.forkAnew(depth, w.pooled[i], back, besides)...)

		return
	}

	n.fork(depth, sim.OrphanFate(op.C>>32%2))
}

// forkAnew replaces the newest blocks by a branch on which payers pay by others what those of some transactions paid
// that were in them; back has those be there once more that had been replaced so before, and besides has what is
// replaced now come later all the same. All else is dropped, for its senders to send once more.
func (n *accountNetwork) forkAnew(depth uint64, hashes []string, back, besides bool) (anew []string) {
	type payment struct {
		hash string
		paid []chain.Transfer
	}

	var gone []payment

	base := n.tip().Height - depth

	for _, hash := range hashes {
		if !n.harness.oracle.ledgers[n.slug()].isAbove(hash, base) {
			continue
		}

		if t, err := n.Transaction(n.harness.ctx, hash); err == nil {
			gone = append(gone, payment{hash, t.Transfers})
		}
	}

	n.Fork(sim.Fork{Depth: depth, Fate: sim.DropOrphan})

	for _, p := range gone {
		if before, replaced := n.insteadOf[p.hash]; back && replaced && n.SendAgain(before) {
			n.insteadOf[before] = p.hash
			continue
		}

		for _, t := range p.paid {
			asset, _ := n.described.AssetByID(t.AssetID)
			anew = append(anew, n.Pay(t.To, asset.Symbol, t.Amount))
			n.insteadOf[anew[len(anew)-1]] = p.hash
		}
	}

	n.mine(1)

	if besides {
		for _, p := range gone {
			n.SendAgain(p.hash)
		}
	}

	return anew
}
