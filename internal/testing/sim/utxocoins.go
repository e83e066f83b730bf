package sim

// Coin selection of UTXO: which coins pay for an order, and how much is change.

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// utxoCoin is a coin of an order as the node has it.
type utxoCoin struct {
	chain.Coin
	utxoPayment
}

// utxoFee is the least fee that a transaction has to pay, like bitcoin's feePolicy. Rates are base units
// per 1000 vB, fees base units.
type utxoFee struct {
	rate uint64
	// replaced is what a replacement displaces, increment the rate of its own relay.
	replaced, increment uint64
	// parents is what the unconfirmed parents lack at the rate.
	parents uint64
}

func (f utxoFee) of(vsize uint64) uint64 {
	return max(feeAt(f.rate, vsize)+f.parents, f.replaced+feeAt(f.increment, vsize))
}

// utxoTarget is what a transaction has to pay.
type utxoTarget struct {
	outputs     []utxoPayment
	total       uint64
	subtractFee bool
	changeTo    account
	dust        uint64
}

// utxoSelection is a set of coins with its fee and change, in base units.
type utxoSelection struct {
	coins       []utxoCoin
	fee, change uint64
}

var errCoinsShort = errors.New("the coins do not cover payments and fee")

// target returns what an order has to pay. It errors:
//   - fault.Invalid (order_invalid, asset_unknown, destination_not_payable): it can never be paid
//   - fault.Unsupported (outputs_unsupported): it has more destinations than MaxOutputs
func (u *UTXO) target(order chain.Order) (utxoTarget, error) {
	target := utxoTarget{subtractFee: order.SubtractFee, dust: u.config.DustLimit}

	switch n := len(order.Outputs); {
	case n == 0:
		return target, fault.New(fault.Invalid, "order_invalid", "the order pays nothing")
	case n > u.config.MaxOutputs:
		return target, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays at most %d destinations, not %d",
			u.network.Slug, u.config.MaxOutputs, n,
		)
	}

	for i, output := range order.Outputs {
		paid, err := u.orderOutput(output, order.SubtractFee && i == len(order.Outputs)-1)
		if err != nil {
			return target, err
		}

		target.total += paid.amount
		target.outputs = append(target.outputs, paid)
	}

	var err error
	if target.changeTo, err = parseAccount(string(order.From.Address)); err != nil {
		return target, fault.Wrap(err, fault.Invalid, "order_invalid", "the order has no sender")
	}

	return target, nil
}

// orderOutput returns the output of an order. One that bears the fee may be dust here.
func (u *UTXO) orderOutput(output chain.Output, bearsFee bool) (utxoPayment, error) {
	if output.AssetID != u.native.ID {
		return utxoPayment{}, fault.New(
			fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
			u.network.Slug, output.AssetID,
		)
	}

	to, err := parseAccount(string(output.To))
	if err != nil {
		return utxoPayment{}, fault.Wrap(
			err, fault.Invalid, "destination_not_payable", "the destination cannot be paid",
		)
	}

	amount, ok := unitsOf(output.Amount)
	if !ok || (amount < u.config.DustLimit && !bearsFee) {
		return utxoPayment{}, fault.New(
			fault.Invalid, "destination_not_payable",
			"%s base units for %s are dust or more than there are: pay at least %d",
			output.Amount, output.To, u.config.DustLimit,
		)
	}

	return utxoPayment{to: to, amount: amount}, nil
}

// requiredOf returns the coins that an order must spend: the one that it bumps, those that it names and those
// of what it replaces.
func requiredOf(order chain.Order) ([]chain.Outpoint, error) {
	var required []chain.Outpoint
	if order.Bumps != nil {
		required = append(required, order.Bumps.Outpoint)
	}

	for _, named := range order.Spends {
		if !slices.Contains(required, named) {
			required = append(required, named)
		}
	}

	if order.Replaces == nil {
		return required, nil
	}

	if len(order.Replaces.Inputs) == 0 {
		return nil, fault.New(
			fault.Invalid, "replacement_invalid",
			"transaction %s names no coins that a replacement could share",
			order.Replaces.TxHash,
		)
	}

	for _, input := range order.Replaces.Inputs {
		if !slices.Contains(required, input) {
			required = append(required, input)
		}
	}

	return required, nil
}

