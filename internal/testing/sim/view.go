package sim

// What one node shows of the network. The caller holds mu.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The reasons of Block.Unverified.
const (
	unverifiedDriver = "the driver verifies no blocks"
	unverifiedHeader = "unknown header fields"
	unverifiedType   = "unknown transaction type"
)

// final returns the height of the node's newest final block.
func (n *node) final() uint64 {
	return min(n.c.final, n.tip-min(n.c.config.FinalDepth, n.tip))
}

// safe returns the height of the node's newest safe block.
func (n *node) safe() uint64 {
	return max(n.final(), n.tip-min(n.c.config.SafeDepth, n.tip))
}

// checkReadable returns fault.NotFound for a height above the node's tip and fault.Stopped for a
// pruned one.
func (n *node) checkReadable(height uint64) error {
	if height > n.tip {
		return fault.New(
			fault.NotFound, "block_unknown", "network %s has no block %d yet: its tip is %d",
			n.c.network.Slug, height, n.tip,
		)
	}

	if height < n.faults.PrunedBelow {
		return fault.New(
			fault.Stopped,
			"node_pruned",
			"the node of network %s no longer has block %d: its oldest is %d; use a node with the full history",
			n.c.network.Slug,
			height,
			n.faults.PrunedBelow,
		)
	}

	return nil
}

// ref returns the node's block at a height.
func (n *node) ref(height uint64) chain.Ref {
	if _, madeUp := n.faults.Blocks[height]; madeUp {
		return n.madeUp(height).Ref
	}

	return n.c.blocks[height].ref
}

// block returns the node's block at a height as the driver takes it. Contents that the driver notices
// to be wrong are fault.Unavailable.
func (n *node) block(height uint64) (chain.Block, error) {
	actual := n.c.blocks[height].shown()

	var unverified string

	switch {
	case n.c.config.Unverified:
		unverified = unverifiedDriver
	case n.faults.UnknownHeader:
		unverified = unverifiedHeader
	case slices.ContainsFunc(
		n.c.blocks[height].receipts, func(r *receipt) bool { return n.c.unknownType[r.hash] },
	):
		unverified = unverifiedType
	}

	if _, madeUp := n.faults.Blocks[height]; madeUp {
		b := n.madeUp(height)
		if b.Hash == actual.Hash && unverified == "" {
			return chain.Block{}, n.contradiction(height)
		}

		b.Unverified = cmp.Or(b.Unverified, unverified)

		return b, nil
	}

	if all := len(actual.Transfers); all > 0 {
		actual.Transfers = slices.DeleteFunc(actual.Transfers, n.drops)
		if len(actual.Transfers) < all && (unverified == "" || !n.faults.DropsBloom) {
			return chain.Block{}, n.contradiction(height)
		}
	}

	actual.Unverified = unverified

	return actual, nil
}

// drops reports whether the node's blocks lack a transfer, which is a log.
func (n *node) drops(t chain.Transfer) bool {
	return t.AssetID != n.c.native.ID && slices.Contains(n.faults.DropsLogs, t.TxHash)
}

func (n *node) contradiction(height uint64) error {
	return fault.New(
		fault.Unavailable, "node_unavailable",
		"block %d of a node of network %s contradicts its header",
		height, n.c.network.Slug,
	)
}

// madeUp returns the block that the node shows in place of the network's, complete.
func (n *node) madeUp(height uint64) chain.Block {
	actual, b := n.c.blocks[height], n.faults.Blocks[height]
	b.Transfers, b.Spent = slices.Clone(b.Transfers), slices.Clone(b.Spent)

	if b.Hash == "" {
		hash := sha256.Sum256(
			fmt.Appendf(nil, "sim made-up block %d %s", slices.Index(n.c.nodes, n), actual.ref.Hash),
		)
		b.Hash = hex.EncodeToString(hash[:])
	}

	b.Height = height

	b.Parent = cmp.Or(b.Parent, actual.parent)
	if b.Time.IsZero() {
		b.Time = actual.ref.Time
	}

	return b
}

// transaction returns what the node says about a hash.
func (n *node) transaction(hash string) (chain.FoundTx, error) {
	unknown := fault.New(
		fault.NotFound, "transaction_unknown", "network %s knows no transaction %q",
		n.c.network.Slug, hash,
	)
	if slices.Contains(n.faults.Denies, hash) {
		return chain.FoundTx{}, unknown
	}

	if included := n.included(hash); included != nil {
		return chain.FoundTx{
			TxHash:    hash,
			Block:     n.ref(included.height),
			Transfers: n.transfersOf(included),
			Failed:    included.reverted,
			Spent:     []chain.Spend{included.spend()},
		}, nil
	}

	if entry := n.c.pool.byHash[hash]; entry != nil {
		return chain.FoundTx{
			TxHash:    hash,
			Transfers: n.c.claimed(entry, true),
			Spent:     []chain.Spend{entry.tx.nonceSpend(hash)},
		}, nil
	}

	return n.madeUpTransaction(hash, unknown)
}

// included returns the receipt of a transaction, or nil when the node does not show that it is in a block.
func (n *node) included(hash string) *receipt {
	included := n.c.receipts[hash]
	if included == nil || included.height > n.tip || slices.Contains(n.faults.Denies, hash) {
		return nil
	}

	return included
}

// transfersOf returns the transfers of a transaction in a block as the node shows them by hash.
func (n *node) transfersOf(included *receipt) []chain.Transfer {
	if slices.Contains(n.faults.EmptyReceipts, included.hash) {
		return nil
	}

	return included.transfers(true)
}

// madeUpTransaction returns a transaction that only the node's made-up blocks hold, with what they say of it.
func (n *node) madeUpTransaction(hash string, unknown error) (chain.FoundTx, error) {
	for _, height := range slices.Sorted(maps.Keys(n.faults.Blocks)) {
		if height > n.tip {
			continue
		}

		b := n.madeUp(height)
		found := chain.FoundTx{TxHash: hash, Block: b.Ref}

		for _, t := range b.Transfers {
			if t.TxHash == hash {
				found.Transfers = append(found.Transfers, t)
			}
		}

		for _, spend := range b.Spent {
			if spend.By == hash {
				found.Spent, found.Failed = append(found.Spent, spend), spend.Failed
			}
		}

		if len(found.Transfers)+len(found.Spent) > 0 {
			return found, nil
		}
	}

	return chain.FoundTx{}, unknown
}
