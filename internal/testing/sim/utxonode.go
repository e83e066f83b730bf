package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The methods that a Chain does not have.
const (
	MethodUnspent     Method = "Unspent"
	MethodBump        Method = "Bump"
	MethodPaysEnough  Method = "PaysEnough"
	MethodTransfersTo Method = "TransfersTo"
)

// baseNode is what UTXO and Windows have in common: headers, time, addresses and node faults.
type baseNode struct {
	network   chain.Network
	native    chain.Asset
	networkID [8]byte
	seed      uint64
	blockTime time.Duration

	mu          sync.Mutex
	clock       func() time.Time
	clockOffset time.Duration // added by Advance

	headers          []header // by height
	forks            uint64   // number of forks; part of every block's hash
	externalAccounts uint64   // number of accounts created for payers and NewAddress

	lag       uint64 // blocks that the node is behind the tip
	secondLag uint64 // blocks that the second node is behind the tip
	pruned    uint64 // lowest height that the node has
	faults    faults
}

// header is a block's reference with its parent's hash.
type header struct {
	chain.Ref
	parent string
}

// init sets the network up. It panics when the network has no native coin.
func (n *baseNode) init(
	network chain.Network,
	clock func() time.Time,
	blockTime time.Duration,
	intercept func(context.Context, Method) error,
	seed uint64,
) {
	n.network = network.With()

	native, ok := n.network.Native()
	if !ok {
		panic(fmt.Sprintf("sim: network %q has no native coin", network.Slug))
	}

	if clock == nil {
		clock = time.Now
	}

	if blockTime <= 0 {
		blockTime = network.BlockTime
	}

	if blockTime <= 0 {
		blockTime = 2 * time.Second
	}

	id := sha256.Sum256([]byte(network.CAIP2))
	n.native, n.networkID, n.seed = native, [8]byte(id[:8]), seed
	n.clock, n.blockTime, n.faults = clock, blockTime, newFaults(intercept)
}

// Network returns the network's description. The caller may change it.
func (n *baseNode) Network() chain.Network {
	network := n.network
	network.Assets, network.Tiers = slices.Clone(n.network.Assets), slices.Clone(n.network.Tiers)

	return network
}

// ParseAddress returns an address in lower case. A wrong form or checksum is fault.Invalid.
func (n *baseNode) ParseAddress(s string) (chain.Address, error) {
	parsed, err := parseAccount(s)
	if err != nil {
		return "", err
	}

	return parsed.address(), nil
}

// DeriveAddress returns the address of a compressed secp256k1 public key.
func (n *baseNode) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	derived, err := accountOf(key)
	if err != nil {
		return "", err
	}

	return derived.address(), nil
}

// PaymentURI returns "sim:<address>?asset=<symbol>&amount=<base units>".
func (n *baseNode) PaymentURI(to chain.Address, asset chain.Asset, amount chain.Amount) string {
	return (*Chain)(nil).PaymentURI(to, asset, amount)
}

// NewAddress returns an address without a known key.
func (n *baseNode) NewAddress() chain.Address {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.newAccount().address()
}

func (n *baseNode) newAccount() account {
	n.externalAccounts++

	preimage := append([]byte("sim external account"), n.networkID[:]...)
	preimage = binary.BigEndian.AppendUint64(preimage, n.seed)
	preimage = binary.BigEndian.AppendUint64(preimage, n.externalAccounts)
	hash := sha256.Sum256(preimage)

	return account(hash[:20])
}

func (n *baseNode) now() time.Time {
	return n.clock().Add(n.clockOffset).UTC().Truncate(time.Millisecond)
}

func (n *baseNode) tip() uint64 { return uint64(len(n.headers) - 1) }

func (n *baseNode) tipRef() chain.Ref { return n.headers[n.tip()].Ref }

// nodeTip returns the height of the node's newest block.
func (n *baseNode) nodeTip() uint64 { return n.tip() - min(n.lag, n.tip()) }

// nextHeader returns the header of the block after the tip, without its hash.
func (n *baseNode) nextHeader(at time.Time) header {
	next := header{Ref: chain.Ref{Height: uint64(len(n.headers)), Time: at}}
	if next.Height > 0 {
		parent := n.tipRef()

		next.parent = parent.Hash
		if at.Before(parent.Time) {
			next.Time = parent.Time
		}
	}

	return next
}

// sealHeader sets the block's hash, the SHA-256 of its header, seed, fork number, network and
// transactions, and makes it the tip.
func (n *baseNode) sealHeader(next header, transactions []string) {
	h := sha256.New()
	h.Write([]byte(next.parent))

	for _, part := range []uint64{next.Height, uint64(next.Time.UnixMilli()), n.seed, n.forks} {
		h.Write(binary.BigEndian.AppendUint64(nil, part))
	}

	h.Write(n.networkID[:])

	for _, hash := range transactions {
		h.Write([]byte(hash))
	}

	next.Hash = hex.EncodeToString(h.Sum(nil))
	n.headers = append(n.headers, next)
}

