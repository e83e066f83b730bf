package sim

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// MaxOutputs returns Config.MaxOutputs.
func (c *Chain) MaxOutputs() int { return c.config.MaxOutputs }

// EstimateFee returns twice the maximum fee that Build would offer now, in base units of the native
// coin, which covers several replacements, and what Order.Replaces offers.
func (c *Chain) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	return ask(ctx, c, MethodEstimateFee, func(n *node) (chain.Amount, error) {
		tx, err := n.transactionOf(order)
		if err != nil {
			return chain.Amount{}, err
		}

		least, err := leastToReplace(tx, order)
		outbids := chain.Units(least.feeCap).Mul(2 * tx.gas())

		return chaindata.Max(n.suggestedMaxFee(tx), outbids), err
	})
}

// suggestedMaxFee returns the maximum fee to give an order now: twice the offered price × gas.
func (n *node) suggestedMaxFee(tx *transaction) chain.Amount {
	return chain.Units(n.prices().feeCap()).Mul(2 * tx.gas())
}

// transactionOf returns the transaction of an order with its gas limit, without prices and validity.
func (n *node) transactionOf(order chain.Order) (*transaction, error) {
	tx, err := n.c.transactionOf(order)
	if err != nil {
		return nil, err
	}

	return tx, n.setGas(order, tx)
}

// Build returns the unsigned transaction of an order. It offers twice the base fee plus the priority
// price per gas, or what Order.MaxFee allows if that covers the current price. With SubtractFee it
// offers the current price and an eighth of the base fee, all as priority price, so the fee is exact.
func (c *Chain) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	return askFinal(
		ctx,
		c,
		MethodBuild,
		func(n *node) (chain.Unsigned, error) { return n.build(order) },
	)
}

// build returns the unsigned transaction of an order at the node's tip.
func (n *node) build(order chain.Order) (chain.Unsigned, error) {
	c := n.c

	tx, err := n.transactionOf(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	if err := n.setPrices(tx, order); err != nil {
		return chain.Unsigned{}, err
	}

	if order.SubtractFee {
		if err := subtractFee(tx); err != nil {
			return chain.Unsigned{}, err
		}
	}

	if err := c.checkFunds(tx, n.tip); err != nil {
		return chain.Unsigned{}, err
	}

	c.setValidity(tx, n.tip)

	digest := tx.digest()

	return chain.Unsigned{
		Raw:      tx.unsigned(),
		Payloads: []chain.Payload{{Key: order.From.Key, Data: digest[:]}},
		MaxFee:   tx.maxFee(),
		Outputs:  c.outputs(tx),
	}, nil
}

// transactionOf returns the transaction of an order, without gas limit, prices and validity.
func (c *Chain) transactionOf(order chain.Order) (*transaction, error) {
	if len(order.Outputs) == 0 || len(order.Outputs) > c.config.MaxOutputs {
		return nil, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays 1 to %d destinations, not %d",
			c.network.Slug, c.config.MaxOutputs, len(order.Outputs),
		)
	}

	from, err := parseAccount(string(order.From.Address))
	if err != nil {
		return nil, err
	}

	tx := &transaction{network: c.networkID, from: from, nonce: order.Nonce}
	for _, output := range order.Outputs {
		t, err := c.orderTransfer(order, output)
		if err != nil {
			return nil, err
		}

		tx.transfers = append(tx.transfers, t)
	}

	return tx, nil
}

// orderTransfer returns the transfer of one output of an order.
func (c *Chain) orderTransfer(order chain.Order, output chain.Output) (transfer, error) {
	t, err := c.transferOf(output)
	if err != nil {
		return transfer{}, fault.Wrap(
			err, fault.Invalid, "destination_not_payable",
			"the order cannot be paid on network %s",
			c.network.Slug,
		)
	}

	if t.amount.IsZero() {
		return transfer{}, fault.New(
			fault.Invalid, "amount_too_small", "the order pays %s nothing", output.To,
		)
	}

	if order.SubtractFee && t.kind != kindValue {
		return transfer{}, fault.New(
			fault.Invalid, "subtract_fee_invalid",
			"the fee can be taken out of the native coin only",
		)
	}

	if output.AssetID != order.Outputs[0].AssetID {
		return transfer{}, fault.New(
			fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays one asset",
			c.network.Slug,
		)
	}

	if c.frozen[chain.Holding{Address: output.To, AssetID: output.AssetID}] {
		return transfer{}, fault.New(
			fault.Invalid, "destination_not_payable",
			"%s cannot receive this asset: it is frozen",
			output.To,
		)
	}

	return t, nil
}

