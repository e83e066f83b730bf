package txmgr

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
)

// highestTip returns the height of the highest tip that any node shows, where the preferred one shows a tip: a node may
// lag, and restored records may lack what is above its tip. alone is set while that tip is not agreed on; for
// poolPatience at most.
func (o *Manager) highestTip(
	ctx context.Context,
	driver chain.Driver,
	tip chain.Ref,
) (height uint64, alone bool) {
	agreed, ok := driver.(chain.Agreed)
	if !ok {
		return tip.Height, false
	}

	shared, err := agreed.AgreedHead(ctx) // has every node show its tip

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

// maxBehind is how many blocks a node may be behind another that is believed: weeks of the fastest networks.
const maxBehind = 1 << 24

// Unconfirmed returns what of a network is one node's word by configuration; empty when nothing is.
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
