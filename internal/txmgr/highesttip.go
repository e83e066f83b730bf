package txmgr

import (
	"context"
	"errors"
	"sort"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// noBlock is the hash of no block: a node that has a block at a height has another one.
const noBlock = "none"

// maxBehind is how many blocks a node may be behind another that is believed: weeks of the fastest networks.
const maxBehind = 1 << 24

// highestTip returns the height of the highest tip that a node of a driver has, where the preferred one shows a tip: a
// node may lag, and restored records may lack what is above its tip. alone is set while a second node, where there is
// one, does not have that tip; for poolPatience at most.
func (o *Manager) highestTip(
	ctx context.Context,
	driver chain.Driver,
	tip chain.Ref,
) (height uint64, alone bool) {
	confirmer, ok := driver.(chain.RefConfirmer)
	if !ok {
		return tip.Height, false
	}

	network := driver.Network().Slug
	if onlyNode(ctx, confirmer, tip.Height) {
		o.singleNodes.Store(network, true)
		return tip.Height, false
	}

	if height = highestAbove(ctx, confirmer, tip.Height); height > tip.Height {
		if node, ok := driver.(chain.NodeDemoter); ok {
			node.DemoteNode("another node has later blocks")
		}

		return height, false
	}

	if confirmer.ConfirmRef(ctx, tip) == nil {
		return tip.Height, false
	}

	if o.refusedFor(network+" second node") < poolPatience {
		return tip.Height, true
	}

	o.config.Log.WarnContext(
		ctx, "wallets sign by the word of one node: no second one shows the tip",
		"network", network, "tip", tip.Height,
	)

	return tip.Height, false
}

// onlyNode reports whether a driver has one node only: it confirms a block that no two nodes can have.
func onlyNode(ctx context.Context, confirmer chain.RefConfirmer, height uint64) bool {
	return confirmer.ConfirmRef(ctx, chain.Ref{Height: height, Hash: noBlock}) == nil
}

// Unconfirmed returns what one node says of a network that nothing confirms; empty when there is nothing.
func (o *Manager) Unconfirmed(network string) string {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return ""
	}

	if _, ok := driver.(chain.Nonces); !ok {
		return ""
	}

	if _, ok := driver.(chain.NonceConfirmer); !ok {
		return "nothing confirms a wallet's first nonce: the driver compares no nodes"
	}

	if _, single := o.singleNodes.Load(network); single {
		return "nothing confirms a wallet's first nonce: one endpoint"
	}

	return ""
}

// highestAbove returns the highest block that a node has, at least a height. It asks for one further and further above,
// and then between the last two.
func highestAbove(ctx context.Context, confirmer chain.RefConfirmer, height uint64) uint64 {
	has := func(above uint64) bool {
		err := confirmer.ConfirmRef(ctx, chain.Ref{Height: height + above, Hash: noBlock})
		return errors.Is(err, fault.NotFound)
	}

	beyond := uint64(1)
	for has(beyond) {
		if beyond *= 2; beyond > maxBehind {
			return height // it says so of any height
		}
	}

	known := beyond / 2

	return height + known + uint64(sort.Search(int(beyond-known), func(i int) bool {
		return !has(known + uint64(i) + 1)
	}))
}
