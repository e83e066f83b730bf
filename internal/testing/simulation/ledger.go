package simulation

import (
	"maps"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// arrival is what arrived at a holding on one branch of a network, in base units.
type arrival struct {
	// all is from anybody, foreign without what our own wallets and addresses sent, swept what others of our addresses
	// sent.
	all, foreign, swept chain.Amount
}

// treeBlock is a block that was canonical once.
type treeBlock struct {
	ref    chain.Ref
	parent *treeBlock
	// arrived are the sums from the first block to this one; shared with the parent when nothing arrived.
	arrived map[chain.Holding]arrival
}

// ledger follows one network by its blocks: every block that was ever canonical, and what arrived there.
type ledger struct {
	oracle    *oracle
	network   network
	tree      map[string]*treeBlock
	canonical []*treeBlock // by height
	// heights are the last heights of transactions, by hash.
	heights map[string]uint64
	// blocks are the last blocks of transactions, and failed those of the ones that failed, by hash.
	blocks, failed map[string]chain.Ref
	// ours are the addresses whose keys the service has.
	ours map[chain.Address]bool
	// deepest is the number of blocks that the deepest fork replaced; 0: the chain never forked.
	deepest uint64
	// exact is set once a block was one whose transfers are what arrived; coins are the outputs that ours got there.
	exact bool
	coins map[chain.Outpoint]coin
}

func newLedger(o *oracle, n network) *ledger {
	return &ledger{
		oracle:  o,
		network: n,
		tree:    map[string]*treeBlock{},
		heights: map[string]uint64{},
		blocks:  map[string]chain.Ref{},
		failed:  map[string]chain.Ref{},
		ours:    map[chain.Address]bool{},
		coins:   map[chain.Outpoint]coin{},
	}
}

func (l *ledger) tip() *treeBlock {
	if len(l.canonical) == 0 {
		return nil
	}

	return l.canonical[len(l.canonical)-1]
}

// sync reads the blocks that are new, and reports whether there were any.
func (l *ledger) sync() bool {
	tip := l.network.tip()
	if last := l.tip(); last != nil && last.ref.Hash == tip.Hash {
		return false
	}

	// Down to the newest block that is known.
	var fresh []truthBlock

	for height := tip.Height; ; height-- {
		if height < uint64(len(l.canonical)) {
			known := l.canonical[height]
			if height == tip.Height && known.ref.Hash == tip.Hash {
				break
			}
		}

		b := l.network.block(height)
		if height < uint64(len(l.canonical)) && l.canonical[height].ref.Hash == b.ref.Hash {
			break
		}

		fresh = append(fresh, b)

		if height == 0 {
			break
		}
	}

	keep := tip.Height + 1 - uint64(len(fresh))
	if dropped := uint64(len(l.canonical)); dropped > keep {
		l.deepest = max(l.deepest, dropped-keep)
	}

	l.canonical = l.canonical[:min(keep, uint64(len(l.canonical)))]
	l.dropCoins(keep)

	for i := len(fresh) - 1; i >= 0; i-- {
		l.add(fresh[i])
	}

	return true
}

// add adds a block on top of the canonical chain.
func (l *ledger) add(b truthBlock) {
	t := &treeBlock{ref: b.ref, parent: l.tip()}
	if t.parent != nil {
		t.arrived = t.parent.arrived
	}

	if arrived := l.arrivals(b); len(arrived) > 0 {
		t.arrived = maps.Clone(t.arrived)
		if t.arrived == nil {
			t.arrived = map[chain.Holding]arrival{}
		}

		for holding, more := range arrived {
			sum := t.arrived[holding]
			t.arrived[holding] = arrival{
				all:     sum.all.Add(more.all),
				foreign: sum.foreign.Add(more.foreign),
				swept:   sum.swept.Add(more.swept),
			}
		}
	}

	l.exact = b.exact
	l.addCoins(b.ref.Height, b.coins)
	l.tree[b.ref.Hash] = t
	l.canonical = append(l.canonical, t)

	for _, tx := range b.txs {
		l.heights[tx.hash], l.blocks[tx.hash] = b.ref.Height, b.ref

		if delete(l.failed, tx.hash); tx.failed {
			l.failed[tx.hash] = b.ref
		}

		if l.ours[tx.sender] {
			l.oracle.checkCost(l, tx)
		}

		if l.ours[tx.sender] && !tx.failed {
			l.oracle.sent(l, tx)
		}
	}
}

// has reports whether a block is canonical.
func (l *ledger) has(at chain.Ref) bool {
	return at.Height < uint64(len(l.canonical)) && l.canonical[at.Height].ref.Hash == at.Hash
}

// isCanonical reports whether a transaction is in a canonical block.
func (l *ledger) isCanonical(hash string) bool {
	at, known := l.blocks[hash]

	return known && l.has(at)
}

// isAbove reports whether a transaction is in a canonical block above a height.
func (l *ledger) isAbove(hash string, height uint64) bool {
	return l.blocks[hash].Height > height && l.isCanonical(hash)
}

// arrivals returns what arrived in a block: the net of what its transactions show, or the rise of the balance
// where that is less.
func (l *ledger) arrivals(b truthBlock) map[chain.Holding]arrival {
	in, out := map[chain.Holding]chain.Amount{}, map[chain.Holding]chain.Amount{}
	swept := map[chain.Holding]chain.Amount{}
	own, spent := map[chain.Holding]chain.Amount{}, map[chain.Holding]chain.Amount{}

	native := l.native()

	for _, tx := range b.txs {
		fee := chain.Holding{Address: tx.sender, AssetID: native}
		spent[fee] = spent[fee].Add(tx.fee)

		for _, t := range tx.shown {
			to, from := chain.Holding{
				Address: t.To,
				AssetID: t.AssetID,
			}, chain.Holding{
				Address: t.From,
				AssetID: t.AssetID,
			}

			in[to] = in[to].Add(t.Amount)
			if l.ours[tx.sender] {
				own[to] = own[to].Add(t.Amount)
				if t.From != t.To {
					swept[to] = swept[to].Add(t.Amount)
				}
			}

			if t.From == tx.sender {
				spent[from] = spent[from].Add(t.Amount)
			} else {
				out[from] = out[from].Add(t.Amount)
			}
		}
	}

	arrived := map[chain.Holding]arrival{}

	for to, gross := range in {
		if b.exact {
			arrived[to] = arrival{all: gross, foreign: gross.SubFloor(own[to])}
			continue
		}

		holdings := []chain.Holding{to}
		after, before := l.network.balances(b.ref.Height, holdings)[0], chain.Amount{}

		if b.ref.Height > 0 {
			before = l.network.balances(b.ref.Height-1, holdings)[0]
		}

		all := chaindata.Min(gross.SubFloor(out[to]), after.Add(spent[to]).SubFloor(before))
		arrived[to] = arrival{all: all, foreign: all.SubFloor(own[to]), swept: chaindata.Min(all, swept[to])}
	}

	return arrived
}

func (l *ledger) native() string {
	for _, asset := range l.network.assets() {
		if asset.Kind == chain.Native {
			return asset.ID
		}
	}

	return ""
}

// arrived returns what arrived at a holding up to a block that was canonical once. known is false for another
// block.
func (l *ledger) arrived(hash string, holding chain.Holding) (sum arrival, known bool) {
	b, known := l.tree[hash]
	if !known {
		return arrival{}, false
	}

	return b.arrived[holding], true
}
