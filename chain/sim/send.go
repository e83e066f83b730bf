package sim

// The driver's sending half: Build, Assemble, Broadcast, Status.

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// EstimateFee returns twice what Build would offer now: room for several replacements.
func (c *Chain) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	if err := c.call(ctx, MethodEstimateFee); err != nil {
		return chain.Amount{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	tx, err := c.draft(order)
	if err != nil {
		return chain.Amount{}, err
	}

	return c.allowance(tx), nil
}

// allowance is the most that a transaction should be allowed to cost now.
func (c *Chain) allowance(tx *transaction) chain.Amount {
	return chain.Units(2*c.baseFee + c.priority).Mul(2 * tx.gas())
}

// draft is the order's transaction without prices.
func (c *Chain) draft(order chain.Order) (*transaction, error) {
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
	for _, out := range order.Outputs {
		m, err := c.movement(out)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "destination_not_payable",
				"the order cannot be paid on network %s",
				c.network.Slug,
			)
		}

		if m.amount.IsZero() {
			return nil, fault.New(fault.Invalid, "amount_too_small", "the order pays %s nothing", out.To)
		}

		if order.SubtractFee && m.kind != moveValue {
			return nil, fault.New(
				fault.Invalid, "subtract_fee_invalid",
				"the fee can be taken out of the native coin only",
			)
		}

		if out.AssetID != order.Outputs[0].AssetID {
			return nil, fault.New(
				fault.Unsupported, "outputs_unsupported",
				"a transaction of network %s pays one asset",
				c.network.Slug,
			)
		}

		if c.frozen[chain.Holding{Address: out.To, AssetID: out.AssetID}] {
			return nil, fault.New(
				fault.Invalid, "destination_not_payable",
				"%s cannot receive this asset: it is frozen",
				out.To,
			)
		}

		tx.moves = append(tx.moves, m)
	}

	return tx, nil
}

// MaxOutputs returns Config.MaxOutputs.
func (c *Chain) MaxOutputs() int { return c.config.MaxOutputs }

