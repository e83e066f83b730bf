package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// networkResource is a network as the API shows it (specification 2.4).
type networkResource struct {
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

func showNetwork(n chain.Network) networkResource {
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

// assetResource is an asset as the API shows it (specification 2.5).
type assetResource struct {
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

func showAsset(a chain.Asset) assetResource {
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

// rateResource is a price as the API shows it (specification 2.6).
type rateResource struct {
	Base      string `json:"base" example:"ETH"`
	Quote     string `json:"quote" enum:"USD"`
	Rate      string `json:"rate" example:"2481.55"`
	FetchedAt string `json:"fetched_at" format:"date-time"`
	ExpiresAt string `json:"expires_at" format:"date-time"`
}

type assetQuery struct {
	Network string `query:"network" maxLength:"32"`
}

type rateQuery struct {
	Base  string `query:"base" required:"true" maxLength:"16" example:"ETH"`
	Quote string `query:"quote" enum:"USD"`
}

func (a *api) reference() []operation {
	const tag = "Reference"

	return []operation{
		list(operation{
			id:      "listNetworks",
			path:    "/v1/networks",
			tag:     tag,
			access:  anyKey,
			summary: "List the enabled networks of the key's mode, by slug",
		}, func(_ context.Context, c *call, _ none) (page[networkResource], error) {
			found, more := after(
				a.Networks.Networks(c.owner.Livemode), c,
				func(n chain.Network) string { return n.Slug },
			)

			return pageOf(found, more, nil, showNetwork, func(n chain.Network) string { return n.Slug })
		}),
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

// after cuts the call's page out of a whole list that is sorted by key.
func after[T any](all []T, c *call, key func(T) string) (found []T, more bool) {
	from := slices.IndexFunc(all, func(v T) bool { return key(v) > c.after })
	if from < 0 {
		return nil, false
	}

	all = all[from:]
	if len(all) > c.limit {
		return all[:c.limit], true
	}

	return all, false
}

func (a *api) listAssets(_ context.Context, c *call, q assetQuery) (page[assetResource], error) {
	if q.Network != "" {
		if err := a.knownNetworks(c, q.Network); err != nil {
			return page[assetResource]{}, err
		}
	}

	enabled := c.settings.Assets
	all := slices.DeleteFunc(a.Networks.Assets(c.owner.Livemode), func(v chain.Asset) bool {
		return q.Network != "" && v.Network != q.Network ||
			len(enabled) > 0 && !slices.Contains(enabled, v.ID)
	})
	found, more := after(all, c, func(v chain.Asset) string { return v.ID })

	return pageOf(found, more, nil, showAsset, func(v chain.Asset) string { return v.ID })
}

func (a *api) getRate(ctx context.Context, c *call, q rateQuery) (rateResource, error) {
	const quote = "USD"

	all := a.Networks.Assets(c.owner.Livemode)

	i := slices.IndexFunc(all, func(v chain.Asset) bool { return v.Symbol == q.Base })
	if i < 0 {
		return rateResource{}, invalid(
			"base", "there is no asset %q; GET /v1/assets lists those that are",
			clip(q.Base),
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
