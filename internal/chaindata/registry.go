package chaindata

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Asset returns the asset of a symbol on a network.
func Asset(r *chain.Registry, network, symbol string) (chain.Asset, bool) {
	n, ok := r.Network(network)
	if !ok {
		return chain.Asset{}, false
	}

	return n.Asset(symbol)
}
