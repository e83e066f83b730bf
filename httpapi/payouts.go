package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/store"
)

type createPayoutBody struct {
	Asset       string `json:"asset" maxLength:"16" example:"USDC"`
	Network     string `json:"network" minLength:"2" maxLength:"32" example:"ethereum"`
	Amount      string `json:"amount" pattern:"^[0-9]{1,78}$"`
	Destination string `json:"destination" maxLength:"128"`
	Memo        string `json:"memo,omitempty" maxLength:"200"`
}

type createRefundBody struct {
	InvoiceID   string            `json:"invoice_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	PaymentID   string            `json:"payment_id,omitempty" pattern:"^[0-9a-f]{24}$"`
	Amount      string            `json:"amount,omitempty" pattern:"^[0-9]{1,78}$"`
	Destination string            `json:"destination" maxLength:"128"`
	Reason      string            `json:"reason,omitempty" maxLength:"200"`
	Metadata    map[string]string `json:"metadata,omitempty" maxProperties:"50" keyMaxLength:"40" maxLength:"500"`
}

type payoutQuery struct {
	Status        []payout.Status `query:"status" enum:"pending,processing,included,confirmed,failed" maxLength:"256"`
	Network       []string        `query:"network" maxLength:"256"`
	Q             string          `query:"q" maxLength:"128"`
	CreatedAfter  time.Time       `query:"created_after"`
	CreatedBefore time.Time       `query:"created_before"`
}

type refundQuery struct {
	Status        []payout.RefundStatus `query:"status" enum:"pending,succeeded,failed,canceled" maxLength:"256"`
	InvoiceID     string                `query:"invoice_id" pattern:"^[0-9a-f]{24}$"`
	PaymentID     string                `query:"payment_id" pattern:"^[0-9a-f]{24}$"`
	CreatedAfter  time.Time             `query:"created_after"`
	CreatedBefore time.Time             `query:"created_before"`
}

// sending are the codes of everything that sends money.
var sending = []string{
	"403 payout_allowlist_required",
	"403 destination_not_allowed",
	"422 asset_not_enabled",
	"422 destination_invalid",
	"422 amount_too_small",
	"422 insufficient_balance",
}

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
			summary:     "Send an asset from the master wallet",
			description: "The key needs the scope and an allowlist: of destinations, which are then the " +
				"only ones it pays, or of IP addresses.",
			codes: append([]string{"429 payout_limit_exceeded"}, sending...),
		}, a.createPayout),
		list(operation{
			id:      "listPayouts",
			path:    "/v1/payouts",
			tag:     tag,
			scope:   account.PayoutsRead,
			summary: "List payouts, newest first",
		}, func(ctx context.Context, c *call, q payoutQuery) (page[payout.Resource], error) {
			if err := a.knownNetworks(c, q.Network...); err != nil {
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
		}),
		get(operation{
			id:      "getPayout",
			path:    "/v1/payouts/{id}",
			tag:     tag,
			scope:   account.PayoutsRead,
			summary: "Read a payout",
		}, func(ctx context.Context, c *call, _ none) (payout.Resource, error) {
			p, err := a.Payouts.Get(ctx, c.owner, c.id)
			if err != nil {
				return payout.Resource{}, err
			}

			return p.Resource(), nil
		}),
		write(operation{
			id:      "cancelPayout",
			method:  "POST",
			path:    "/v1/payouts/{id}/cancel",
			tag:     tag,
			scope:   account.PayoutsWrite,
			summary: "Cancel a payout that is not signed yet",
			codes:   []string{"409 payout_not_pending"},
		}, func(_ context.Context, c *call, _ none) (func(context.Context, store.Tx) (payout.Resource, error), error) {
			return func(ctx context.Context, tx store.Tx) (payout.Resource, error) {
				p, err := a.Payouts.CancelTx(ctx, tx, c.owner, c.id)
				return p.Resource(), err
			}, nil
		}),
	}
}

func (a *api) refunds() []operation {
	const tag = "Refunds"

	return []operation{
		write(operation{
			id:          "createRefund",
			method:      "POST",
			path:        "/v1/refunds",
			tag:         tag,
			scope:       account.RefundsWrite,
			idempotency: keyRequired,
			summary:     "Give back what a payer paid, from the master wallet",
			description: "The key's allowlists hold as for payouts.",
			codes: append(
				[]string{
					"404 resource_missing",
					"409 refund_no_payment",
					"422 refund_payment_required",
					"422 refund_exceeds_payment",
				},
				sending...),
		}, a.createRefund),
		list(operation{
			id:      "listRefunds",
			path:    "/v1/refunds",
			tag:     tag,
			scope:   account.RefundsRead,
			summary: "List refunds, newest first",
		}, func(ctx context.Context, c *call, q refundQuery) (page[payout.RefundResource], error) {
			found, more, err := a.Payouts.ListRefunds(ctx, payout.RefundFilter{
				Owner:         c.owner,
				Statuses:      q.Status,
				InvoiceID:     q.InvoiceID,
				PaymentID:     q.PaymentID,
				CreatedAfter:  q.CreatedAfter,
				CreatedBefore: q.CreatedBefore,
				After:         c.after,
				Limit:         c.limit,
			})

			return pageOf(
				found, more, err, payout.Refund.Resource,
				func(r payout.Refund) string { return r.ID },
			)
		}),
		get(operation{
			id:      "getRefund",
			path:    "/v1/refunds/{id}",
			tag:     tag,
			scope:   account.RefundsRead,
			summary: "Read a refund",
		}, func(ctx context.Context, c *call, _ none) (payout.RefundResource, error) {
			r, err := a.Payouts.GetRefund(ctx, c.owner, c.id)
			if err != nil {
				return payout.RefundResource{}, err
			}

			return r.Resource(), nil
		}),
		write(operation{
			id:      "cancelRefund",
			method:  "POST",
			path:    "/v1/refunds/{id}/cancel",
			tag:     tag,
			scope:   account.RefundsWrite,
			summary: "Cancel a refund whose payout is not signed yet",
			codes:   []string{"409 refund_not_pending"},
		}, func(
			_ context.Context,
			c *call,
			_ none,
		) (func(context.Context, store.Tx) (payout.RefundResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (payout.RefundResource, error) {
				r, err := a.Payouts.CancelRefundTx(ctx, tx, c.owner, c.id)
				return r.Resource(), err
			}, nil
		}),
	}
}

// allowlists refuses a key that has neither allowlist (specification 4.6) and returns the
// destinations that it is held to, nil for any. The list of IP addresses was checked with the key.
func (c *call) allowlists() ([]string, error) {
	if len(c.key.Destinations) > 0 {
		return c.key.Destinations, nil
	}

	if len(c.key.AllowedIPs) > 0 {
		return nil, nil
	}

	return nil, fault.New(
		fault.Forbidden, "payout_allowlist_required",
		"the API key %s has neither an IP allowlist nor a list of destinations: create one that has",
		c.key.ID,
	)
}

func (c *call) requester() payout.Requester { return payout.Requester{Type: "apiKey", ID: c.key.ID} }

func (a *api) createPayout(
	ctx context.Context,
	c *call,
	b createPayoutBody,
) (func(context.Context, store.Tx) (payout.Resource, error), error) {
	destinations, err := c.allowlists()
	if err != nil {
		return nil, err
	}

	v, err := amount("amount", b.Amount)
	if err != nil {
		return nil, err
	}

	prepared, err := a.Payouts.Prepare(ctx, payout.Params{
		Owner:        c.owner,
		Network:      b.Network,
		Asset:        b.Asset,
		Amount:       v,
		Destination:  b.Destination,
		Memo:         b.Memo,
		RequestedBy:  c.requester(),
		Destinations: destinations,
	})
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx store.Tx) (payout.Resource, error) {
		p, err := a.Payouts.Tx(ctx, tx, prepared)
		return p.Resource(), err
	}, nil
}

func (a *api) createRefund(
	ctx context.Context,
	c *call,
	b createRefundBody,
) (func(context.Context, store.Tx) (payout.RefundResource, error), error) {
	destinations, err := c.allowlists()
	if err != nil {
		return nil, err
	}

	p := payout.RefundParams{
		Owner:        c.owner,
		InvoiceID:    b.InvoiceID,
		PaymentID:    b.PaymentID,
		Destination:  b.Destination,
		Reason:       b.Reason,
		Metadata:     b.Metadata,
		RequestedBy:  c.requester(),
		Destinations: destinations,
	}
	if b.Amount != "" {
		v, err := amount("amount", b.Amount)
		if err != nil {
			return nil, err
		}

		p.Amount = &v
	}

	prepared, err := a.Payouts.PrepareRefund(ctx, p)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx store.Tx) (payout.RefundResource, error) {
		r, err := a.Payouts.RefundTx(ctx, tx, prepared)
		return r.Resource(), err
	}, nil
}

// balanceResource is what a master wallet holds of one asset (decisions part 9).
type balanceResource struct {
	Network  string        `json:"network"`
	Asset    string        `json:"asset"`
	AssetID  string        `json:"asset_id"`
	Contract chain.Address `json:"contract,omitempty"`
	Decimals uint8         `json:"decimals"`
	Address  chain.Address `json:"address"`
	Balance  string        `json:"balance"`
	Reserved string        `json:"reserved"`
	// Available is what new payouts may take.
	Available   string `json:"available"`
	BlockHeight uint64 `json:"block_height"`
	Livemode    bool   `json:"livemode"`
}

type balanceQuery struct {
	Network []string `query:"network" maxLength:"256"`
}

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

func (a *api) listBalances(ctx context.Context, c *call, q balanceQuery) (page[balanceResource], error) {
	if err := a.knownNetworks(c, q.Network...); err != nil {
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
	// The end of the address tells two wallets of a network apart and keeps the cursor within its
	// 100 characters.
	key := func(b wallet.Balance) string {
		return b.Network + "/" + b.AssetID + "/" + string(b.Address[max(0, len(b.Address)-8):])
	}

	slices.SortFunc(all, func(x, y wallet.Balance) int { return cmp.Compare(key(x), key(y)) })
	found, more := after(all, c, key)

	return pageOf(found, more, nil, a.showBalance, key)
}

func (a *api) showBalance(b wallet.Balance) balanceResource {
	n, _ := a.Networks.Network(b.Network)
	asset, _ := n.AssetByID(b.AssetID)

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
		BlockHeight: b.At.Height,
		Livemode:    b.Owner.Livemode,
	}
}
