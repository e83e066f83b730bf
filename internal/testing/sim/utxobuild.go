package sim

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// feeHeadroom is the multiple of the current fee that an estimate allows for replacements.
const feeHeadroom = 3

// MaxOutputs returns the number of destinations that one order may pay.
func (u *UTXO) MaxOutputs() int { return u.config.MaxOutputs }

// rate returns the rate that the driver offers: the configured one, or the pool's floor above it.
func (u *UTXO) rate() uint64 { return max(u.feeRate, u.floor()) }

// EstimateFee returns three times the order's fee at the current rate, in base units. Where the order's
// coins are too few, and at the least for a payment that replaces nothing, three inputs and change are assumed.
func (u *UTXO) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	if err := u.call(ctx, MethodEstimateFee); err != nil {
		return chain.Amount{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	target, err := u.target(order)
	if err != nil {
		return chain.Amount{}, err
	}

	policy := utxoFee{rate: u.rate()}

	coins, required, err := u.candidates(order)
	if err != nil {
		coins, required = nil, nil
	}

	fee := policy.of(vsizeOf(utxoWeight(3, len(order.Outputs)+1)))

	if selected, err := target.choose(policy, coins, required); err == nil {
		if order.Replaces != nil || order.SubtractFee {
			fee = selected.fee
		} else {
			fee = max(fee, selected.fee)
		}
	}

	maxFee := chain.Units(fee).Mul(feeHeadroom)
	if order.Replaces != nil {
		maxFee = chaindata.Max(maxFee, order.Replaces.MaxFee.Mul(2))
	}

	return maxFee, nil
}

// Build returns the unsigned transaction of an order at the current rate. Its coins are chosen from
// Order.Coins; change goes to Order.From, after the ordered outputs. A replacement spends every coin of
// what it replaces and no other unconfirmed one, a bump first the coin that it bumps. MaxFee is the fee.
func (u *UTXO) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := u.call(ctx, MethodBuild); err != nil {
		return chain.Unsigned{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	target, err := u.target(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	policies, err := u.policies(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	coins, required, err := u.candidates(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	selected, err := selectWithin(order, target, policies, coins, required)
	if err != nil {
		return chain.Unsigned{}, err
	}

	return u.unsigned(order, target, selected)
}

// policies returns the fees of an order at current rates. Where there are two, the second is the least
// that the pool takes, for when the first exceeds Order.MaxFee.
func (u *UTXO) policies(order chain.Order) ([]utxoFee, error) {
	policy := utxoFee{rate: u.rate()}

	if order.Bumps != nil {
		parents, err := u.checkBump(order)
		if err != nil {
			return nil, err
		}

		policy.parents = parents
	}

	if order.Replaces == nil {
		return []utxoFee{policy}, nil
	}

	paid, ok := unitsOf(order.Replaces.MaxFee)
	if !ok || paid == 0 {
		return nil, fault.New(
			fault.Invalid, "replacement_invalid", "transaction %s paid no fee", order.Replaces.TxHash,
		)
	}

	least := utxoFee{rate: u.floor(), replaced: paid, increment: u.config.RelayRate}

	if len(order.Replaces.Raw) > 0 {
		old, err := decodeUTXO(order.Replaces.Raw)
		if err != nil {
			return nil, err
		}

		least.rate = max(least.rate, paid*1000/old.vsize()+1)
	}

	if entry := u.pool.byHash[order.Replaces.TxHash]; entry != nil {
		least.replaced, _ = sumOf(u.pool.descendants(entry))
	}

	policy.rate = max(policy.rate, least.rate)
	policy.replaced, policy.increment = least.replaced, least.increment

	return []utxoFee{policy, least}, nil
}

// selectWithin returns the selection at the first policy whose fee the order allows.
func selectWithin(
	order chain.Order,
	target utxoTarget,
	policies []utxoFee,
	coins, required []utxoCoin,
) (utxoSelection, error) {
	var selected utxoSelection

	for _, policy := range policies {
		var err error
		if selected, err = target.choose(policy, coins, required); err != nil {
			return selected, fault.Wrap(
				err, fault.State, "insufficient_funds", "wallet %s cannot pay for the transaction",
				order.From.Address,
			)
		}

		if chain.Units(selected.fee).Cmp(order.MaxFee) <= 0 {
			return selected, nil
		}
	}

	return selected, fault.New(
		fault.Limited, "fee_above_maximum",
		"the transaction costs %d base units now, more than the %s that it may cost",
		selected.fee, order.MaxFee,
	)
}

// unsigned returns the transaction of a selection.
func (u *UTXO) unsigned(
	order chain.Order,
	target utxoTarget,
	selected utxoSelection,
) (chain.Unsigned, error) {
	tx := &utxoTx{network: u.networkID, outputs: target.outputs}
	result := chain.Unsigned{MaxFee: chain.Units(selected.fee)}

	if target.subtractFee {
		last := &tx.outputs[len(tx.outputs)-1]
		if last.amount < selected.fee+u.config.DustLimit {
			return result, fault.New(
				fault.State, "insufficient_funds",
				"the %d base units to send do not exceed the network fee of %d and the dust limit",
				last.amount, selected.fee,
			)
		}

		last.amount -= selected.fee
	}

	for _, output := range tx.outputs {
		result.Outputs = append(result.Outputs, chain.Output{
			To:      output.to.address(),
			AssetID: u.native.ID,
			Amount:  chain.Units(output.amount),
		})
	}

	if selected.change > 0 {
		tx.outputs = append(tx.outputs, utxoPayment{to: target.changeTo, amount: selected.change})
	}

	var spent []utxoPayment

	for _, coin := range selected.coins {
		tx.inputs = append(tx.inputs, coin.Outpoint)
		spent = append(spent, coin.utxoPayment)
	}

	for i, coin := range selected.coins {
		digest := tx.digest(i)
		result.Payloads = append(result.Payloads, chain.Payload{Key: coin.Owner.Key, Data: digest[:]})
	}

	result.Raw, result.Inputs = unsignedUTXO(tx, spent), tx.inputs

	ancestors := u.pool.ancestors(&utxoEntry{tx: tx})
	for _, parent := range ancestors[:len(ancestors)-1] {
		result.UnconfirmedParents = append(result.UnconfirmedParents, parent.tx.spends(parent.hash)...)
	}

	return result, nil
}
