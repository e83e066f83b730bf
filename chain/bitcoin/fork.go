package bitcoin

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file compares the chains of nodes. The chain with the most work counts, as far as headers prove the
// work.

const (
	// maxBranch is the number of headers above a fork that are read of each branch. On longer branches the
	// work that a node claims counts.
	maxBranch = 2016
	// maxNaturalFork is the number of blocks on both sides from which a fork is reported. Shorter forks are
	// normal.
	maxNaturalFork = 4
	// otherChain is the code of a node that follows a chain with less work than another node's.
	otherChain = "node_other_chain"
)

// lostFork describes a fork that a node lost: another node has proven more work above it.
type lostFork struct {
	// height is that of the first block in which the two nodes differ; hash is the other node's block there.
	height uint64
	hash   string
	why    string
}

// standing is the result of comparing one node's chain with another node's.
type standing struct {
	// behind is set when the other node has minLead blocks on top of the tip.
	behind bool
	// lost is set when the other node's branch outweighs the node's; won is set in the opposite case. Neither
	// is set for nodes on one chain, or on branches that differ by fewer than minLead blocks.
	lost, won *lostFork
}

// checkChain returns a *failover.Failure when another node proves that a node is behind (node_behind) or
// follows a chain with less work (node_other_chain). Other nodes that follow a chain with less work are not
// asked until they have that of most work.
func (d *driver) checkChain(ctx context.Context, node *endpoint, tip headerJSON) error {
	if len(d.nodes.Nodes) == 1 {
		return nil
	}

	compared, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()

	var (
		wait      sync.WaitGroup
		standings = make([]standing, len(d.nodes.Nodes))
	)

	for i, other := range d.nodes.Nodes {
		if other == node || time.Now().UnixNano() < other.skipUntil.Load() {
			continue
		}

		wait.Go(func() {
			var err error
			if standings[i], err = d.compareChains(compared, node, other, tip); err != nil {
				other.skipUntil.Store(time.Now().Add(skipFor).UnixNano())
			}

			other.NoteAnswer(ctx, err)
		})
	}

	wait.Wait()

	if ctx.Err() != nil {
		return ctx.Err()
	}

	for i, other := range d.nodes.Nodes {
		if lost := standings[i].lost; lost != nil {
			other.fork.Store(nil)
			d.loseFork(ctx, node, lost)

			return node.onOtherChain(lost)
		}

		if standings[i].behind {
			return &failover.Failure{
				Host:    node.Host,
				Code:    "node_behind",
				Trouble: chain.NodeBehind,
				What:    "it is behind: node " + other.Host + " has blocks on top of its newest one",
			}
		}

		if won := standings[i].won; won != nil {
			d.loseFork(ctx, other, won)
		}
	}

	return nil
}

// loseFork excludes a node from calls until it is on the other branch.
func (d *driver) loseFork(ctx context.Context, node *endpoint, fork *lostFork) {
	if node.fork.Swap(fork) == nil {
		d.log.ErrorContext(
			ctx, "node follows another chain",
			"network", d.network.Slug, "host", node.Host, "error", fork.why,
		)
	}

	node.Note(chain.NodeForked, true, fork.why)
}

func (e *endpoint) onOtherChain(fork *lostFork) error {
	return &failover.Failure{Host: e.Host, Code: otherChain, What: fork.why, Trouble: chain.NodeForked}
}

// checkFork returns a *failover.Failure (node_other_chain) for a node that lost a fork, until it has the other
// branch's block.
func (e *endpoint) checkFork(ctx context.Context) error {
	fork := e.fork.Load()
	if fork == nil {
		return nil
	}

	hash, err := e.hashAt(ctx, fork.height)

	switch {
	case err != nil && !errors.Is(err, fault.NotFound):
		return err
	case err != nil || hash != fork.hash:
		return e.onOtherChain(fork)
	}

	if e.fork.CompareAndSwap(fork, nil) {
		e.Note(chain.NodeForked, false, "")
	}

	return nil
}

// compareChains compares the chain of a node, up to its tip, with that of another one. An error is a failure
// of the other node.
func (d *driver) compareChains(ctx context.Context, node, other *endpoint, tip headerJSON) (standing, error) {
	if err := d.nodes.Check(ctx, other); err != nil {
		return standing{}, err
	}

	theirs, err := other.tip(ctx)
	if err != nil {
		return standing{}, err
	}

	if theirs.Hash == tip.Hash {
		other.settle()
		return standing{}, nil
	}

	same, err := d.sameAt(ctx, node, other, uint64(min(tip.Height, theirs.Height)))
	if err != nil {
		return standing{}, err
	}

	if !same {
		return d.weighFork(ctx, node, other, tip, theirs)
	}

	other.settle()

	if theirs.Height < tip.Height+minLead {
		return standing{}, nil
	}

	ahead, err := d.isAhead(ctx, other, tip)

	return standing{behind: ahead}, err
}