// checkFork returns the fork with its length set. It panics when the depth is 0 or reaches genesis.
func (n *baseNode) checkFork(f Fork) Fork {
	if f.Depth == 0 || f.Depth > n.tip() {
		panic(fmt.Sprintf("sim: a fork of %d blocks does not fit a chain of height %d", f.Depth, n.tip()))
	}

	if f.Length == 0 {
		f.Length = f.Depth + 1
	}

	return f
}

// fateOf returns the fate of an orphaned transaction.
func (f Fork) fateOf(hash string) OrphanFate {
	if fate, overridden := f.Each[hash]; overridden {
		return fate
	}

	return f.Fate
}

// Check returns the injected fault, if any. The node always serves the right network.
func (n *baseNode) Check(ctx context.Context) error { return n.call(ctx, MethodCheck) }

// RefAt returns the block at a height.
func (n *baseNode) RefAt(ctx context.Context, height uint64) (chain.Ref, error) {
	if err := n.call(ctx, MethodRefAt); err != nil {
		return chain.Ref{}, err
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	if err := n.checkReadable(height); err != nil {
		return chain.Ref{}, err
	}

	return n.headers[height].Ref, nil
}

// checkAgreed returns nil when the second node has a block too; see LagSecond.
func (n *baseNode) checkAgreed(at chain.Ref) error {
	switch {
	case at.Height+min(n.secondLag, n.tip()) > n.tip():
		return fault.Wrap(
			chain.ErrNotAgreed, fault.Unavailable, "nodes_missing",
			"the second node of network %s has no block %d yet", n.network.Slug, at.Height,
		)
	case n.headers[at.Height].Hash != at.Hash:
		return fault.New(
			fault.NotFound, "block_unknown", "the nodes of network %s have another block %d than %s",
			n.network.Slug, at.Height, at.Hash,
		)
	default:
		return nil
	}
}

// agreedBlock returns what show shows of a block that the second node has too; without hashes its header.
func (n *baseNode) agreedBlock(
	ctx context.Context,
	at chain.Ref,
	hashes []string,
	show func(height uint64) chain.Block,
) (chain.Block, error) {
	if err := n.call(ctx, MethodAgreedBlock); err != nil {
		return chain.Block{}, err
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	if err := n.checkAgreed(at); err != nil {
		return chain.Block{}, err
	}

	if len(hashes) == 0 {
		return chain.Block{Ref: at}, nil
	}

	return show(at.Height), nil
}

// agreedTip returns the height of the newest block that the second node has too.
func (n *baseNode) agreedTip() uint64 { return min(n.nodeTip(), n.tip()-min(n.secondLag, n.tip())) }

// Nodes returns the state of the node, and of the second one while that lags.
func (n *baseNode) Nodes() []chain.NodeState {
	n.mu.Lock()
	defer n.mu.Unlock()

	states := []chain.NodeState{{Name: "node 0", Tip: n.nodeTip()}}
	if n.secondLag > 0 {
		states = append(states, chain.NodeState{
			Name:    "node 1",
			Tip:     n.tip() - min(n.secondLag, n.tip()),
			Trouble: chain.NodeBehind,
			Why:     "it is behind another node",
		})
	}

	return states
}

// checkRange returns the end of a range of heights that one call reads, at most 256 blocks from its
// beginning. An empty, unknown or pruned range is an error.
func (n *baseNode) checkRange(from, to uint64) (end uint64, err error) {
	if from > to {
		return 0, fault.New(
			fault.Invalid, "range_invalid", "the range of blocks %d to %d is empty",
			from, to,
		)
	}

	if err := n.checkReadable(from); err != nil {
		return 0, err
	}

	return min(to, n.nodeTip(), from+maxBlocksPerCall-1), nil
}

// checkReadable returns fault.NotFound for a height above the node's tip and fault.Stopped for a
// pruned one.
func (n *baseNode) checkReadable(height uint64) error {
	if tip := n.nodeTip(); height > tip {
		return fault.New(
			fault.NotFound, "block_unknown", "network %s has no block %d yet: its tip is %d",
			n.network.Slug, height, tip,
		)
	}

	if height < n.pruned {
		return fault.New(
			fault.Stopped,
			"node_pruned",
			"the node of network %s no longer has block %d: its oldest is %d; use a node with the full history",
			n.network.Slug,
			height,
			n.pruned,
		)
	}

	return nil
}
