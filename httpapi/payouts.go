package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/payout"
)

type createPayoutBody struct { // spec 4.6.1
	Asset       string `json:"asset" minLength:"1" maxLength:"16" example:"USDC"`
	Network     string `json:"network" minLength:"2" maxLength:"32" example:"ethereum"`
	Amount      string `json:"amount" pattern:"^(0|[1-9][0-9]{0,71})$"`
	Destination string `json:"destination" minLength:"1" maxLength:"128"`
	Memo        string `json:"memo,omitempty" maxLength:"200"`

	MaxNetworkFee string `json:"max_network_fee,omitempty" pattern:"^(0|[1-9][0-9]{0,71})$"`
}

type payoutQuery struct {
	Status        []payout.Status `query:"status" enum:"pending,processing,included,confirmed,failed" maxLength:"256"`
	Network       []string        `query:"network" maxLength:"256"`
	Q             string          `query:"q" maxLength:"128"`
	CreatedAfter  time.Time       `query:"created_after"`
	CreatedBefore time.Time       `query:"created_before"`
}

// sendErrors are the error codes of operations that send money.
var sendErrors = []string{
	"403 payout_allowlist_required",
	"403 destination_not_allowed",
	"422 asset_not_enabled",
	"422 destination_invalid",
	"422 destination_not_payable",
	"422 amount_too_large",
	"422 amount_too_small",
	"422 insufficient_balance",
	"422 send_unsupported",
	"422 token_unsafe",
}

// payouts returns the operations on payouts.
func (a *api) payouts() []operation {
	const tag = "Payouts"

	return []operation{
		write(operation{
			id:          "createPayout",
			method:      "POST",
			path:        "/v1/payouts",
			tag:         tag,
			scope:       account.PayoutsWrite,
			idempotency: keyRequired,
			sends:       true,
			summary:     "Send an asset from the master wallet",
			description: "The key needs the scope and an allowlist: of destinations, which are then the " +
				"only ones it pays, or of IP addresses.",
			codes: append([]string{"429 payout_limit_exceeded"}, sendErrors...),
		}, a.createPayout),
		list(operation{
			id:      "listPayouts",
			path:    "/v1/payouts",
			tag:     tag,
			scope:   account.PayoutsRead,
			summary: "List payouts, newest first",
		}, a.listPayouts),
		get(operation{
			id:      "getPayout",
			path:    "/v1/payouts/{id}",
			tag:     tag,
			scope:   account.PayoutsRead,
			summary: "Read a payout",
		}, a.getPayout),
		write(operation{
			id:      "cancelPayout",
			method:  "POST",
			path:    "/v1/payouts/{id}/cancel",
			tag:     tag,
			scope:   account.PayoutsWrite,
			summary: "Cancel a payout that is not signed yet",
			codes:   []string{"409 payout_not_pending", "409 payout_awaiting_review"},
		}, a.cancelPayout),
		write(operation{
			id:      "approvePayout",
			method:  "POST",
			path:    "/v1/payouts/{id}/approve",
			tag:     tag,
			scope:   account.PayoutsApprove,
			summary: "Approve a payout that waits for a second key",
			description: "Payouts above the account's sum, their highest network fee included, wait until another " +
				"key than the one that requested them approves, and so do payouts whose highest network fee is " +
				"above half of their amount and 5 USD; after two hours they fail as stale.",
			codes: []string{
				"403 approval_by_requester",
				"403 destination_not_allowed",
				"409 payout_not_pending",
				"409 payout_approval_not_required",
			},
		}, a.approvePayout),
	}
}