// settle clears the node's lost fork: it is on the chain of another node that was asked.
func (e *endpoint) settle() {
	e.fork.Store(nil)
	e.Note(chain.NodeForked, false, "")
}

// sameAt reports whether two nodes have the same block at a height. If node does not answer, or other has no
// block there, it reports true.
func (d *driver) sameAt(ctx context.Context, node, other *endpoint, height uint64) (bool, error) {
	theirs, err := other.hashAt(ctx, height)
	if errors.Is(err, fault.NotFound) {
		return true, nil // its chain became shorter meanwhile; the next comparison will find it
	}

	if err != nil {
		return false, err
	}

	ours, err := node.hashAt(ctx, height)

	return err != nil || ours == theirs, nil
}

// weighFork compares the work of two nodes above the block where their chains separate.
func (d *driver) weighFork(
	ctx context.Context,
	node, other *endpoint,
	tip, theirs headerJSON,
) (standing, error) {
	parted, err := d.partedAt(ctx, node, other, uint64(min(tip.Height, theirs.Height)))
	if err != nil {
		return standing{}, err
	}

	their, err := d.readBranch(ctx, other, parted, theirs)
	if err != nil {
		return standing{}, err
	}

	ours, err := d.readBranch(ctx, node, parted, tip)
	if err != nil {
		return standing{}, nil // its other calls will show what is wrong with it
	}

	switch {
	case their.outweighs(ours):
		return standing{lost: lostTo(other, parted, their)}, nil
	case ours.outweighs(their):
		return standing{won: lostTo(node, parted, ours)}, nil
	case min(ours.blocks, their.blocks) >= maxNaturalFork:
		other.Note(chain.NodeForked, true, fmt.Sprintf(
			"from block %d on it has other blocks than node %s, with about as much work: no payment confirms in them",
			parted,
			node.Host,
		))
	}

	return standing{}, nil
}

// lostTo describes the fork that a node of another branch lost to winner.
func lostTo(winner *endpoint, parted uint64, won branch) *lostFork {
	return &lostFork{
		height: parted,
		hash:   won.first,
		why: fmt.Sprintf(
			"it follows another chain: from block %d on node %s has other blocks, with more work. Payments in its "+
				"blocks do not count. Replace it by a node that follows the network's rules, such as Bitcoin Core",
			parted,
			winner.Host,
		),
	}
}

// partedAt returns the lowest height at which two nodes have different blocks. At differ they do.
func (d *driver) partedAt(ctx context.Context, node, other *endpoint, differ uint64) (uint64, error) {
	same := uint64(0) // the genesis block was verified

	for step := uint64(1); step < differ && same == 0; step *= 2 {
		equal, err := d.sameAt(ctx, node, other, differ-step)
		if err != nil {
			return 0, err
		}

		if equal {
			same = differ - step
		} else {
			differ -= step
		}
	}

	for same+1 < differ {
		middle := same + (differ-same)/2

		equal, err := d.sameAt(ctx, node, other, middle)
		if err != nil {
			return 0, err
		}

		if equal {
			same = middle
		} else {
			differ = middle
		}
	}

	return differ, nil
}

// branch is a node's chain above a fork.
type branch struct {
	// first is the hash of its lowest block.
	first  string
	blocks uint64
	work   *big.Int
}

// outweighs reports whether a branch exceeds another one by the work of minLead of its own blocks.
func (b branch) outweighs(other branch) bool {
	lead := new(big.Int).Sub(b.work, other.work)
	lead.Mul(lead, new(big.Int).SetUint64(b.blocks))

	return lead.Sign() > 0 && lead.Cmp(new(big.Int).Mul(b.work, big.NewInt(minLead))) >= 0
}

