package bitcoin

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// assumedInputs is the least number of coins that a payment is assumed to spend, if the wallet has as many.
const assumedInputs = 3

// estimateFee returns the fee of an order at a policy, in satoshi. Its errors are those of unaffordable.
func (d *driver) estimateFee(
	order chain.Order,
	target coinTarget,
	policy feePolicy,
	coins, required []candidate,
) (int64, error) {
	selected, err := selectCoins(target, policy, coins, required)
	if order.Replaces != nil || order.SubtractFee {
		if err == nil {
			return selected.fee, nil
		}

		inputs := assumedInputs
		if order.Replaces != nil {
			inputs = max(1, len(order.Replaces.Inputs))
		}

		return target.feeOf(policy, inputs, d.ownInputWeight()), nil
	}

	if err != nil && len(coins) > 0 {
		return 0, d.unaffordable(order, target, policy, coins, err)
	}

	return d.reservedFee(target, policy, selected, len(coins)), nil
}

// reservedFee returns the fee to reserve for a selection, in satoshi. It is at least the fee of assumedInputs
// coins, or of all coins if the wallet has fewer.
func (d *driver) reservedFee(target coinTarget, policy feePolicy, selected selection, coins int) int64 {
	inputs := assumedInputs
	if coins > 0 {
		inputs = min(inputs, coins)
	}

	return max(selected.fee, target.feeOf(policy, inputs, d.ownInputWeight()))
}

// feeOf returns the fee, in satoshi, of a transaction with the given number of inputs of one weight, with
// change.
func (t coinTarget) feeOf(policy feePolicy, inputs int, inputWeight int64) int64 {
	return policy.fee(t.txWeight(inputs, int64(inputs)*inputWeight, true))
}

// unaffordable returns the refusal of a payment that the coins cannot make at a policy. Its text has the
// largest payment that they can make, in satoshi. It is fault.State with these codes:
//   - amount_too_large: it needs more coins than fit into one transaction
//   - insufficient_funds: the coins do not cover the payment and their own fees
func (d *driver) unaffordable(
	order chain.Order,
	target coinTarget,
	policy feePolicy,
	coins []candidate,
	cause error,
) error {
	most, sum := d.mostAtOnce(target, policy, coins), sumOf(coins)

	if errors.Is(cause, errHeavy) {
		return fault.Wrap(
			cause,
			fault.State,
			"amount_too_large",
			"wallet %s holds %d satoshi in %d coins, of which one transaction cannot take enough for %d satoshi: send "+
				"at most %d satoshi at once, and the rest after it",
			order.From.Address,
			sum.value,
			sum.coins,
			target.total,
			most,
		)
	}

	return fault.Wrap(
		cause,
		fault.State,
		"insufficient_funds",
		"wallet %s holds %d satoshi in %d coins that can be spent. At %d satoshi per 1000 vB, with room for a higher "+
			"fee, they pay at most %d satoshi at once, not %d",
		order.From.Address,
		sum.value,
		sum.coins,
		policy.rate,
		most,
		target.total,
	)
}

// mostAtOnce returns the largest payment, in satoshi, that coins make in one transaction at a policy. The fee
// that is reserved for it must be left over. It is 0 if no payment is large enough to be relayed.
func (d *driver) mostAtOnce(target coinTarget, policy feePolicy, coins []candidate) int64 {
	sorted := slices.SortedFunc(
		slices.Values(coins),
		func(a, b candidate) int { return cmp.Compare(b.value, a.value) },
	)
	all := sumOf(coins).value

	// Take the largest coins first, while each adds more than its own fee and fits.
	var sum coinSum

	for _, coin := range sorted {
		with := sum.with(coin)
		if coin.value <= feeAt(policy.rate, coin.weight()) ||
			target.txWeight(with.coins, with.weight, true) > maxWeight {
			break
		}

		sum = with
	}

	most := sum.value - policy.fee(target.txWeight(sum.coins, sum.weight, true))

	// At a low rate many coins are selected, and the fee may be higher.
	for range 5 {
		if target.total = most; most < leastPaid(target) {
			return 0
		}

		selected, err := selectCoins(target, policy, coins, nil)
		if err != nil {
			return 0
		}

		affordable := all - bumpHeadroom*d.reservedFee(target, policy, selected, len(coins))
		if most <= affordable {
			return most
		}

		most = affordable
	}

	return 0
}

// leastPaid returns the sum of the dust limits of a target's outputs, in satoshi.
func leastPaid(target coinTarget) (least int64) {
	for _, output := range target.outputs {
		least += dustLimit(output.PkScript)
	}

	return max(least, 1)
}
