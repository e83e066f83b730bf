package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
)

// highestTip returns the height of the highest tip among all nodes, given the tip of the preferred one. A
// node may lag, and restored records may lack the blocks above its tip. alone is set while no second node
// confirms the tip, for at most poolPatience.
func (o *Manager) highestTip(
	ctx context.Context,
	driver chain.Driver,
	tip chain.Ref,
) (height uint64, alone bool) {
	agreed, ok := driver.(chain.Agreed)
	if !ok {
		return tip.Height, false
	}

	shared, err := agreed.AgreedHead(ctx) // makes every node report its tip

	for _, node := range agreed.Nodes() {
		if node.Trouble != chain.NodeSilent && node.Trouble != chain.NodeForeign {
			height = max(height, node.Tip)
		}
	}

	if height > tip.Height && height <= tip.Height+maxBehind {
		return height, false
	}

	network := driver.Network().Slug

	if err == nil && shared.Tip.Height >= tip.Height {
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

// maxBehind bounds, in blocks, how far above the preferred node's tip another node's tip may be to count:
// weeks of the fastest networks.
const maxBehind = 1 << 24

// Unconfirmed describes the data of a network that, by configuration, only one node confirms; empty if there
// is none.
func (o *Manager) Unconfirmed(network string) string {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return ""
	}

	switch agreed, ok := driver.(chain.Agreed); {
	case !ok:
		return "nothing is confirmed by a second node: the driver compares no nodes"
	case len(agreed.Nodes()) == 1:
		return "nothing is confirmed by a second node: one is configured"
	}

	return ""
}