// readBranch returns a node's branch from a height up to its tip. The headers are verified: they are linked,
// meet their targets, and have the targets that the chain requires.
func (d *driver) readBranch(
	ctx context.Context,
	node *endpoint,
	from uint64,
	tip headerJSON,
) (branch, error) {
	below, err := node.hashAt(ctx, from-1)
	if err != nil {
		return branch{}, err
	}

	fork, err := node.header(ctx, below)
	if err != nil {
		return branch{}, err
	}

	parent, err := node.rawHeader(ctx, below)
	if err != nil {
		return branch{}, err
	}

	read := branch{blocks: uint64(tip.Height) - from + 1, work: new(big.Int)}
	end := from + min(read.blocks, maxBranch)

	for height := from; height < end; height += maxBatch {
		headers, err := node.headers(ctx, height, min(end-height, maxBatch))
		if err != nil {
			return branch{}, err
		}

		if height == from {
			read.first = headers[0].BlockHash().String()
		}

		for i, header := range headers {
			first, err := d.periodHeader(ctx, node, height+uint64(i))
			if err != nil {
				return branch{}, err
			}

			if !d.extends(header, parent, first, height+uint64(i)) {
				return branch{}, node.Garbled("its block %s does not extend its chain", header.BlockHash())
			}

			read.work.Add(read.work, workOf(header.Bits))
			parent = header
		}
	}

	if read.blocks > maxBranch {
		read.work, err = claimedWork(node, fork, tip)
		return read, err
	}

	if parent.BlockHash().String() != tip.Hash {
		return branch{}, node.Garbled("the chain moved while it was compared")
	}

	return read, nil
}

// headers returns n canonical headers, at most maxBatch, from a height on, each verified against its hash.
func (e *endpoint) headers(ctx context.Context, from, n uint64) ([]*wire.BlockHeader, error) {
	hashes := make([]*rpcCall, n)
	for i := range hashes {
		hashes[i] = newCall("getblockhash", from+uint64(i))
	}

	if err := e.batchCall(ctx, hashes...); err != nil {
		return nil, err
	}

	calls := make([]*rpcCall, n)

	for i, call := range hashes {
		var hash string
		if err := call.decode(e, &hash); err != nil {
			return nil, err
		}

		calls[i] = newCall("getblockheader", hash, false)
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	headers := make([]*wire.BlockHeader, n)

	for i, call := range calls {
		var (
			text string
			err  error
		)

		if err = call.decode(e, &text); err != nil {
			return nil, err
		}

		if headers[i], err = e.decodeHeader(call.args[0].(string), text); err != nil {
			return nil, err
		}
	}

	return headers, nil
}

// claimedWork returns the work that a node claims for its chain from a block to its tip.
func claimedWork(node *endpoint, from, tip headerJSON) (*big.Int, error) {
	var works [2]*big.Int

	for i, text := range []string{from.Work, tip.Work} {
		work, ok := new(big.Int).SetString(text, 16)
		if !ok {
			return nil, node.Garbled("it does not say the work of its chain")
		}

		works[i] = work
	}

	return works[1].Sub(works[1], works[0]), nil
}

// workOf returns the expected number of hashes for a block: 2^256 / (target + 1). Source: Bitcoin Core, src/chain.cpp,
// GetBlockProof.
func workOf(bits uint32) *big.Int {
	target := compactTarget(bits)

	return target.Div(new(big.Int).Lsh(big.NewInt(1), 256), target.Add(target, big.NewInt(1)))
}

// pinnedBlocks returns the blocks that every node must have: those of the configuration, and the newest checkpoint of
// the network. Source of the checkpoints: btcd, chaincfg.
func (d *driver) pinnedBlocks() []pinnedBlock {
	pins := make([]pinnedBlock, 0, len(d.config.Pinned)+1)

	if points := d.params.Checkpoints; len(points) > 0 {
		newest := points[len(points)-1]
		pins = append(pins, pinnedBlock{uint64(newest.Height), newest.Hash.String()})
	}

	for _, pin := range d.config.Pinned {
		pins = append(pins, pinnedBlock{pin.Height, pin.Hash})
	}

	return slices.Clip(pins)
}

// pinnedBlock is a block that every node must have.
type pinnedBlock struct {
	height uint64
	hash   string
}

// check returns the error of a node that has another block (*failover.Mismatch) or ends below it
// (*failover.Failure, node_behind).
func (p pinnedBlock) check(node *endpoint, call *rpcCall) error {
	if failover.RefusedWith(call.err, codeOutOfRange, codeMisc) {
		return &failover.Failure{
			Host: node.Host,
			Code: "node_behind",
			What: fmt.Sprintf("it has not reached block %d, which the configuration pins", p.height),
		}
	}

	var hash string
	if err := call.decode(node, &hash); err != nil {
		return err
	}

	if hash != p.hash {
		return &failover.Mismatch{
			Host:  node.Host,
			Shows: fmt.Sprintf("follows another chain: its block %d is %s", p.height, node.Clean(hash)),
			Want:  p.hash,
		}
	}

	return nil
}