// Build makes the order's transaction. It offers twice the base fee plus the priority price, or as
// much of that as Order.MaxFee allows while it still covers the current fees. With SubtractFee it
// offers the current fees and an eighth of the base fee, all of it as priority, so that the fee is
// exact whatever the base fee is then.
func (c *Chain) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := c.call(ctx, MethodBuild); err != nil {
		return chain.Unsigned{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	tx, err := c.draft(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	if err := c.setPrices(tx, order); err != nil {
		return chain.Unsigned{}, err
	}

	if order.SubtractFee {
		m := &tx.moves[len(tx.moves)-1]
		if m.amount.Cmp(tx.maxFee()) <= 0 {
			return chain.Unsigned{}, fault.New(
				fault.State, "insufficient_funds",
				"the %s base units to send do not exceed the network fee of %s",
				m.amount, tx.maxFee(),
			)
		}

		m.amount = m.amount.Sub(tx.maxFee())
	}

	if err := c.funded(tx, c.view()); err != nil {
		return chain.Unsigned{}, err
	}

	tip := c.blocks[c.view()].ref
	if c.config.ValidBlocks > 0 {
		tx.validToHeight = tip.Height + c.config.ValidBlocks
	}

	if c.config.ValidFor > 0 {
		tx.validTo = uint64(c.now().Add(c.config.ValidFor).UnixMilli())
	}

	digest := tx.digest()

	return chain.Unsigned{
		Raw:      tx.unsigned(),
		Payloads: []chain.Payload{{Key: order.From.Key, Data: digest[:]}},
		MaxFee:   tx.maxFee(),
		Outputs:  c.outputs(tx),
	}, nil
}

// setPrices offers what the network asks for and what displaces Order.Replaces, within Order.MaxFee.
func (c *Chain) setPrices(tx *transaction, order chain.Order) error {
	priority, least := c.priority, c.baseFee+c.priority

	if order.Replaces != nil {
		old, err := decode(order.Replaces.Raw)
		if err != nil {
			return err
		}

		if old.from != tx.from || old.nonce != tx.nonce {
			return fault.New(
				fault.Invalid, "replacement_invalid",
				"transaction %s has another sender or nonce than the order that is to replace it",
				order.Replaces.TxHash,
			)
		}

		priority = max(priority, replacementPrice(old.priority))
		least = max(least, replacementPrice(old.maxPrice), priority)
	}

	price := max(least, 2*c.baseFee+c.priority)
	if order.SubtractFee {
		price = max(least, c.baseFee+c.baseFee/8+c.priority)
	}

	gas := tx.gas()
	// Rounded down: the price times the gas stays within the maximum.
	if allowed, fits := order.MaxFee.Share(chain.Units(1), chain.Units(gas)).
		Uint64(); fits &&
		allowed < price {
		if allowed < least {
			return fault.New(
				fault.Limited, "fee_above_maximum",
				"the transaction costs up to %s now, more than the %s that it may cost",
				chain.Units(least).Mul(gas), order.MaxFee,
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

// funded checks that the sender can pay for the transaction in the state after the block of a height.
func (c *Chain) funded(tx *transaction, height uint64) error {
	from := tx.from.address()
	if !c.affordable(tx, height) {
		return fault.New(
			fault.State, "insufficient_funds",
			"%s holds too little %s for the transaction and its fee of up to %s",
			from, c.native.Symbol, tx.maxFee(),
		)
	}

	sums := map[string]chain.Amount{}

	for _, m := range tx.moves {
		id := c.assetID(m)

		sum, fits := sums[id].AddOK(m.amount)
		if sums[id] = sum; m.kind == moveToken &&
			(!fits || c.balances.at(chain.Holding{Address: from, AssetID: id}, height).Less(sum)) {
			return fault.New(
				fault.State, "insufficient_funds",
				"%s holds less than the %s base units of the token to send",
				from, sum,
			)
		}
	}

	return nil
}

// Assemble puts the signature in after checking it against the key and the sender.
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

// Broadcast puts a transaction into the pool. Beyond what chain.Sender says, a nonce that is used already, a
// replacement that pays too little and a transaction that ran out are fault.State: a node's word for now.
func (c *Chain) Broadcast(ctx context.Context, signed chain.Signed) error {
	if err := c.call(ctx, MethodBroadcast); err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	err := c.accept(signed.Raw)
	if c.faults.lost > 0 {
		c.faults.lost--

		return fault.Wrap(
			context.DeadlineExceeded, fault.Unavailable, "node_unavailable",
			"network %s did not answer Broadcast in time",
			c.network.Slug,
		)
	}

	return err
}

func (c *Chain) accept(raw []byte) error {
	tx, err := decode(raw)
	if err != nil {
		return err
	}

	if tx.network != c.networkID {
		return fault.New(
			fault.Invalid, "transaction_foreign",
			"the transaction was made for another network than %s",
			c.network.Slug,
		)
	}

	if tx.values() > uint64(c.config.MaxOutputs) {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"a transaction of network %s pays at most %d destinations",
			c.network.Slug, c.config.MaxOutputs,
		)
	}

	if slices.ContainsFunc(tx.moves, func(m movement) bool { return m.kind == moveInternal }) {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"internal movements are a contract's, not a sender's",
		)
	}

	if err := tx.verify(); err != nil {
		return err
	}

	hash := tx.hash()
	if c.included[hash] != nil || c.waiting.byHash[hash] != nil {
		return nil
	}

	tip := c.blocks[c.tip()].ref
	if next := c.nonces.at(tx.from.address(), tip.Height); tx.nonce < next {
		return fault.New(
			fault.State, "nonce_used", "nonce %d of %s is used: the next one is %d",
			tx.nonce, tx.from.address(), next,
		)
	}

	if tx.expired(tip.Height+1, tip.Time) {
		return fault.New(
			fault.State, "transaction_expired",
			"the transaction could be included up to block %d or %s only",
			tx.validToHeight, tx.validToTime(),
		)
	}

	if !c.affordable(tx, tip.Height) {
		return fault.New(
			fault.Invalid, "insufficient_funds",
			"%s holds too little %s for the transaction and its fee of up to %s",
			tx.from.address(), c.native.Symbol, tx.maxFee(),
		)
	}

	return c.waiting.add(tx, hash)
}

// Status looks a transaction up. The proof of death is read at the final block: the sender's nonce
// has passed, or the validity ended before it, and the transaction is not in the chain.
func (c *Chain) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	if err := c.call(ctx, MethodStatus); err != nil {
		return chain.TxStatus{}, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	final := c.finalHeight()
	if done := c.included[signed.TxHash]; done != nil && done.height <= c.view() {
		status := chain.TxStatus{
			State:    chain.TxIncluded,
			Block:    c.blocks[done.height].ref,
			Final:    done.height <= final,
			Reverted: done.reverted,
			Fee:      done.fee,
		}
		if !done.reverted {
			status.Transfers = c.transfers(done.tx, done.hash, true)
		}

		return status, nil
	}

	if c.nonces.at(signed.From, final) > signed.Nonce {
		return chain.TxStatus{State: chain.TxDead, Death: chain.DeathConflict}, nil
	}

	if at := c.blocks[final].ref; (signed.ValidToHeight != 0 && at.Height > signed.ValidToHeight) ||
		(!signed.ValidTo.IsZero() && at.Time.After(signed.ValidTo)) {
		return chain.TxStatus{State: chain.TxDead, Death: chain.DeathExpired}, nil
	}

	if c.waiting.byHash[signed.TxHash] != nil {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	return chain.TxStatus{State: chain.TxUnknown}, nil
}
