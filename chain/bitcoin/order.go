package bitcoin

import (
	"slices"

	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// targetOf returns the coin target of an order: its outputs and the change script. It errors:
//   - fault.Invalid (order_invalid, asset_not_enabled, destination_not_payable): the order can never be paid
//   - fault.Unsupported (outputs_unsupported): it has more destinations than maxOutputs
func (d *driver) targetOf(order chain.Order) (coinTarget, error) {
	target := coinTarget{subtractFee: order.SubtractFee}
	if maxFee, ok := satoshi(order.MaxFee); ok {
		target.maxFee = maxFee
	}

	if len(order.Outputs) == 0 {
		return target, fault.New(fault.Invalid, "order_invalid", "the order pays nothing")
	}

	if len(order.Outputs) > maxOutputs {
		return target, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"the order pays %d destinations, one transaction pays at most %d",
			len(order.Outputs), maxOutputs,
		)
	}

	for i, output := range order.Outputs {
		bearsFee := order.SubtractFee && i == len(order.Outputs)-1

		txOut, err := d.txOutOf(output, maxSatoshi-target.total, bearsFee)
		if err != nil {
			return target, err
		}

		target.total += txOut.Value
		target.outputs = append(target.outputs, txOut)
	}

	// Change may go to any address. A watch-only wallet is never signed for, and its coins are no candidates.
	_, script, err := d.parse(string(order.From.Address))
	if err != nil {
		return target, fault.New(
			fault.Invalid, "order_invalid", "the order is from %q, which is no address of this network",
			truncate(string(order.From.Address)),
		)
	}

	target.changeScript = script

	return target, nil
}

// txOutOf returns the transaction output for an ordered output of at most limit satoshi. An output that bears
// the fee may be dust here: buildPSBT checks the rest after the fee.
func (d *driver) txOutOf(output chain.Output, limit int64, bearsFee bool) (*wire.TxOut, error) {
	if output.AssetID != d.native.ID {
		return nil, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset with id %q",
			d.network.Slug, output.AssetID,
		)
	}

	_, script, err := d.parse(string(output.To))
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Invalid, "destination_not_payable", "the destination cannot be paid",
		)
	}

	amount, ok := satoshi(output.Amount)
	if !ok || amount > limit {
		return nil, fault.New(
			fault.Invalid, "destination_not_payable",
			"%s satoshi for %s is no amount that exists",
			output.Amount, output.To,
		)
	}

	if least := dustLimit(script); amount < least && !bearsFee {
		return nil, fault.New(
			fault.Invalid, "destination_not_payable",
			"%d satoshi for %s is dust, which the network does not relay: pay at least %d",
			amount, output.To, least,
		)
	}

	return wire.NewTxOut(amount, script), nil
}

// spendableScript reports whether this package can sign for the outputs of a script.
func spendableScript(script []byte) bool {
	return txscript.IsPayToWitnessPubKeyHash(script) || txscript.IsPayToTaproot(script)
}

// candidates returns the coins of an order that may be chosen and those that must be spent. It leaves out
// coins at an address that this package cannot sign for. An order that lacks a required coin is fault.Invalid
// (replacement_invalid).
func (d *driver) candidates(order chain.Order) (coins, required []candidate, err error) {
	outpoints, err := requiredOutpoints(order)
	if err != nil {
		return nil, nil, err
	}

	offered := order.Coins
	if order.Bumps != nil {
		offered = append([]chain.Coin{*order.Bumps}, offered...)
	}

	seen, named := make(map[chain.Outpoint]bool, len(offered)), make(map[chain.Outpoint]bool, len(outpoints))
	for _, outpoint := range outpoints {
		named[outpoint] = true
	}

	scripts := map[chain.Address][]byte{}

	for _, offer := range offered {
		coin, ok := d.candidateOf(offer, scripts)
		if !ok || seen[coin.Outpoint] {
			continue
		}

		seen[coin.Outpoint] = true

		switch {
		case named[coin.Outpoint]:
			required = append(required, coin)
		case order.Replaces == nil && order.Bumps == nil || coin.Height > 0:
			coins = append(coins, coin)
		}
	}

	if len(required) != len(outpoints) {
		return nil, nil, fault.New(
			fault.Invalid, "replacement_invalid",
			"the order has %d of the %d coins that it has to spend",
			len(required), len(outpoints),
		)
	}

	return coins, required, nil
}

// requiredOutpoints returns the coins that an order must spend: the coin that it bumps, the coins that it
// lists, then the coins of its predecessor.
func requiredOutpoints(order chain.Order) ([]chain.Outpoint, error) {
	var outpoints []chain.Outpoint
	if order.Bumps != nil {
		outpoints = append(outpoints, order.Bumps.Outpoint)
	}

	for _, named := range order.Spends {
		if !slices.Contains(outpoints, named) {
			outpoints = append(outpoints, named)
		}
	}

	if order.Replaces == nil {
		return outpoints, nil
	}

	if len(order.Replaces.Inputs) == 0 {
		return nil, fault.New(
			fault.Invalid, "replacement_invalid",
			"transaction %s names no coins that a replacement could share",
			truncate(order.Replaces.TxHash),
		)
	}

	for _, input := range order.Replaces.Inputs {
		if !slices.Contains(outpoints, input) {
			outpoints = append(outpoints, input)
		}
	}

	return outpoints, nil
}

// candidateOf returns a coin as a candidate; ok is false when this package cannot spend it. scripts caches
// the scripts of parsed addresses; nil for an address that cannot be spent from.
func (d *driver) candidateOf(coin chain.Coin, scripts map[chain.Address][]byte) (c candidate, ok bool) {
	script, known := scripts[coin.Owner.Address]
	if !known {
		if _, parsed, err := d.parse(string(coin.Owner.Address)); err == nil && spendableScript(parsed) {
			script = parsed
		}

		scripts[coin.Owner.Address] = script
	}

	if script == nil {
		return candidate{}, false
	}

	value, ok := satoshi(coin.Amount)
	if !ok {
		return candidate{}, false
	}

	if _, err := chainhash.NewHashFromStr(coin.Outpoint.TxHash); err != nil {
		return candidate{}, false
	}

	return candidate{Coin: coin, value: value, script: script, taproot: txscript.IsPayToTaproot(script)}, true
}