// createPayout prepares a payout and returns its commit.
func (a *api) createPayout(
	ctx context.Context,
	c *call,
	b createPayoutBody,
) (commit[payout.Resource], error) {
	destinations, err := c.key.PayoutDestinations(c.settings)
	if err != nil {
		return nil, err
	}

	sent, err := amount("amount", b.Amount)
	if err != nil {
		return nil, err
	}

	params := payout.Params{
		Owner:        c.owner,
		Network:      b.Network,
		Asset:        b.Asset,
		Amount:       sent,
		Destination:  b.Destination,
		Memo:         b.Memo,
		RequestedBy:  c.requester(),
		Destinations: destinations,
	}

	if b.MaxNetworkFee != "" {
		most, err := positiveAmount("max_network_fee", b.MaxNetworkFee)
		if err != nil {
			return nil, err
		}

		params.MaxNetworkFee = &most
	}

	prepared, err := a.Payouts.PrepareCreate(ctx, params)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (payout.Resource, error) {
		p, err := a.Payouts.CreateTx(ctx, tx, prepared)
		return p.Resource(), err
	}, nil
}

// listPayouts lists payouts.
func (a *api) listPayouts(ctx context.Context, c *call, q payoutQuery) (page[payout.Resource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[payout.Resource]{}, err
	}

	found, more, err := a.Payouts.List(ctx, payout.Filter{
		Owner:         c.owner,
		Statuses:      q.Status,
		Networks:      q.Network,
		Q:             q.Q,
		CreatedAfter:  q.CreatedAfter,
		CreatedBefore: q.CreatedBefore,
		After:         c.after,
		Limit:         c.limit,
	})

	return pageOf(
		found, more, err, payout.Payout.Resource,
		func(p payout.Payout) string { return p.ID },
	)
}

// getPayout reads a payout.
func (a *api) getPayout(ctx context.Context, c *call, _ none) (payout.Resource, error) {
	p, err := a.Payouts.Get(ctx, c.owner, c.id)
	if err != nil {
		return payout.Resource{}, err
	}

	return p.Resource(), nil
}

// cancelPayout cancels a payout that is not signed yet.
func (a *api) cancelPayout(ctx context.Context, c *call, _ none) (commit[payout.Resource], error) {
	if err := a.Payouts.PrepareCancel(ctx, c.owner, c.id); err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx payments.Tx) (payout.Resource, error) {
		p, err := a.Payouts.CancelTx(ctx, tx, c.owner, c.id)
		return p.Resource(), err
	}, nil
}

// approvePayout approves a payout that waits for a second key.
func (a *api) approvePayout(ctx context.Context, c *call, _ none) (commit[payout.Resource], error) {
	keys, err := a.Accounts.KeysOfHolder(ctx, c.key)
	if err != nil {
		return nil, err
	}

	destinations, err := c.key.ApprovalDestinations(c.settings)
	if err != nil {
		return nil, err
	}

	by := payout.Approver{
		Requester:    c.requester(),
		SameHolder:   keys,
		Destinations: destinations,
	}

	return func(ctx context.Context, tx payments.Tx) (payout.Resource, error) {
		p, err := a.Payouts.ApproveTx(ctx, tx, c.owner, c.id, by)
		return p.Resource(), err
	}, nil
}

// requester returns the API key as the party that requested a payout.
func (c *call) requester() payout.Requester { return payout.Requester{Type: "apiKey", ID: c.key.ID} }

// balanceResource is a master wallet's balance of one asset in base units (decisions part 9).
type balanceResource struct { // spec D9.12
	Network  string        `json:"network"`
	Asset    string        `json:"asset"`
	AssetID  string        `json:"asset_id"`
	Contract chain.Address `json:"contract,omitempty"`
	Decimals uint8         `json:"decimals"`
	Address  chain.Address `json:"address"`
	Balance  string        `json:"balance"`
	Reserved string        `json:"reserved"`
	// Available is the amount that new payouts may spend, in base units.
	Available   string `json:"available"`
	BlockHeight uint64 `json:"block_height"`
	// Frozen explains why nothing new is paid from the wallet; null while it is not frozen.
	Frozen   *frozenResource `json:"frozen"`
	Livemode bool            `json:"livemode"`
}

