package tron

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
)

var _ chain.StrayLister = (*driver)(nil)

// Strays returns the TRC-10 tokens of addresses, in the newest block of a node, one call for each address. Contract is
// the token's id, and Account "<address>/<id>": an address holds all of them itself. No transfer of one is a payment,
// and none of them is moved.
func (d *driver) Strays(ctx context.Context, addresses []chain.Address) ([]chain.Stray, error) {
	accounts := make([]address, len(addresses))

	for i, text := range addresses {
		var err error
		if accounts[i], err = parseAddress(string(text)); err != nil {
			return nil, err
		}
	}

	var strays []chain.Stray

	err := d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		strays = nil

		for i, account := range accounts {
			state, err := node.account(ctx, full, account)
			if err != nil {
				return err
			}

			for _, id := range slices.Sorted(maps.Keys(state.assets)) {
				strays = append(strays, chain.Stray{
					Address:  addresses[i],
					Account:  addresses[i] + "/" + chain.Address(id),
					Contract: chain.Address(id),
					AssetID:  chain.AssetID(d.network.CAIP2, chain.Address(id)),
					Amount:   state.assets[id],
				})
			}
		}

		return nil
	})

	slices.SortFunc(strays, func(a, b chain.Stray) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Account, b.Account))
	})

	return strays, err
}