// setPrices sets the gas prices: what the network and the replacement of Order.Replaces require,
// within Order.MaxFee.
func (n *node) setPrices(tx *transaction, order chain.Order) error {
	now := n.prices()
	priority, minPrice := now.priority, now.baseFee+now.priority

	least, err := leastToReplace(tx, order)
	if err != nil {
		return err
	}

	priority = max(priority, least.priority)
	minPrice = max(minPrice, least.feeCap, priority)

	price := max(minPrice, now.feeCap())
	if order.SubtractFee {
		price = max(minPrice, now.exact())
	}

	// Rounded down, so that the price times the gas stays within MaxFee.
	gas := tx.gas()
	allowed, fits := order.MaxFee.Share(chain.Units(1), chain.Units(gas)).Uint64()

	if fits && allowed < price {
		if allowed < minPrice {
			return fault.New(
				fault.Limited, "fee_above_maximum",
				"the transaction costs up to %s now, more than the %s that it may cost",
				chain.Units(minPrice).Mul(gas), order.MaxFee,
			)
		}

		price = allowed
	}

	tx.maxPrice, tx.priority = price, priority
	if order.SubtractFee {
		tx.priority = price
	}

	return nil
}

// offer is what a transaction offers per gas.
type offer struct{ feeCap, priority uint64 }

// leastToReplace returns the least that a transaction offers to displace Order.Replaces; zero where it displaces none.
func leastToReplace(tx *transaction, order chain.Order) (offer, error) {
	if order.Replaces == nil || len(order.Replaces.Raw) == 0 {
		return offer{}, nil
	}

	old, err := decode(order.Replaces.Raw)
	if err != nil {
		return offer{}, err
	}

	if old.from != tx.from || old.nonce != tx.nonce {
		return offer{}, fault.New(
			fault.Invalid, "replacement_invalid",
			"transaction %s has another sender or nonce than the order that is to replace it",
			order.Replaces.TxHash,
		)
	}

	least := offer{feeCap: replacementPrice(old.maxPrice), priority: replacementPrice(old.priority)}
	if order.Outbids {
		least.priority = max(least.priority, 2*old.priority)
	}

	return least, nil
}

// subtractFee reduces the last transfer by the maximum fee.
func subtractFee(tx *transaction) error {
	last := &tx.transfers[len(tx.transfers)-1]
	if last.amount.Cmp(tx.maxFee()) <= 0 {
		return fault.New(
			fault.State, "insufficient_funds",
			"the %s base units to send do not exceed the network fee of %s",
			last.amount, tx.maxFee(),
		)
	}

	last.amount = last.amount.Sub(tx.maxFee())

	return nil
}

// checkFunds returns fault.State when the sender cannot pay for the transaction after the block of a
// height.
func (c *Chain) checkFunds(tx *transaction, height uint64) error {
	from := tx.from.address()
	if !c.affordable(tx, height) {
		return fault.New(
			fault.State, "insufficient_funds",
			"%s holds too little %s for the transaction and its fee of up to %s",
			from, c.native.Symbol, tx.maxFee(),
		)
	}

	sums := map[string]chain.Amount{}

	for _, t := range tx.transfers {
		id := c.assetID(t)

		sum, fits := sums[id].AddOK(t.amount)
		sums[id] = sum

		balance := c.balances.at(chain.Holding{Address: from, AssetID: id}, height)
		if t.kind == kindToken && (!fits || balance.Less(sum)) {
			return fault.New(
				fault.State, "insufficient_funds",
				"%s holds less than the %s base units of the token to send",
				from, sum,
			)
		}
	}

	return nil
}

// setValidity limits the validity, after a node's tip, by Config.ValidBlocks and Config.ValidFor.
func (c *Chain) setValidity(tx *transaction, tip uint64) {
	if c.config.ValidBlocks > 0 {
		tx.validToHeight = tip + c.config.ValidBlocks
	}

	if c.config.ValidFor > 0 {
		tx.validTo = uint64(c.now().Add(c.config.ValidFor).UnixMilli())
	}
}

// Assemble adds the signature to an unsigned transaction. It returns fault.Invalid with code
// signature_invalid when signature, key, sender or order do not match.
func (c *Chain) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	tx, err := decodeUnsigned(unsigned.Raw)
	if err != nil {
		return chain.Signed{}, err
	}

	if len(keys) != 1 || len(signatures) != 1 || len(signatures[0]) != signatureSize {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"the transaction takes one key and one signature of %d bytes",
			signatureSize,
		)
	}

	signer, err := accountOf(keys[0])
	if err != nil {
		return chain.Signed{}, err
	}

	if tx.network != c.networkID || signer != tx.from || tx.from.address() != order.From.Address ||
		tx.nonce != order.Nonce {
		return chain.Signed{}, fault.New(
			fault.Invalid,
			"signature_invalid",
			"key, transaction and order do not belong together: the transaction is sent by %s, the key is that of %s",
			tx.from.address(),
			signer.address(),
		)
	}

	copy(tx.signature[:], signatures[0])

	if err := tx.verify(); err != nil {
		return chain.Signed{}, err
	}

	return chain.Signed{
		TxHash:        tx.hash(),
		Raw:           tx.raw(),
		Nonce:         tx.nonce,
		MaxFee:        tx.maxFee(),
		Outputs:       c.outputs(tx),
		From:          tx.from.address(),
		ValidToHeight: tx.validToHeight,
		ValidTo:       tx.validToTime(),
	}, nil
}