// frozenResource has the reason and the start of a wallet's freeze.
type frozenResource struct { // spec D11.26
	Reason wallet.FreezeReason `json:"reason" enum:"unrecorded_transaction,paid_twice,epoch"`
	// TxHash is the transaction that is not on record.
	TxHash string `json:"tx_hash,omitempty"`
	Since  string `json:"since" format:"date-time"`
}

type balanceQuery struct {
	Network []string `query:"network" maxLength:"256"`
}

// balances returns the operation that lists balances.
func (a *api) balances() []operation {
	return []operation{
		list(operation{
			id:      "listBalances",
			path:    "/v1/balances",
			tag:     "Payouts",
			scope:   account.BalancesRead,
			summary: "List what the master wallets hold, by network and asset",
		}, a.listBalances),
	}
}

// listBalances lists the balances of enabled assets, by network, asset and the end of the address.
func (a *api) listBalances(ctx context.Context, c *call, q balanceQuery) (page[balanceResource], error) {
	if err := a.checkNetworks(c, q.Network...); err != nil {
		return page[balanceResource]{}, err
	}

	all, err := a.Payouts.Balances(ctx, c.owner)
	if err != nil {
		return page[balanceResource]{}, err
	}

	all = slices.DeleteFunc(all, func(b wallet.Balance) bool {
		n, _ := a.Networks.Network(b.Network)
		_, known := n.AssetByID(b.AssetID)

		return !known || len(q.Network) > 0 && !slices.Contains(q.Network, b.Network)
	})

	// The last 8 characters of the address distinguish two wallets of a network and keep the cursor within
	// maxParam.
	key := func(b wallet.Balance) string {
		return b.Network + "/" + b.AssetID + "/" + string(b.Address[max(0, len(b.Address)-8):])
	}

	slices.SortFunc(all, func(x, y wallet.Balance) int { return cmp.Compare(key(x), key(y)) })

	found, more := paginate(all, c, key)

	wallets, err := a.walletsOf(ctx, found)

	return pageOf(found, more, err, func(b wallet.Balance) balanceResource {
		return a.balanceResource(b, wallets[walletKey{b.Network, b.Address}])
	}, key)
}

// walletKey identifies a wallet.
type walletKey struct {
	network string
	address chain.Address
}

// walletsOf returns the wallets that balances belong to.
func (a *api) walletsOf(
	ctx context.Context,
	balances []wallet.Balance,
) (map[walletKey]wallet.Wallet, error) {
	found := map[walletKey]wallet.Wallet{}

	for _, b := range balances {
		k := walletKey{b.Network, b.Address}
		if _, known := found[k]; known {
			continue
		}

		w, _, err := a.Store().Wallet(ctx, b.Network, b.Address)
		if err != nil {
			return nil, err
		}

		found[k] = w
	}

	return found, nil
}

// balanceResource renders a balance of a wallet.
func (a *api) balanceResource(b wallet.Balance, w wallet.Wallet) balanceResource {
	var frozen *frozenResource
	if w.Frozen != "" {
		frozen = &frozenResource{Reason: w.Frozen, TxHash: w.FrozenBy, Since: wire.Time(w.FrozenAt)}
	}

	n, _ := a.Networks.Network(b.Network)
	asset, _ := n.AssetByID(b.AssetID)

	height := b.At.Height
	if b.At.Hash == "" { // a fork removed the block
		height = 0
	}

	return balanceResource{
		Network:     b.Network,
		Asset:       asset.Symbol,
		AssetID:     b.AssetID,
		Contract:    asset.Contract,
		Decimals:    asset.Decimals,
		Address:     b.Address,
		Balance:     b.OnChain.String(),
		Reserved:    b.Reserved.String(),
		Available:   b.Available().String(),
		BlockHeight: height,
		Frozen:      frozen,
		Livemode:    b.Owner.Livemode,
	}
}
