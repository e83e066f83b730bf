package evm

import (
	"bytes"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// feesPerGas are the fees of EIP-1559 in wei per gas: the maximum and the priority fee.
type feesPerGas struct{ feeCap, tipCap chain.Amount }

// replacementLeast is the minimum that a replacement offers. gas is 0 where it makes another call.
type replacementLeast struct {
	feesPerGas
	gas uint64
}

// leastOfReplacement returns the lowest fees that replace Order.Replaces: both raised by an eighth, rounded
// up. Order.Outbids doubles the tip instead. Without the bytes of Order.Replaces it returns zero. The gas
// limit of the same call does not fall: the node may estimate it on the effects of the replaced transaction,
// in a block that a fork removes.
func (d *driver) leastOfReplacement(order chain.Order, msg transferMsg) (least replacementLeast, err error) {
	if order.Replaces == nil || len(order.Replaces.Raw) == 0 {
		return least, nil
	}

	tx, from, err := d.decodeSigned(order.Replaces.Raw)
	if err != nil {
		return least, err
	}

	if from != msg.from || tx.Nonce() != order.Nonce {
		return least, fault.New(
			fault.Invalid, "replacement_invalid",
			"transaction %s has another sender or nonce than the order that is to replace it",
			order.Replaces.TxHash,
		)
	}

	feeCap, err := chain.AmountFromBig(tx.GasFeeCap())
	if err != nil || maxPrice.Less(feeCap) {
		return least, malformedTx(err)
	}

	tipCap, err := chain.AmountFromBig(tx.GasTipCap())
	if err != nil || maxPrice.Less(tipCap) {
		return least, malformedTx(err)
	}

	least.feeCap, least.tipCap = feeCap.Add(fraction(feeCap, 8)), tipCap.Add(fraction(tipCap, 8))
	if order.Outbids {
		least.tipCap = tipCap.Mul(2)
	}

	if to := tx.To(); to != nil && *to == msg.to && bytes.Equal(tx.Data(), msg.data) {
		least.gas = tx.Gas()
	}

	return least, nil
}

// chooseFees returns the fees to offer: at least the network's current ones and minFees, at most
// the price that Order.MaxFee allows. A higher minimum is fault.Limited (fee_above_maximum).
func chooseFees(order chain.Order, quote networkQuote, minFees feesPerGas) (feesPerGas, error) {
	tipCap := chaindata.Max(quote.tipCap, minFees.tipCap)
	minFeeCap := chaindata.Max(chaindata.Max(quote.baseFee.Add(quote.tipCap), minFees.feeCap), tipCap)

	wanted := quote.feeCap()
	if order.SubtractFee {
		wanted = quote.sweepFeeCap()
	}

	wanted = chaindata.Max(wanted, minFeeCap)

	if quote.highest.Less(minFeeCap) {
		return feesPerGas{}, fault.New(
			fault.Limited, "fee_above_maximum",
			"the network asks for %s wei per unit of gas now, more than Config.MaxGasPrice of %s",
			minFeeCap, quote.highest,
		)
	}

	wanted = chaindata.Min(wanted, quote.highest)

	// Rounded down: price × gas stays within the maximum.
	affordable := order.MaxFee.SubFloor(quote.l1Fee).Share(chain.Units(1), chain.Units(quote.gas))
	if affordable.Less(minFeeCap) || order.MaxFee.Less(quote.l1Fee) {
		return feesPerGas{}, fault.New(
			fault.Limited, "fee_above_maximum",
			"the transaction costs up to %s wei now, more than the %s that it may cost",
			minFeeCap.Mul(quote.gas).Add(quote.l1Fee), order.MaxFee,
		)
	}

	offer := feesPerGas{feeCap: chaindata.Min(wanted, affordable), tipCap: tipCap}
	if order.SubtractFee {
		offer.tipCap = offer.feeCap // spec D4.16
	}

	return offer, nil
}