// candidates returns the coins that an order may spend and those that it must. Coins that the node does
// not have as they are on record are passed over, and immature block rewards. It errors:
//   - fault.Invalid (replacement_invalid): the order lacks a coin that it must spend
//   - fault.Unavailable (coin_spent): such a coin is spent in a block
func (u *UTXO) candidates(order chain.Order) (coins, required []utxoCoin, err error) {
	outpoints, err := requiredOf(order)
	if err != nil {
		return nil, nil, err
	}

	offered := order.Coins
	if order.Bumps != nil {
		offered = append([]chain.Coin{*order.Bumps}, offered...)
	}

	seen := map[chain.Outpoint]bool{}

	for _, offer := range offered {
		if seen[offer.Outpoint] {
			continue
		}

		seen[offer.Outpoint] = true
		mustSpend := slices.Contains(outpoints, offer.Outpoint)

		coin, ok := u.coinOf(offer, mustSpend)
		switch {
		case !ok && mustSpend:
			return nil, nil, refusedTx(
				"coin_spent", "coin %s:%d, which the transaction has to spend, is spent or unknown",
				offer.Outpoint.TxHash, offer.Outpoint.Vout,
			)
		case !ok:
		case mustSpend:
			required = append(required, coin)
		case order.Replaces == nil && order.Bumps == nil || coin.Height > 0:
			coins = append(coins, coin)
		}
	}

	if len(required) != len(outpoints) {
		return nil, nil, fault.New(
			fault.Invalid, "replacement_invalid", "the order has %d of the %d coins that it has to spend",
			len(required), len(outpoints),
		)
	}

	return coins, required, nil
}

// coinOf returns a coin as the node has it. Whether a waiting transaction spends a confirmed coin, the
// caller's records say; an unconfirmed one must be free, or required.
func (u *UTXO) coinOf(coin chain.Coin, required bool) (utxoCoin, bool) {
	if !isOutpoint(coin.Outpoint) {
		return utxoCoin{}, false
	}

	output, ok := u.spendable(coin.Outpoint, u.nodeTip())
	if !ok || output.to.address() != coin.Owner.Address || chain.Units(output.amount) != coin.Amount {
		return utxoCoin{}, false
	}

	waiting := u.unspent(coin.Outpoint, u.nodeTip()) == nil
	if waiting && !required && u.pool.spender[coin.Outpoint] != nil {
		return utxoCoin{}, false
	}

	return utxoCoin{Coin: coin, utxoPayment: output}, true
}

// choose returns coins that pay the target; unconfirmed ones only when the confirmed are too few. What is
// required is always among them.
func (t utxoTarget) choose(fee utxoFee, coins, required []utxoCoin) (utxoSelection, error) {
	confirmed := slices.DeleteFunc(slices.Clone(coins), func(coin utxoCoin) bool { return coin.Height == 0 })

	selected, err := t.chooseFrom(fee, confirmed, required)
	if err != nil && len(confirmed) < len(coins) {
		selected, err = t.chooseFrom(fee, slices.Clone(coins), required)
	}

	return selected, err
}

// chooseFrom tries what is required alone, the smallest coin that is enough, and the largest until they
// are enough. A coin that costs more than it is worth is passed over, unless the payments bear the fee.
func (t utxoTarget) chooseFrom(fee utxoFee, coins, required []utxoCoin) (utxoSelection, error) {
	inputCost := feeAt(fee.rate, vsizeOf(utxoWeight(1, 0)-utxoWeight(0, 0)))

	if !t.subtractFee {
		coins = slices.DeleteFunc(coins, func(coin utxoCoin) bool { return coin.amount <= inputCost })
	}

	slices.SortFunc(coins, func(a, b utxoCoin) int {
		return cmp.Or(
			cmp.Compare(b.amount, a.amount), cmp.Compare(a.Outpoint.TxHash, b.Outpoint.TxHash),
			cmp.Compare(a.Outpoint.Vout, b.Outpoint.Vout),
		)
	})

	with := func(chosen []utxoCoin) (utxoSelection, error) {
		return t.evaluate(fee, append(slices.Clone(required), chosen...))
	}

	if selected, err := with(nil); err == nil {
		return selected, nil
	}

	for i := len(coins) - 1; i >= 0; i-- {
		if selected, err := with(coins[i : i+1]); err == nil {
			return selected, nil
		}
	}

	for i := range coins {
		if selected, err := with(coins[:i+1]); err == nil {
			return selected, nil
		}
	}

	return utxoSelection{}, errCoinsShort
}

// evaluate returns the selection that coins make. Change below the dust limit goes to the miner; where the
// payments bear the fee, such coins do not match.
func (t utxoTarget) evaluate(fee utxoFee, coins []utxoCoin) (utxoSelection, error) {
	var sum uint64
	for _, coin := range coins {
		sum += coin.amount
	}

	if len(coins) == 0 || sum < t.total {
		return utxoSelection{}, errCoinsShort
	}

	bare := fee.of(vsizeOf(utxoWeight(len(coins), len(t.outputs))))
	changed := fee.of(vsizeOf(utxoWeight(len(coins), len(t.outputs)+1)))
	selected := utxoSelection{coins: coins}

	switch left := sum - t.total; {
	case t.subtractFee && left == 0:
		selected.fee = bare
	case t.subtractFee && left < t.dust:
		return utxoSelection{}, errCoinsShort
	case t.subtractFee:
		selected.fee, selected.change = changed, left
	case left >= changed+t.dust:
		selected.fee, selected.change = changed, left-changed
	case left >= bare:
		selected.fee = left
	default:
		return utxoSelection{}, errCoinsShort
	}

	return selected, nil
}
