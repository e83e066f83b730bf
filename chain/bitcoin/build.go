package bitcoin

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// maxOutputs is the number of destinations that one transaction pays: as many as a release has deposits.
// Together with the coins for them they weigh far less than maxWeight.
const maxOutputs = 50

// MaxOutputs returns the number of destinations that one transaction pays.
func (d *driver) MaxOutputs() int { return maxOutputs }

// Build returns an unsigned transaction at current fees. Unsigned.Raw is a PSBT (BIP-174) with the output
// that each input spends, so that an external signer can read it. With Config.Keys it also names the keys of
// inputs and change, and holds the transactions that inputs spend. MaxFee is the fee itself, in satoshi.
// Change goes to Order.From, after the ordered outputs, and is not among Unsigned.Outputs.
//
// The coins are chosen from Order.Coins, without coins that the node reports as spent and immature block
// rewards. With SubtractFee they must add up to the outputs, or leave change for From.
//
// A replacement spends every coin of the replaced transaction and no other unconfirmed coin (BIP-125). At a
// higher rate it pays at least the fees of the transactions that it displaces, plus the relay fee for itself.
//
// With Order.Bumps the transaction spends that unconfirmed coin first and no other unconfirmed coin, and pays
// the fees that its ancestors lack (cpfp.go). If they lack nothing, the error is fault.NotFound
// (bump_not_needed).
//
// The lock time is the newest height, against fee sniping. Status searches for the transaction from that
// height on.
func (d *driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	target, err := d.targetOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	coins, required, err := d.candidates(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var unsigned chain.Unsigned

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		parent, err := node.parentEntry(ctx, order, required)
		if err != nil {
			return err
		}

		policies, err := d.feePolicies(ctx, node, order, parent)
		if err != nil {
			return err
		}

		selected, err := d.fundOrder(ctx, node, order, target, policies, coins, required)
		if err != nil {
			return err
		}

		var height uint32
		if err := node.call(ctx, &height, "getblockcount"); err != nil {
			return err
		}

		hints, err := d.hints(ctx, node, order, selected)
		if err != nil {
			return err
		}

		unsigned, err = d.buildPSBT(order, target, selected, height, hints)
		unsigned.UnconfirmedParents = parent.ancestorSpends

		return err
	})
	if err != nil {
		return chain.Unsigned{}, err
	}

	return unsigned, nil
}

// feePolicies returns the fee policies of an order at current rates. If there are two, the second is the
// minimum that the pool accepts, for use when the first exceeds Order.MaxFee.
func (d *driver) feePolicies(
	ctx context.Context,
	node *endpoint,
	order chain.Order,
	parent mempoolEntry,
) ([]feePolicy, error) {
	rates, err := d.readFeeRates(ctx, node)
	if err != nil {
		return nil, err
	}

	policy := feePolicy{rate: rates.estimate}
	if order.Bumps != nil {
		if err := parent.checkBump(order, rates.estimate); err != nil {
			return nil, err
		}

		policy.parentFee, policy.parentRate = parent.bumpFee(rates.estimate), rates.estimate
	}

	if order.Replaces == nil {
		return []feePolicy{policy}, nil
	}

	least, err := node.replacementPolicy(ctx, *order.Replaces, rates)
	if err != nil {
		return nil, err
	}

	policy.rate = max(rates.estimate, least.rate)
	policy.replacedFee, policy.incrementalRate = least.replacedFee, least.incrementalRate

	return []feePolicy{policy, least}, nil
}

// fundOrder selects coins that the node has as unspent, at a fee that the order allows. It errors:
//   - fault.State (insufficient_funds): the coins do not cover the order
//   - fault.Limited (fee_above_maximum): the fee exceeds Order.MaxFee
//   - fault.Unavailable (coin_spent): a required coin is spent in a block
func (d *driver) fundOrder(
	ctx context.Context,
	node *endpoint,
	order chain.Order,
	target coinTarget,
	policies []feePolicy,
	coins, required []candidate,
) (selection, error) {
	for {
		selected, err := selectWithin(order, target, policies, coins, required)
		if err != nil {
			return selection{}, err
		}

		spent, err := node.unspendable(ctx, selected.coins, required)
		if err != nil {
			return selection{}, err
		}

		if len(spent) == 0 {
			return selected, nil
		}

		for _, outpoint := range spent {
			if slices.ContainsFunc(required, func(coin candidate) bool { return coin.Outpoint == outpoint }) {
				return selection{}, fault.New(
					fault.Unavailable,
					"coin_spent",
					"coin %s:%d, which the replacement has to spend, is spent in a block: look the earlier attempts up",
					outpoint.TxHash,
					outpoint.Vout,
				)
			}

			d.log.WarnContext(
				ctx, "a coin on record cannot be spent",
				"network", d.network.Slug, "tx_hash", outpoint.TxHash, "vout", outpoint.Vout,
			)
		}

		coins = slices.DeleteFunc(
			slices.Clone(coins),
			func(coin candidate) bool { return slices.Contains(spent, coin.Outpoint) },
		)
	}
}

// selectWithin returns the selection at the first policy whose fee the order allows.
func selectWithin(
	order chain.Order,
	target coinTarget,
	policies []feePolicy,
	coins, required []candidate,
) (selection, error) {
	var selected selection

	for _, policy := range policies {
		var err error
		if selected, err = selectCoins(target, policy, coins, required); err != nil {
			return selection{}, insufficientFunds(order, err)
		}

		if satoshiAmount(selected.fee).Cmp(order.MaxFee) <= 0 {
			return selected, nil
		}
	}

	return selection{}, fault.New(
		fault.Limited, "fee_above_maximum",
		"the transaction costs %d satoshi now, more than the %s that it may cost",
		selected.fee, order.MaxFee,
	)
}

func insufficientFunds(order chain.Order, err error) error {
	return fault.Wrap(
		err, fault.State, "insufficient_funds", "wallet %s cannot pay for the transaction",
		order.From.Address,
	)
}
