package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// networkResource is the JSON of a network (specification 2.4).
type networkResource struct { // spec 2.4.1
	ID                           string       `json:"id"`
	Slug                         string       `json:"slug" example:"ethereum"`
	Family                       chain.Family `json:"family" example:"evm"`
	ChainID                      uint64       `json:"chain_id,omitempty"`
	CAIP2                        string       `json:"caip2" example:"eip155:1"`
	DisplayName                  string       `json:"display_name"`
	NativeAsset                  string       `json:"native_asset"`
	ExplorerTxURL                string       `json:"explorer_tx_url,omitempty"`
	ExplorerAddressURL           string       `json:"explorer_address_url,omitempty"`
	ConfirmationRule             chain.Rule   `json:"confirmation_rule" enum:"confirmations,finalized,safe"`
	ConfirmationsRequired        uint64       `json:"confirmations_required"`
	EstimatedConfirmationSeconds int64        `json:"estimated_confirmation_seconds,omitempty"`
	FaucetURL                    string       `json:"faucet_url,omitempty"`
	Livemode                     bool         `json:"livemode"`
}

// newNetworkResource renders a network.
func newNetworkResource(n chain.Network) networkResource {
	return networkResource{
		ID:                           n.ID(),
		Slug:                         n.Slug,
		Family:                       n.Family,
		ChainID:                      n.ChainID,
		CAIP2:                        n.CAIP2,
		DisplayName:                  n.DisplayName,
		NativeAsset:                  n.NativeAsset,
		ExplorerTxURL:                n.ExplorerTxURL,
		ExplorerAddressURL:           n.ExplorerAddressURL,
		ConfirmationRule:             n.Rule,
		ConfirmationsRequired:        n.Confirmations,
		EstimatedConfirmationSeconds: int64(n.EstimatedConfirmation / time.Second),
		FaucetURL:                    n.FaucetURL,
		Livemode:                     n.Livemode,
	}
}

// assetResource is the JSON of an asset (specification 2.5).
type assetResource struct { // spec 2.5.1
	ID        string          `json:"id"`
	Asset     string          `json:"asset" example:"USDC"`
	Network   string          `json:"network" example:"ethereum"`
	Name      string          `json:"name,omitempty"`
	Kind      chain.AssetKind `json:"kind" enum:"native,token"`
	Contract  chain.Address   `json:"contract,omitempty"`
	Decimals  uint8           `json:"decimals"`
	MinAmount string          `json:"min_amount"`
	Livemode  bool            `json:"livemode"`
}

// newAssetResource renders an asset; its minimum is in base units.
func newAssetResource(a chain.Asset) assetResource {
	return assetResource{
		ID:        a.ID,
		Asset:     a.Symbol,
		Network:   a.Network,
		Name:      a.Name,
		Kind:      a.Kind,
		Contract:  a.Contract,
		Decimals:  a.Decimals,
		MinAmount: a.MinAmount.String(),
		Livemode:  a.Livemode,
	}
}

// rateResource is the JSON of a price (specification 2.6).
type rateResource struct { // spec 2.6.1
	Base      string `json:"base" example:"ETH"`
	Quote     string `json:"quote" enum:"USD"`
	Rate      string `json:"rate" example:"2481.55"`
	FetchedAt string `json:"fetched_at" format:"date-time"`
	ExpiresAt string `json:"expires_at" format:"date-time"`
}

type assetQuery struct { // spec 4.8.1
	Network string `query:"network" maxLength:"32"`
}

type rateQuery struct { // spec 4.9.1
	Base  string `query:"base" required:"true" maxLength:"16" example:"ETH"`
	Quote string `query:"quote" enum:"USD"`
}

// reference returns the operations on networks, assets and rates.
func (a *api) reference() []operation {
	const tag = "Reference"

	return []operation{
		list(operation{
			id:      "listNetworks",
			path:    "/v1/networks",
			tag:     tag,
			access:  anyKey,
			summary: "List the enabled networks of the key's mode, by slug",
		}, a.listNetworks),
		list(operation{
			id:      "listAssets",
			path:    "/v1/assets",
			tag:     tag,
			access:  anyKey,
			summary: "List the assets that an invoice may offer, by id",
		}, a.listAssets),
		get(operation{
			id:      "getRate",
			path:    "/v1/rates",
			tag:     tag,
			access:  anyKey,
			summary: "Read the price of an asset",
			codes:   []string{"422 currency_unsupported", "503 price_unavailable"},
		}, a.getRate),
	}
}

// listNetworks lists the enabled networks of the key's mode.
func (a *api) listNetworks(_ context.Context, c *call, _ none) (page[networkResource], error) { // spec 4.7.1
	found, more := paginate(
		a.Networks.Networks(c.owner.Livemode), c,
		func(n chain.Network) string { return n.Slug },
	)

	return pageOf(found, more, nil, newNetworkResource, func(n chain.Network) string { return n.Slug })
}

// listAssets lists the assets that an invoice of the account may offer.
func (a *api) listAssets(_ context.Context, c *call, q assetQuery) (page[assetResource], error) {
	if q.Network != "" {
		if err := a.checkNetworks(c, q.Network); err != nil {
			return page[assetResource]{}, err
		}
	}

	enabled := c.settings.Assets
	all := slices.DeleteFunc(a.Networks.Assets(c.owner.Livemode), func(v chain.Asset) bool {
		return q.Network != "" && v.Network != q.Network ||
			len(enabled) > 0 && !slices.Contains(enabled, v.ID)
	})
	found, more := paginate(all, c, func(v chain.Asset) string { return v.ID })

	return pageOf(found, more, nil, newAssetResource, func(v chain.Asset) string { return v.ID })
}

// getRate returns the price of one whole unit of an asset in USD.
func (a *api) getRate(ctx context.Context, c *call, q rateQuery) (rateResource, error) {
	const quote = "USD"

	all := a.Networks.Assets(c.owner.Livemode)

	i := slices.IndexFunc(all, func(v chain.Asset) bool { return v.Symbol == q.Base })
	if i < 0 {
		return rateResource{}, invalid(
			"base", "there is no asset %q; GET /v1/assets lists those that are",
			truncate(q.Base),
		)
	}

	r, err := a.Rates.Quote(ctx, all[i].Price, quote)
	if err != nil {
		return rateResource{}, err
	}

	return rateResource{
		Base:      q.Base,
		Quote:     quote,
		Rate:      wire.Decimal(r.Rate),
		FetchedAt: wire.Time(r.FetchedAt),
		ExpiresAt: wire.Time(r.ExpiresAt),
	}, nil
}

// checkNetworks returns fault.Invalid when a network is not enabled in the key's mode.
func (a *api) checkNetworks(c *call, slugs ...string) error { // spec D1.13
	for _, slug := range slugs {
		if n, ok := a.Networks.Network(slug); !ok || n.Livemode != c.owner.Livemode {
			return invalid(
				"network", "network %q is not enabled; GET /v1/networks lists those that are",
				truncate(slug),
			)
		}
	}

	return nil
}

// paginate returns the call's page of a list that is sorted by key, and whether more follow.
func paginate[T any](all []T, c *call, key func(T) string) (found []T, more bool) {
	first := slices.IndexFunc(all, func(v T) bool { return key(v) > c.after })
	if first < 0 {
		return nil, false
	}

	all = all[first:]
	if len(all) > c.limit {
		return all[:c.limit], true
	}

	return all, false
}
