package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Build returns a type-2 transaction (EIP-1559). It offers twice the base fee plus the suggested
// priority fee per gas, or the price that Order.MaxFee allows if that covers the current fees.
//
// With SubtractFee the fee of a transfer to an account without code is exact: the priority fee equals the
// maximum fee, so that no base fee leaves a remainder. A contract as destination is refused. For an account
// that delegates to code (EIP-7702), and on an OP-stack rollup, the unused part of the fee stays at the
// address.
//
// A replacement raises both fees of the replaced transaction by an eighth; nodes require a tenth. If it makes
// the same call, its gas limit is not lower either, as far as a block allows.
//
// Prices are bounded by the prices in verified blocks and by Config.MaxGasPrice. Where several nodes are
// configured, two of them must agree about the gas. Errors:
//
//   - fault.Invalid (destination_not_payable, amount_too_small, asset_not_enabled, …): see
//     messageOf
//   - fault.Invalid (replacement_invalid): Order.Replaces has another sender or nonce
//   - fault.State (insufficient_funds)
//   - fault.Limited (fee_above_maximum): the network asks for more than Order.MaxFee or Config.MaxGasPrice
//   - fault.Unavailable (nodes_disagree): two nodes give different estimates of the gas
//
// Where several nodes are configured, two must refuse before Build returns a refusal: a payout fails by it.
func (d *driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	msg, err := d.messageOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	least, err := d.leastOfReplacement(order, msg)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var unsigned chain.Unsigned

	err = d.nodes.AskFinal(ctx, d.attempts, 0, func(ctx context.Context, node *endpoint) error {
		quote, err := d.quote(ctx, node, msg)
		if err != nil {
			return err
		}

		quote.gas = max(quote.gas, min(least.gas, d.mostGas(d.shown.highest())))
		unsigned, err = d.buildTx(order, msg, quote, least.feesPerGas)

		return err
	})

	return unsigned, err
}

// buildTx returns the transaction of an order at the fees of a quote.
func (d *driver) buildTx(
	order chain.Order,
	msg transferMsg,
	quote networkQuote,
	minFees feesPerGas,
) (chain.Unsigned, error) {
	if order.SubtractFee && quote.isContract() {
		return chain.Unsigned{}, notPayable(nil, canonical(msg.payee))
	}

	offer, err := chooseFees(order, quote, minFees)
	if err != nil {
		return chain.Unsigned{}, err
	}

	maxFee := offer.feeCap.Mul(quote.gas).Add(quote.l1Fee)

	output := order.Outputs[0]
	if order.SubtractFee {
		if output.Amount.Cmp(maxFee) <= 0 {
			return chain.Unsigned{}, fault.New(fault.State, "insufficient_funds",
				"the %s base units to send do not exceed the network fee of %s", output.Amount, maxFee)
		}

		output.Amount = output.Amount.Sub(maxFee)
		msg.value = output.Amount
	}

	if total, ok := msg.value.AddOK(maxFee); !ok || quote.balance.Less(total) {
		msg.asset = d.native
		return chain.Unsigned{}, d.insufficientFunds(msg, quote.balance)
	}

	output.To = canonical(msg.payee)

	raw := (&unsignedTx{
		chainID: d.network.ChainID,
		nonce:   order.Nonce,
		tipCap:  offer.tipCap,
		feeCap:  offer.feeCap,
		gas:     quote.gas,
		to:      msg.to,
		value:   msg.value,
		data:    msg.data,
	}).encode()
	hash := signingHash(raw)

	return chain.Unsigned{
		Raw:      raw,
		Payloads: []chain.Payload{{Key: order.From.Key, Data: hash[:]}},
		MaxFee:   maxFee,
		Outputs:  []chain.Output{output},
	}, nil
}

// Assemble returns the signed transaction and its hash. Errors:
//
//   - fault.Invalid (transaction_malformed, transaction_foreign): the bytes are not of this order
//   - fault.Invalid (signature_invalid): not exactly one signature over these bytes by the key of
//     Order.From
func (d *driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	tx, err := decodeUnsigned(unsigned.Raw)
	if err != nil {
		return chain.Signed{}, err
	}

	from, err := d.checkSigner(order, tx, keys, signatures)
	if err != nil {
		return chain.Signed{}, err
	}

	signed, err := tx.sign(signatures[0])
	if err != nil {
		return chain.Signed{}, fault.Wrap(
			err, fault.Invalid, "signature_invalid",
			"the signature does not fit into the transaction",
		)
	}

	raw, err := signed.MarshalBinary()
	if err != nil {
		return chain.Signed{}, malformedTx(err)
	}

	// Recover the sender as the network does: from these bytes alone, with s in the lower half.
	if _, sender, err := d.decodeSigned(raw); err != nil || sender != from {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the signature is not one of %s over this transaction",
			canonical(from),
		)
	}

	return chain.Signed{
		TxHash:  signed.Hash().Hex(),
		Raw:     raw,
		Nonce:   tx.nonce,
		MaxFee:  unsigned.MaxFee,
		Outputs: unsigned.Outputs,
		From:    canonical(from),
	}, nil
}

// checkSigner returns the sender of an order's transaction. The transaction must be of this network and
// nonce, with one signature by the key of Order.From. The signature itself is verified later.
func (d *driver) checkSigner(
	order chain.Order,
	tx *unsignedTx,
	keys []chain.PublicKey,
	signatures [][]byte,
) (common.Address, error) {
	if tx.chainID != d.network.ChainID || tx.nonce != order.Nonce {
		return common.Address{}, fault.New(
			fault.Invalid, "transaction_foreign",
			"the transaction has chain id %d and nonce %d, the order is for network %s and nonce %d",
			tx.chainID, tx.nonce, d.network.Slug, order.Nonce,
		)
	}

	if len(keys) != 1 || len(signatures) != 1 || len(signatures[0]) != crypto.SignatureLength {
		return common.Address{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes one key and one signature of %d bytes",
			crypto.SignatureLength,
		)
	}

	signer, err := d.DeriveAddress(keys[0])
	if err != nil {
		return common.Address{}, err
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return common.Address{}, err
	}

	if signer != canonical(from) {
		return common.Address{}, fault.New(
			fault.Invalid, "signature_invalid", "the key is that of %s, the order is sent from %s",
			signer, order.From.Address,
		)
	}

	return from, nil
}
